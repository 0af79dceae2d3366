/** How amounts, days and months are written: by the browser's own tag where it speaks the language of the page. */

const KEPT = "language"; // in localStorage; absent where the browser decides
const made = new Map();

let tag = "en-GB";

/** The languages of the service, as codes of two letters. */
export const languages = (globalThis.document?.documentElement.dataset.languages ?? "en de").split(" ");

/** The language of the page, chosen by the person or by the browser. */
export function chosenLanguage(kept = stored(KEPT), wanted = navigator.languages) {
  return [kept, ...wanted.map((name) => name.slice(0, 2).toLowerCase())].find((name) => languages.includes(name)) ?? "en";
}

/** What a language calls itself. */
export const languageName = (code) => {
  const name = new Intl.DisplayNames([code], { type: "language" }).of(code);
  return name[0].toUpperCase() + name.slice(1);
};

/** Write from now on as this language does; `de-CH` writes otherwise than `de-DE`, so the browser's own tag goes first. */
export function writeAs(language, wanted = globalThis.navigator?.languages ?? []) {
  tag = wanted.find((name) => name.slice(0, 2).toLowerCase() === language && name !== "en") ?? (language === "en" ? "en-GB" : `${language}-${language.toUpperCase()}`);
  made.clear();
}

function stored(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function maker(kind, options) {
  const key = kind.name + JSON.stringify(options);
  if (!made.has(key)) made.set(key, new kind(tag, options));
  return made.get(key);
}

/** A real minus sign: a hyphen is often not read out, and is as short as it is wrong. A sign never ends a line before its number. */
const withMinus = (text) => text.replaceAll("-", "−").replace(/[−+](?!\u2060)/g, "$&\u2060");

/** An amount: 12.5 in EUR is €12.50. `signed` writes a plus too. */
export function money(amount, currency, { signed = false } = {}) {
  const options = { style: "currency", currency, signDisplay: signed ? "exceptZero" : "negative" };
  return withMinus(maker(Intl.NumberFormat, options).format(amount));
}

/** An amount of whatever currency: 12.5 is 12.50. */
export const amount = (value) => withMinus(maker(Intl.NumberFormat, { minimumFractionDigits: 2 }).format(value));

const SIGN = String.raw`[\-−+]?\u2060?`;

/** How many decimals amounts of a currency have. */
const digitsOf = (currency) => maker(Intl.NumberFormat, { style: "currency", currency }).resolvedOptions().maximumFractionDigits;

/** The mark that the language of the page has before decimals (`decimal`) or between thousands (`group`). */
const mark = (wanted) => maker(Intl.NumberFormat, {}).formatToParts(1234567.8).find(({ type }) => type === wanted).value;

/** What may be thousands or three decimals, since the language writes neither so; `point` is what three decimals have before them. */
const unclear = (point = "") => {
  const marks = ".,".replace(mark("group"), "").replace(point, "");
  return String.raw`${SIGN}\d{1,3}[${marks}]\d{3}`;
};

export const isUnclear = (text) => new RegExp(`^${unclear()}$`, "v").test(text);

/** The pattern of a typed amount: three digits after the only point or comma are thousands or decimals where language and currency write them so. */
export function amountPattern(currency = "EUR") {
  const point = digitsOf(currency) > 2 ? mark("decimal") : "";
  const decimals = `(?:[.,](\\d{1,2}${point && `|(?<=[${point}])\\d{3}`}))?`;
  return String.raw`(?!${unclear(point)}$)${SIGN}(?:(\d+)${decimals}|(\d{1,3}([.,'’ \u00a0\u202f])\d{3}(?:\4\d{3})*)(?!\4)${decimals})`;
}

/** What is typed as an amount: 1.234,56 and 1,234.56 are 1234.56; NaN for anything else. */
export function typedAmount(text, currency = "EUR") {
  const typed = text.trim();
  const [, plain, cents, whole = plain, , decimals = cents] = new RegExp(`^${amountPattern(currency)}$`, "v").exec(typed) ?? [];
  return Number(whole && `${/^[-−]/.test(typed) ? "-" : ""}${whole.replaceAll(/\D/g, "")}.${decimals ?? ""}`);
}

/** An amount as somebody would type it: 1234.5 is 1234.5, in German 1234,5; nothing where there is none. */
export const asTyped = (value) => (typeof value === "number" ? maker(Intl.NumberFormat, { useGrouping: false }).format(value) : "");

/** An amount for the side of a chart: no decimals. */
export function roundMoney(amount, currency) {
  const options = { style: "currency", currency, maximumFractionDigits: 0, signDisplay: "negative" };
  return withMinus(maker(Intl.NumberFormat, options).format(amount));
}

/** A sum in whole cents: 0.1 and 0.2 are 0.3. */
export function sum(amounts, currency) {
  const unit = 10 ** digitsOf(currency);
  return amounts.reduce((total, amount) => total + Math.round(amount * unit), 0) / unit;
}

/** A whole number with the separators of the language. */
export const count = (value) => withMinus(maker(Intl.NumberFormat, {}).format(value));

/** EUR is Euro (EUR). */
export const currencyName = (code) => `${new Intl.DisplayNames(tag, { type: "currency" }).of(code)} (${code})`;

/** A whole percentage: 54 is 54 %. */
export const percent = (value) => withMinus(maker(Intl.NumberFormat, { style: "percent" }).format(value / 100));

const DAY = 86_400_000; // milliseconds

const atMidnight = (iso) => new Date(`${iso.slice(0, 10)}T00:00:00Z`);

function written(iso, options) {
  // Days are the bank's: midnight UTC, or Los Angeles would see the day before
  return maker(Intl.DateTimeFormat, { ...options, timeZone: "UTC" }).format(atMidnight(iso));
}

/** 2026-11-19 is 19 Nov; with its year where that is not this one. */
export function shortDay(iso, today = "") {
  const isThisYear = !today || iso.slice(0, 4) === today.slice(0, 4);
  return written(iso, { day: "numeric", month: "short", ...(isThisYear ? {} : { year: "numeric" }) });
}

/** 2026-11-19 is 19 Nov 2026. */
export const day = (iso) => written(iso, { day: "numeric", month: "short", year: "numeric" });

/** 2026-11-19 is Thursday, 19 November 2026. */
export const longDay = (iso) =>
  written(iso, { weekday: "long", day: "numeric", month: "long", year: "numeric" });

/** The day of the month, and the month in short, for the leaf of a calendar. */
export const leaf = (iso) => [String(atMidnight(iso).getUTCDate()), written(iso, { month: "short" }).replace(".", "")];

/** 2026-10 is October 2026. */
export const month = (iso) => written(`${iso}-01`, { month: "long", year: "numeric" });

/** 2026-10 is Oct 2026. */
export const monthInShort = (iso) => written(`${iso}-01`, { month: "short", year: "numeric" });

/** Months, or years, as they stand below an axis: the first of each year as the year, the others as Oct. */
export const onAxis = (months) => months.map((iso, place) =>
  months[place - 1]?.slice(0, 4) === iso.slice(0, 4) ? monthInShort(iso).replace(/\.?\s*\d{4}$/, "") : iso.slice(0, 4));

/** A moment in the zone of the browser: 22 Nov, 14:05. */
export const moment = (iso) =>
  maker(Intl.DateTimeFormat, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }).format(new Date(iso));

