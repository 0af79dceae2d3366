/** Transactions: search as you type, filters in the address, every booking in reach, and one of them in detail. */
import { download, useRead } from "./api.js";
import { amount, month, monthsBefore } from "./format.js";
import { Icon } from "./icons.js";
import { LongList } from "./list.js";
import { PlaceChoice, filterOf, placeIn, useNames } from "./own-categories.js";
import { BookingParts, Choice, Dialog, Loaded, NothingYet, Place, State, accountAmong, tallBones } from "./parts.js";
import { Pick } from "./pick.js";
import { address, beside, go } from "./place.js";
import { FILTERS, askedFor, daysOf } from "./searched.js";
import { Finer, Totals, useTotals } from "./totals.js";
import { html, into, useEffect, useEvents, useRef, useState } from "./ui.js";
import { named, said, t } from "./words.js";

const TYPING_RESTS = 180; // milliseconds
const WITH_WORDS = "detailedCategory,annotation"; // formats without a place for them leave them out
const FORMATS = [["csv", "CSV"], ["camt053", "camt.053"], ["ofx", "OFX"], ["beancount", "Beancount"], ["jsonl", "JSON Lines"], ["parquet", "Parquet"]];

export default function Transactions({ person, parameters }) {
  const filters = Object.fromEntries(FILTERS.map((name) => [name, parameters.get(name) ?? ""]));
  const [isExporting, setIsExporting] = useState(false);
  const [turn, setTurn] = useState(0); // of the filters, which lose what was typed and not yet asked for
  const clear = () => {
    setTurn(turn + 1);
    go(address("/transactions"));
  };
  const asked = { ...askedFor(filters, person), category: "", ...filterOf(filters.category), tag: filters.tag };
  const listed = { ...asked, include: WITH_WORDS };
  const list = useRead("/transactions/search", { ...listed, perPage: 100 });
  const isWhole = [useTotals(asked), useRead("/tags")].every(({ data, error }) => data || error); // nothing moves what is read already
  const name = useNames();
  const link = (row) => address("/transactions", { ...filters, id: row.id });
  return html`<${Place} title=${t("transactions")}>
    <${Filters} key=${turn} filters=${filters} person=${person} />
    <${Meant} asked=${asked} filters=${filters} />
    <${Loaded} of=${isWhole || list.error ? list : { data: null }} bones=${tallBones}>
      ${(first) => {
        const { total } = first.pagination;
        return html`<div class="found"><p role="status">${t("rows", { n: total })}</p>
            ${total > 0 && html`<button type="button" onClick=${() => setIsExporting(true)}><${Icon} name="download" size="18" />${t("export")}…</button>`}</div>
          ${isExporting && html`<${Export} asked=${{ ...asked, accountIds: filters.account || person.ids }} total=${total} isEverything=${!Object.values(filters).some(Boolean)} onClose=${() => setIsExporting(false)} />`}
          ${total > 0 && html`<section class="card" aria-label=${t("sum_title")}><${Totals} asked=${asked} person=${person}
            link=${(month) => address("/transactions", { ...filters, ...daysOf(month) })} />
            ${asked.category && html`<${Divided} key=${asked.category} asked=${asked} link=${(category) => address("/transactions", { ...filters, category })} />`}</section>`}
          <section class="card flush ${list.isStale ? "stale" : ""}" aria-label=${t("transactions")}>
            ${total === 0
              ? Object.values(filters).some(Boolean)
                ? html`<${State} icon="search" title=${t("none_found")} text=${t("none_found_text")}>
                    <button type="button" onClick=${clear}>${t("clear_filters")}</button>
                  <//>`
                : html`<${NothingYet} />`
              : html`<${LongList} path="/transactions/search" parameters=${listed} rowsOf=${(answer) => answer.transactions} first=${first}
                  total=${total} label=${t("transactions")} link=${link}>
                  ${(row, _, before) => html`<${BookingParts} row=${row} person=${person} tag=${row.category && name(placeIn(row))}
                    isFirstOfDay=${before?.bookingDate !== row.bookingDate} />`}
                <//>`}
          </section>
          <${TakenBack} accountIds=${asked.accountIds} person=${person} />`;
      }}
    <//>
  <//>`;
}

