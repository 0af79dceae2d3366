/** The parts that every place is made of: amounts, days, cards, states, dialogs, toasts. */
import { Away, Refused, forget, useModule } from "./api.js";
import { SignedOut, signIn, signOut } from "./auth.js";
import { amount, amountPattern, day, inDays, leaf, money, percent, shortDay } from "./format.js";
import { CategoryTile, Icon, group } from "./icons.js";
import { address, beside } from "./place.js";
import { html, into, shared, useEffect, useId, useLayoutEffect, useRef, useState } from "./ui.js";
import { named, said, t } from "./words.js";

/** An amount that programs can read too; `signed` writes a plus and colours what came in. */
export function Money({ amount, currency, signed = false }) {
  return html`<data class="money ${signed && amount > 0 ? "in" : ""}" value=${amount}>${money(amount, currency, { signed })}</data>`;
}

export const Day = ({ date, text }) => html`<time datetime=${date.slice(0, 10)}>${text ?? shortDay(date)}</time>`;

/** A card with its title; `aside` stands at the other end of the title's line. */
export function Card({ title, aside, children }) {
  const id = useId();
  return html`<section class="card" aria-labelledby=${title ? id : undefined}>
    ${title && html`<header class="card-head"><h2 id=${id}>${title}</h2>${aside}</header>`}${children}
  </section>`;
}

export const MoreLink = ({ to, children }) =>
  html`<a class="more-link" href=${to}>${children}<${Icon} name="right" size="14" /></a>`;

let hasOpenedAPlace = false; // the first one leaves the focus where the browser has it

/** A place: its one h1, which takes the focus when the place is opened from another one. */
export function Place({ title, text, actions, children }) {
  const heading = useRef();
  useEffect(() => {
    document.title = `${title} · ${t("service")}`;
  }, [title]);
  useLayoutEffect(() => {
    if (hasOpenedAPlace) heading.current.focus({ preventScroll: true });
    hasOpenedAPlace = true;
  }, []);
  return html`<div class="place">
    <header class="place-head">
      <div><h1 ref=${heading} tabindex="-1"><${Name} text=${title} /></h1>${text && html`<p class="soft">${text}</p>`}</div>
      ${actions}
    </header>
    ${children}
  </div>`;
}

const NAME_MAX = 60;

/** A very long name with an ellipsis at its end, for what leads to the whole one; anything but text as it is. */
export const short = (text) => (text?.length > NAME_MAX ? `${text.slice(0, NAME_MAX).trimEnd()}…` : text);

/** A name as a title; of a very long one a press shows the whole. */
function Name({ text }) {
  const [isWhole, setIsWhole] = useState(false);
  if (short(text) === text) return text;
  return html`<button type="button" class="name" aria-expanded=${isWhole} onClick=${() => setIsWhole(!isWhole)}>${isWhole ? text : short(text)}</button>`;
}

/** What stands where something will be. */
export const Bones = ({ rows = 4, tall = false }) =>
  html`<div class="bones ${tall ? "tall" : ""}" role="status" aria-label=${t("loading")}>
    ${Array.from({ length: rows }, (_, index) => html`<span key=${index}></span>`)}
  </div>`;

export const tallBones = html`<div class="card"><div class="bones tall"></div></div>`;
export const chartBones = html`<div class="chart coming"></div>`;
export const barsBones = html`<div class="chart coming tall"></div>`;
export const yearsBones = html`<div class="chart coming tall years"></div>`;

/** A state instead of content: an icon, a sentence, what to do now. */
export function State({ icon, title, text, note, children }) {
  return html`<div class="state">
    ${icon && html`<${Icon} name=${icon} size="32" />`}
    <p class="state-title">${title}</p>
    ${text && html`<p class="soft">${text}</p>`}
    ${children && html`<div class="state-do">${children}</div>`}
    ${note && html`<p class="soft small">${note}</p>`}
  </div>`;
}

/** What stands where bookings will be, once there are any. */
export const NothingYet = () => html`<${State} icon="transactions" title=${t("nothing_yet")} text=${t("nothing_yet_text")}>
  <a class="button" href=${address("/import")}>${t("import_title")}</a>
<//>`;