/** How many days lie between two days. */
export const daysBetween = (from, to) => Math.round((atMidnight(to).getTime() - atMidnight(from).getTime()) / DAY);

/** In how many days: tomorrow, in 9 days, 3 days ago. */
export const inDays = (days) => maker(Intl.RelativeTimeFormat, { numeric: "auto" }).format(days, "day");

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [["day", DAY], ["hour", 3_600_000], ["minute", 60_000]];

/** How long ago a moment was: 5 minutes ago. */
export function ago(iso, now = Date.now()) {
  const passed = now - Date.parse(iso);
  const [unit, size] = UNITS.find(([, each]) => passed >= each) ?? ["second", Infinity];
  return maker(Intl.RelativeTimeFormat, { numeric: "auto" }).format(-Math.max(0, Math.floor(passed / size)), unit);
}

/** A day moved by months, and kept within its month: a year before 2024-02-29 is 2023-02-28. */
export function monthsBefore(iso, months) {
  const [year, number, dayOfMonth] = iso.slice(0, 10).split("-").map(Number);
  const last = new Date(Date.UTC(year, number - months, 0)).getUTCDate();
  return new Date(Date.UTC(year, number - 1 - months, Math.min(dayOfMonth, last))).toISOString().slice(0, 10);
}

/** A day moved by days. */
export const daysBefore = (iso, days) => new Date(atMidnight(iso).getTime() - days * DAY).toISOString().slice(0, 10);

/** The size of a file: 1.2 MB. */
export function size(bytes) {
  const [unit, one] = bytes < 1_000_000 ? ["kilobyte", 1000] : ["megabyte", 1_000_000];
  const options = { style: "unit", unit, maximumFractionDigits: bytes < 1_000_000 ? 0 : 1 };
  return maker(Intl.NumberFormat, options).format(bytes && Math.max(bytes / one, 1));
}

/** Every charge of the next thirty days as [payment, day, days from today], the first one first; an overdue one is still to come. */
export function comingUp(payments, today) {
  return payments
    .flatMap((payment) => payment.comingCharges.map((date) => [payment, date, daysBetween(today, date)]))
    .sort(([, , one], [, , other]) => one - other);
}