/** What a category holds, once somebody wants to know. */
function Divided(given) {
  const [isOpen, setIsOpen] = useState(false);
  return html`<details onToggle=${(event) => setIsOpen(event.target.open)}><summary>${t("finer")}</summary>${isOpen && html`<${Finer} ...${given} signed />`}</details>`;
}

/** How what was typed is understood where it is an amount, and the filter that has no field, with its way back. */
function Meant({ asked: { amountMin, amountMax }, filters: { search, flag } }) {
  const text = search.trim();
  return html`${amountMin && html`<p class="soft small" role="status">
      ${t(amountMin === amountMax ? "amounts_exact" : "amounts_between", { from: amount(amountMin), to: amount(amountMax) })}
      ${" "}<a href=${beside({ search: `"${text}"` })}>${t("search_as_text", { text })}</a></p>`}
    ${flag && html`<p class="chips"><a class="chip" href=${beside({ flag: "" })} aria-label=${t("take_off", { name: t(`flag_${flag}`) })}>${t(`flag_${flag}`)}<${Icon} name="close" size="14" /></a></p>`}`;
}

/** What banks have taken back of these accounts, below all that counts. */
function TakenBack({ accountIds, person }) {
  const { data } = useRead("/transactions/taken-back", { accountIds });
  const rows = data?.transactions ?? [];
  if (rows.length === 0) return null;
  return html`<details class="taken-back">
    <summary>${t("taken_back", { n: rows.length })}</summary>
    <p class="soft">${t("taken_back_text")}</p>
    <ol class="rows">${rows.map((row, index) => html`<li key=${row.id} class="row">
      <${BookingParts} row=${row} person=${person} isFirstOfDay=${rows[index - 1]?.bookingDate !== row.bookingDate} />
    </li>`)}</ol>
  </details>`;
}

function Filters({ filters, person }) {
  // beside what the address says by then: another filter may have been chosen while the search waited
  const change = (changed, options) => go(beside(changed), options);
  const [text, setText] = useState(filters.search);
  const field = useRef();
  const typed = useRef(filters.search);
  useEffect(() => {
    if (filters.search !== typed.current) setText((typed.current = filters.search)); // cleared, or gone back
  }, [filters.search]);
  useEffect(() => {
    if (text === filters.search) return undefined;
    const timer = setTimeout(() => change({ search: (typed.current = text) }, { replace: true }), TYPING_RESTS);
    return () => clearTimeout(timer);
  }, [text]);
  useEvents({
    keydown: (event) => {
      if (event.key !== "/" || event.target.closest("input, select, textarea, dialog")) return;
      event.preventDefault();
      field.current.focus();
    },
  });
  const used = useRead("/tags").data?.tags.map(({ name }) => name) ?? [];
  const tags = !filters.tag || used.includes(filters.tag) ? used : [filters.tag, ...used];
  const leave = (event) => event.key === "Escape" && text && (event.preventDefault(), setText(""));
  return html`<div class="filters" role="search">
    <div class="search">
      <${Icon} name="search" />
      <input ref=${field} type="search" aria-label=${t("search_label")} placeholder=${t("search")} value=${text} maxlength="200"
        onInput=${into(setText)} onKeyDown=${leave} autocomplete="off" spellcheck="false" enterkeyhint="search" />
      <kbd aria-hidden="true">/</kbd>
    </div>
    <${Choice} name=${t("account")} value=${filters.account} onChoose=${(account) => change({ account })}
      options=${[["", t("all_accounts")], ...person.accounts.map((account) => [account.id, accountAmong(account)])]} />
    <${PlaceChoice} value=${filters.category} onChoose=${(category) => change({ category })} none=${t("all_categories")} />
    <${PayeeChoice} value=${filters.merchant} onChoose=${(merchant) => change({ merchant })} />
    <${PeriodChoice} filters=${filters} today=${person.profile.today} onChoose=${change} />
    ${tags.length > 0 && html`<${Choice} name=${t("tags")} value=${filters.tag} onChoose=${(tag) => change({ tag })} options=${[["", t("all_tags")], ...tags.map((tag) => [tag, tag])]} />`}
    ${filters.period === "other" && !spanOf(filters) &&
    html`<label class="date">${t("from")} <input type="date" value=${filters.from} onChange=${(event) => change({ from: event.target.value })} /></label>
      <label class="date">${t("to")} <input type="date" value=${filters.to} onChange=${(event) => change({ to: event.target.value })} /></label>`}
  </div>`;
}

