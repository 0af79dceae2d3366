/** What a person looks for, as the interface is asked for it. */
import { daysBefore, isUnclear, monthsBefore } from "./format.js";

/** The filters of the list of bookings, as its address names them. */
export const FILTERS = ["search", "account", "category", "period", "from", "to", "merchant", "flag", "tag"];

const CURRENCY = String.raw`(?:€|\$|£|EUR|USD|GBP|CHF)`;
const BESIDE_A_NUMBER = new RegExp(String.raw`(?<=\d)\s*${CURRENCY}(?!\S)|(?<!\S)${CURRENCY}\s*(?=[-−+]?\d)`, "gi");
const SPACED = /(?<!\S)[-−+]?\d{1,3}(?:\s\d{3})+(?=[.,]\d{1,2}(?!\S))/g;
const AMOUNT = /^([-−+]?)([1-9]\d{0,2}(?:[.,'’]\d{3})+|0|[1-9]\d{0,5})(?:[.,](\d{1,2}))?$/;

/**
 * What is typed into the search: an amount with its decimals finds that amount, beside words too; a whole number alone every amount
 * that begins so; an IBAN those with it. What stands in quotation marks is text, whatever it looks like.
 * @param {string} typed
 */
export function wanted(typed) {
  const text = typed.trim();
  if (/^[a-z]{2}\d{2}( ?[a-z\d]{4}){2,7} ?[a-z\d]{0,3}$/i.test(text)) return { search: "", counterpartIban: text };
  const quoted = /^["„“](.*?)["“”]?$/.exec(text);
  if (quoted) return { search: quoted[1].trim() };
  const words = text.replaceAll(BESIDE_A_NUMBER, "").replaceAll(SPACED, (number) => number.replaceAll(/\s/g, "")).split(/\s+/);
  const amounts = words.map((word) => (isUnclear(word) ? null : AMOUNT.exec(word)));
  const at = amounts.findIndex((amount) => amount && (amount[3] || words.length === 1));
  if (at < 0) return { search: text };
  const [, sign, digits, decimals] = amounts[at];
  const whole = digits.replaceAll(/\D/g, "");
  return {
    search: words.filter((_, index) => index !== at).join(" "), direction: { "": "", "+": "in" }[sign] ?? "out",
    amountMin: decimals ? `${whole}.${decimals}` : whole, amountMax: `${whole}.${decimals ?? "99"}`,
  };
}

/**
 * The days of a named period; `from` and `to` where the person chose them.
 * @param {{ period?: string, from?: string, to?: string }} chosen @param {string} today
 */
function periodDays({ period, from, to }, today) {
  const first = `${today.slice(0, 7)}-01`;
  const year = Number(today.slice(0, 4));
  const days = {
    30: [daysBefore(today, 29), today],
    month: [first, today],
    before: [monthsBefore(first, 1), daysBefore(first, 1)],
    year: [`${year}-01-01`, today],
    lastyear: [`${year - 1}-01-01`, `${year - 1}-12-31`],
    other: [from ?? "", to ?? ""],
  }[period] ?? ["", ""];
  return { dateFrom: days[0], dateTo: days[1] };
}

/** The parameters of the interface for these filters; days in the wrong order are taken in the right one. */
export function askedFor(filters, { profile }) {
  const { dateFrom, dateTo } = periodDays(filters, profile.today);
  const isBackwards = dateFrom && dateTo && dateFrom > dateTo;
  return {
    accountIds: filters.account, category: filters.category, merchant: filters.merchant, flag: filters.flag,
    ...wanted(filters.search ?? ""), searchIn: filters.search && "annotation", dateFrom: isBackwards ? dateTo : dateFrom, dateTo: isBackwards ? dateFrom : dateTo,
  };
}

/** The days of a month as filters. */
export const daysOf = (month) => ({ period: "other", from: `${month}-01`, to: daysBefore(monthsBefore(`${month}-01`, -1), 1) });

/** Every month from the first group to the last one, those without a booking too: as bars want them. */
export function everyMonth(groups) {
  if (groups.length === 0) return [];
  const known = new Map(groups.map(({ key, income, expenses, net }) => [key, { month: key, income, expenses, net }]));
  const months = [];
  for (let month = groups[0].key; month <= groups.at(-1).key; month = monthsBefore(`${month}-01`, -1).slice(0, 7))
    months.push(known.get(month) ?? { month, income: 0, expenses: 0, net: 0 });
  return months;
}