/** Why something is not here, and what a person can do about it. */
export function Failed({ error, again }) {
  const retry = again && html`<button type="button" onClick=${again}>${t("again")}</button>`;
  let shown;
  if (error instanceof SignedOut) {
    shown = html`<${State} icon="person" title=${t("over")}>
      <button type="button" class="primary" onClick=${signIn}>${t("sign_in")}</button>
    <//>`;
  } else if (error instanceof Away || error instanceof TypeError) {
    // a TypeError is what fetch says of a host that does not answer
    shown = html`<${State} icon="warn" title=${t("away_text")}>${retry}<//>`;
  } else if (error instanceof Refused && error.status === 403 && !error.message.startsWith("Insufficient")) {
    const where = /https?:\/\/\S+/.exec(error.message)?.[0];
    shown = html`<${State} icon="warn" title=${t("lapsed")} text=${t("lapsed_text")}>
      ${where && html`<a class="button primary" href=${where} data-leaves rel="noreferrer">${t("subscribe")}</a>`}
    <//>`;
  } else {
    const id = error.requestId;
    shown = html`<${State} icon="warn" title=${t("failed")} text=${said(error)}
      note=${id && t("request", { id })}>${retry}<//>`;
  }
  return html`<div role="alert">${shown}</div>`;
}

/** Content once it is there; bones before, a sentence where it will not come. */
export function Loaded({ of, bones, children }) {
  if (of.error) return html`<${Failed} error=${of.error} again=${of.again} />`;
  if (of.data === null) return bones ?? html`<${Bones} />`;
  return children(of.data);
}

/** One of a few: `options` are `[key, text, longer text]`. */
export function Segments({ legend, options, value, onChoose }) {
  return html`<div class="segments" role="group" aria-label=${legend}>
    ${options.map(
      ([key, text, long]) => html`<button key=${key} type="button" aria-pressed=${key === value} title=${long}
        onClick=${() => onChoose(key)}>${text}</button>`,
    )}
  </div>`;
}

/** One of many, by the browser's own list. */
export const Choice = ({ name, value, options, onChoose }) =>
  html`<select class="choice" aria-label=${name} value=${value} onChange=${into(onChoose)}>
    ${options.map(([key, text]) => html`<option key=${key} value=${key} selected=${key === value}>${text}</option>`)}
  </select>`;

/** A field for an amount: a browser's own number field loses the comma where the browser speaks another language than the page. */
export const AmountInput = ({ currency, ...given }) => html`<input inputmode="decimal" autocomplete="off" size="8" pattern=${amountPattern(currency)}
  title=${t("amount_such_as", { example: amount(1234.56) })} ...${given} />`;

/** What is known of something: `facts` are pairs of a word's name and a value; those without a value are left out. */
export const Facts = ({ facts }) => html`<dl class="facts">
  ${facts.map(([name, value]) => value && html`<div key=${name}><dt>${t(name)}</dt><dd>${value}</dd></div>`)}
</dl>`;

/** A name and, smaller, what is to be known about it. */
export const Titled = ({ title, about }) =>
  html`<span class="row-text"><span class="row-title">${short(title)}</span><span class="row-about">${about}</span></span>`;

/** A line of a list: a name, what is to be known about it, and what can be done or what it is worth. */
export const Line = ({ title, about, children }) => html`<li class="line tall"><${Titled} title=${html`<${Name} text=${title} />`} about=${about} />${children}</li>`;