/** One of all merchants, payees and payers, those with the most money first. */
function PayeeChoice({ value, onChoose }) {
  const [isWanted, setIsWanted] = useState(false);
  const { data } = useRead(isWanted && "/transactions/totals", { groupBy: "merchant", limit: 1000 });
  const names = data?.groups.map(({ keys }) => keys.merchant).filter(Boolean) ?? [];
  return html`<${Pick} name=${t("counterpartName")} value=${value} onChoose=${onChoose} onOpen=${() => setIsWanted(true)}
    options=${[["", t("all_payees")], ...names.map((name) => [name, named(name)])]} />`;
}

const NAMED = [["", "all_time"], ["30", "last_30"], ["month", "this_month"], ["before", "last_month"], ["year", "this_year"], ["lastyear", "last_year"], ["other", "other_period"]];
const MONTHS = 120; // as far back as they can be picked by name

const yearOf = (year) => ({ period: "other", from: `${year}-01-01`, to: `${year}-12-31` });

/** The month or year, as `2026-10` or `2026`, that the chosen days are; "" for all others. */
function spanOf({ period, from, to }) {
  const isFrom = (days) => period === "other" && days.from === from && days.to === to;
  return [from.slice(0, 7), from.slice(0, 4)].find((span) => span && isFrom(span.length > 4 ? daysOf(span) : yearOf(span))) ?? "";
}

/** A named period, a month or a year, found by typing ("oct 2025"). */
function PeriodChoice({ filters, today, onChoose }) {
  const months = Array.from({ length: MONTHS }, (_, back) => monthsBefore(`${today.slice(0, 7)}-01`, back).slice(0, 7));
  const years = [...new Set(months.map((each) => each.slice(0, 4)))];
  const choose = (key) => {
    if (/^\d{4}/.test(key)) onChoose(key.length > 4 ? daysOf(key) : yearOf(key));
    else onChoose({ period: key, from: "", to: "" });
  };
  return html`<${Pick} name=${t("period")} value=${spanOf(filters) || filters.period} onChoose=${choose}
    options=${[...NAMED.map(([key, name]) => [key, t(name)]), ...months.map((each) => [each, month(each)]), ...years.map((each) => [each, each])]} />`;
}

/** What the filters let through as a file: `asked` are the filters of the list, `total` is how many transactions they let through, `isEverything` whether that is all. */
function Export({ asked, total, isEverything, onClose }) {
  const [format, setFormat] = useState("csv");
  const [state, setState] = useState(null); // what is said: that it is being written, or what went wrong
  const save = async () => {
    setState(t("exporting"));
    try {
      await download("/transactions/export", { ...asked, amounts: "size", include: WITH_WORDS + (format === "jsonl" && isEverything ? ",everything" : ""), format });
      onClose();
    } catch (error) {
      setState(said(error));
    }
  };
  return html`<${Dialog} title=${t("export")} onClose=${onClose}>
    <p>${t("export_text", { n: total })}</p>
    <div class="field"><span class="label">${t("format")}</span>
      <${Choice} name=${t("format")} value=${format} onChoose=${setFormat} options=${FORMATS} />
      <p class="soft small">${t(`format_${format}`)}</p>
    </div>
    <p class="soft small" role="status">${state}</p>
    <p class="buttons"><button type="button" class="primary" onClick=${save}>${t("save_file")}</button></p>
  <//>`;
}