/** A modal dialog over the place, open while it is there; Escape and the place around it close it. */
export function Dialog({ title, onClose, children }) {
  const dialog = useRef();
  const id = useId();
  const [depth] = useState(() => openDialogs.get() + 1);
  useLayoutEffect(() => {
    const told = saying.get();
    if (told) saying.set({ ...told, upTo: Math.min(told.upTo, depth - 1) }); // what was said before stays below
    openDialogs.set(depth);
    const opened = dialog.current;
    const opener = /** @type {HTMLElement | SVGElement | null} */ (document.activeElement);
    opened.showModal();
    return () => {
      opened.close();
      openDialogs.set(openDialogs.get() - 1);
      opener?.focus?.({ preventScroll: true });
    };
  }, []);
  const beside = (event) => event.target === dialog.current && onClose();
  const cancelled = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${dialog} aria-labelledby=${id} onClick=${beside} onCancel=${cancelled}>
    <div class="dialog">
      <header class="card-head">
        <h2 id=${id}><${Name} text=${title} /></h2>
        <button type="button" class="round" aria-label=${t("close")} onClick=${onClose}><${Icon} name="close" /></button>
      </header>
      ${children}
    </div>
    <${Toasts} depth=${depth} />
  </dialog>`;
}

const saying = shared(null);
const openDialogs = shared(0);
let sayingEnds = 0;
/** @type {any} */
let sending = null; // the form whose change is on its way
const LONG = 300; // milliseconds
const SAID_FOR = { done: 6000, undo: 12_000, failed: 20_000 }; // milliseconds

/** Say for a while that something was done, with something to do about it (`{text, act}`), or that it was not. */
export function toast(text, action = null, isFailed = false) {
  clearTimeout(sayingEnds);
  saying.set({ text, action, upTo: Infinity });
  sayingEnds = setTimeout(() => saying.set(null), SAID_FOR[isFailed ? "failed" : action ? "undo" : "done"]);
}

/** Say that something is being done, until it is said what came of it. */
function sayWorking() {
  toast(t("working"));
  clearTimeout(sayingEnds);
}

/**
 * Change something and say what came of it, or why not, and meanwhile, if that takes long, that it is being done: the answer, true where there is none, or false if it was not done. `told` makes a sentence of the answer, `next`
 * what can be done about it (`{text, act}`).
 */
export async function tried(work, told, next) {
  const form = window.event?.type === "submit" && window.event.target;
  if (form && form === sending) return false; // pressed twice
  sending = form;
  clearTimeout(sayingEnds);
  sayingEnds = setTimeout(sayWorking, LONG); // unless it is said before what came of it
  try {
    const answer = await work();
    forget();
    toast(told(answer), next?.(answer));
    return answer ?? true;
  } catch (error) {
    toast(error instanceof Away ? t("not_reached") : said(error), null, true);
    return false;
  } finally {
    if (form === sending) sending = null;
  }
}

/** What can be done about a change, for `tried`: it is taken back by `work`. */
export const undoing = (work) => ({ text: t("undo"), act: () => tried(work, () => t("undone")) });

/** Ends the session; where nobody answers it says so. */
export const SignOut = () => html`<button type="button" onClick=${() => signOut().catch(() => toast(t("away_text")))}>
  <${Icon} name="out" />${t("sign_out")}
</button>`;

/**
 * Where toasts appear and screen readers hear them: `depth` dialogs lie below, for a modal one hides and silences what is around it.
 */
export function Toasts({ depth = 0 }) {
  const told = saying.use();
  const shown = openDialogs.use() === depth && told?.upTo >= depth && told;
  const act = () => {
    sayWorking();
    shown.action.act();
  };
  return html`<div class="toasts" role="status" aria-live="polite">
    ${shown &&
    html`<div class="toast">
      <span>${shown.text}</span>
      ${shown.action && html`<button type="button" onClick=${act}>${shown.action.text}</button>`}
    </div>`}
  </div>`;
}

/** Whom a booking is with: the merchant, the other side, or what it is for. */
export const partyOf = (row) => row.merchantName ?? row.counterpartName ?? row.purpose ?? t("no_name");

/** What an account is called: by its name, else by its kind; one that has just gone is still in answers about it. */
export const accountName = (account) =>
  account?.accountName ?? (account?.accountType ? named(account.accountType) : shortIban(account?.iban)) ?? t("account");

/** An account among others, of which two may have one name. */
export const accountAmong = (account) => [accountName(account), named(account.bankName ?? account.bankConnection.bankName)].join(", ");

export const SAID_BY_YOU = "Said by you"; // where the interface says that a balance is from

/** An import by its files, its bank, or the day of the balance that the person said. */
export const nameOfImport = ({ fileNames, source }) =>
  source === SAID_BY_YOU ? t("balance_said", { day: day(fileNames[0].slice(-10)) }) : fileNames.join(", ") || source;

/** The end of an IBAN, by which a person knows it. */
export const shortIban = (iban) => (iban ? `…${iban.slice(-4)}` : null);

/** What stands in one row of a list of bookings. */
export function BookingParts({ row, isFirstOfDay, person, tag = row.category && named(row.category) }) {
  const account = person.byId.get(row.bankAccount.id);
  const name = account ? accountName(account) : row.bankAccount.accountName;
  const title = partyOf(row);
  const about = (row.leftOut ? [t(`left_${row.leftOut}`), name] : [row.splits?.length > 0 && t("splits"), ...(row.tags ?? []), row.note && t("note"), name, row.purpose !== title && row.purpose]).filter(Boolean).join(" · ");
  const written = shortDay(row.bookingDate, person.profile.today).replace(/ (?!\d{4}$)/g, "\u00a0"); // a year may stand below the day
  return html`<span class="row-day ${isFirstOfDay ? "" : "again"}"><${Day} date=${row.bookingDate} text=${written} /></span>
    <${CategoryTile} category=${row.category} />
    <${Titled} title=${title} about=${about} />
    ${tag !== false && html`<span class="row-tag">${tag && html`<span class="tag">${tag}</span>`}</span>`}
    <span class="row-amount"><${Money} amount=${row.amount} currency=${row.currency} signed /></span>`;
}

/** A short list of bookings, each of them a link to all that is known of it. */
export function Bookings({ rows, person, tag }) {
  return html`<ol class="rows">
    ${rows.map((row, index) => {
      const isFirstOfDay = rows[index - 1]?.bookingDate !== row.bookingDate;
      return html`<li key=${row.id}>
        <a class="row" href=${beside({ booking: row.id })}>
          <${BookingParts} row=${row} isFirstOfDay=${isFirstOfDay} person=${person} tag=${tag} />
        </a>
      </li>`;
    })}
  </ol>`;
}

/** In how many days a charge is due, or since when it is overdue. */
export const dueIn = (days) => (days < 0 ? t("overdue", { ago: inDays(days) }) : inDays(days));

/** A leaf of the calendar, what is expected on that day, and in how many days. */
export function Expected({ payment, date, days }) {
  const [number, month] = leaf(date);
  return html`<a class="expected" href=${address("/recurring", { id: payment.id })}>
    <time class="leaf" datetime=${date.slice(0, 10)}><b>${number}</b> <span>${month}</span></time>
    <${Titled} title=${payment.merchantName} about=${dueIn(days)} />
    <${Money} amount=${-payment.amount} currency=${payment.currency} />
  </a>`;
}

/**
 * Categories as bars, the largest first; each leads to its rows, and opens into its finer ones: `asked` are the parameters for what is
 * counted, `amountOf` says which of its totals is shown.
 */
export function CategoryBars({ categories, currency, total, link, asked, amountOf }) {
  const largest = Math.max(...categories.map(({ amount }) => amount), 0.01);
  return html`<ul class="bars">
    ${categories.map(
      ({ category, amount, percentage }) => html`<li key=${category}>
        <a class="bar-row" href=${link(category)}>
          <${CategoryTile} category=${category} />
          <span class="bar-name">${named(category)}</span>
          <${Money} amount=${amount} currency=${currency} />
          <span class="bar-share">${percent(percentage ?? Math.round((100 * amount) / (total || 1)))}</span>
          <${Bar} category=${category} share=${Math.max(0, amount) / largest} />
        </a>
        <${Opening} asked=${{ ...asked, category }} link=${link} amountOf=${amountOf} />
      </li>`,
    )}
  </ul>`;
}

/** A press shows the finer categories of one. */
function Opening(given) {
  const [isOpen, setIsOpen] = useState(false);
  const module = useModule(isOpen && "totals");
  return html`<button type="button" class="round" aria-expanded=${isOpen} aria-label="${t("finer")}: ${named(given.asked.category)}" onClick=${() => setIsOpen(!isOpen)}><${Icon} name="right" size="14" /></button>
    ${isOpen && html`<div><${Loaded} of=${module}>${({ Finer }) => html`<${Finer} ...${given} />`}<//></div>`}`;
}

const Bar = ({ category, share }) =>
  html`<span class="track" aria-hidden="true"><span class="fill ${group(category)}" style=${{ width: `${100 * share}%` }}></span></span>`;
