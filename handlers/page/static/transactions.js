/** Transactions: search as you type, filters in the address, every booking in reach, and one of them in detail. */
import { download, useRead } from "./api.js";
import { Correction } from "./correction.js";
import { day, daysBefore, longDay, monthsBefore } from "./format.js";
import { CategoryTile, Icon } from "./icons.js";
import { LongList } from "./list.js";
import {
  BookingParts, CategoryChoice, Choice, Dialog, Facts, Loaded, Money, MoreLink, Place, State, Told, accountAmong, partyOf, tallBones,
} from "./parts.js";
import { address, go } from "./place.js";
import { html, useEffect, useEvents, useRef, useState } from "./ui.js";
import { named, said, t } from "./words.js";

const TYPING_RESTS = 180; // milliseconds
const FORMATS = [["csv", "CSV"], ["camt053", "camt.053"], ["ofx", "OFX"], ["beancount", "Beancount"], ["jsonl", "JSON Lines"], ["parquet", "Parquet"]];

/**
 * The days of a named period; `from` and `to` where the person chose them.
 * @param {{ period?: string, from?: string, to?: string }} chosen @param {string} today
 */
export function periodDays({ period, from, to }, today) {
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

export default function Transactions({ person, parameters }) {
  const filters = Object.fromEntries(["search", "account", "category", "period", "from", "to"].map((name) => [name, parameters.get(name) ?? ""]));
  const id = parameters.get("id");
  const [isExporting, setIsExporting] = useState(false);
  const change = (changed, options) => go(address("/transactions", { ...filters, ...changed }), options);
  const days = periodDays(filters, person.profile.today);
  const isBackwards = days.dateFrom && days.dateTo && days.dateFrom > days.dateTo;
  const asked = {
    accountIds: filters.account || person.ids, category: filters.category, search: filters.search.trim(),
    dateFrom: isBackwards ? days.dateTo : days.dateFrom, dateTo: isBackwards ? days.dateFrom : days.dateTo,
  };
  const list = useRead("/transactions", { ...asked, perPage: 100 });
  const link = (row) => address("/transactions", { ...filters, id: row.id });
  return html`<${Place} title=${t("transactions")}>
    <${Filters} filters=${filters} change=${change} person=${person} />
    <${Loaded} of=${list} bones=${tallBones}>
      ${(first) => {
        const { total } = first.pagination;
        return html`<div class="found"><p role="status">${t("n_transactions", { n: total })}</p>
            ${total > 0 && html`<button type="button" onClick=${() => setIsExporting(true)}><${Icon} name="download" size="18" />${t("export")}…</button>`}</div>
          ${isExporting && html`<${Export} asked=${asked} total=${total} onClose=${() => setIsExporting(false)} />`}
          <section class="card flush ${list.isStale ? "stale" : ""}" aria-label=${t("transactions")}>
            ${total === 0
              ? html`<${State} icon="search" title=${t("none_found")} text=${t("none_found_text")}>
                  <button type="button" onClick=${() => go(address("/transactions"))}>${t("clear_filters")}</button>
                <//>`
              : html`<${LongList} path="/transactions" parameters=${asked} rowsOf=${(answer) => answer.transactions} first=${first}
                  total=${total} label=${t("transactions")} link=${link}>
                  ${(row, _, before) => html`<${BookingParts} row=${row} person=${person}
                    isFirstOfDay=${before?.bookingDate !== row.bookingDate} />`}
                <//>`}
          </section>`;
      }}
    <//>
    ${id && html`<${Detail} key=${id} id=${id} person=${person} onClose=${() => change({})} />`}
  <//>`;
}

function Filters({ filters, change, person }) {
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
  const leave = (event) => event.key === "Escape" && text && (event.preventDefault(), setText(""));
  const periods = [["", "all_time"], ["30", "last_30"], ["month", "this_month"], ["before", "last_month"], ["year", "this_year"], ["lastyear", "last_year"], ["other", "other_period"]];
  const periodOf = (period) => change(period === "other" ? { period } : { period, from: "", to: "" });
  return html`<div class="filters" role="search">
    <div class="search">
      <${Icon} name="search" />
      <input ref=${field} type="search" aria-label=${t("search_label")} placeholder=${t("search")} value=${text} maxlength="200"
        onInput=${(event) => setText(event.target.value)} onKeyDown=${leave} autocomplete="off" spellcheck="false" enterkeyhint="search" />
      <kbd aria-hidden="true">/</kbd>
    </div>
    <${Choice} name=${t("account")} value=${filters.account} onChoose=${(account) => change({ account })}
      options=${[["", t("all_accounts")], ...person.accounts.map((account) => [account.id, accountAmong(account)])]} />
    <${CategoryChoice} value=${filters.category} onChoose=${(category) => change({ category })} none=${t("all_categories")} />
    <${Choice} name=${t("period")} value=${filters.period} onChoose=${periodOf} options=${periods.map(([key, name]) => [key, t(name)])} />
    ${filters.period === "other" &&
    html`<label class="date">${t("from")} <input type="date" value=${filters.from} onChange=${(event) => change({ from: event.target.value })} /></label>
      <label class="date">${t("to")} <input type="date" value=${filters.to} onChange=${(event) => change({ to: event.target.value })} /></label>`}
  </div>`;
}

function Detail({ id, person, onClose }) {
  const path = `/transactions/${encodeURIComponent(id)}`;
  const row = useRead(path);
  const reasons = useRead(`${path}/explanation`);
  const isUnknown = row.error?.status === 404 || row.error?.status === 400;
  return html`<${Dialog} title=${t("row")} onClose=${onClose}>
    ${isUnknown
      ? html`<${State} icon="warn" title=${t("row_unknown")} />`
      : html`<${Loaded} of=${row}>${(data) => html`<${DetailText} row=${data} reasons=${reasons.data} person=${person} onClose=${onClose} />`}<//>`}
  <//>`;
}

function DetailText({ row, reasons, person, onClose }) {
  const account = person.byId.get(row.bankAccount.id);
  const facts = [
    ["account", account ? accountAmong(account) : row.bankAccount.bankConnection.bankName],
    ["booked", longDay(row.bookingDate)],
    ["valued", row.valueDate && row.valueDate !== row.bookingDate && day(row.valueDate)],
    ["kind", row.type && named(row.type)],
    ["counterpartName", row.counterpartName !== partyOf(row) && row.counterpartName],
    ["counterpartIban", row.counterpartIban?.replace(/(.{4})(?=.)/g, "$1 ")],
    ["bank", row.counterpartBankName],
    ["purpose", row.purpose !== partyOf(row) && row.purpose],
    ["counterpartMandateReference", row.counterpartMandateReference],
    ["counterpartCreditorId", row.counterpartCreditorId],
    ["why_category", reasons && html`<${Told} text=${reasons.category.reason} />`],
    ["why_transfer", reasons?.transfer.rule && html`<${Told} text=${reasons.transfer.reason} />`],
  ];
  return html`
    <div class="detail-head">
      <${CategoryTile} category=${row.category} />
      <div class="row-text"><p class="detail-title">${partyOf(row)}</p><p class="soft">${row.category && named(row.category)}</p></div>
    </div>
    <p class="figure medium"><${Money} amount=${row.amount} currency=${row.currency} signed /></p>
    ${row.isPotentialDuplicate && html`<p class="caution">${t("duplicate")}</p>`}
    ${row.isAdjustingEntry && html`<p class="caution">${t("adjusting")}</p>`}
    <${Facts} facts=${facts} />
    ${!row.isAdjustingEntry && html`<${Correction} row=${row} onDone=${onClose} />`}
    ${row.merchantName && html`<p><${MoreLink} to=${address("/transactions", { search: row.merchantName })}>${t("more_like", { name: row.merchantName })}<//></p>`}
  `;
}

/** What the filters let through as a file: `asked` are the filters of the list, `total` is how many transactions they let through. */
function Export({ asked, total, onClose }) {
  const [format, setFormat] = useState("csv");
  const [state, setState] = useState(null); // what is said: that it is being written, or what went wrong
  const save = async () => {
    setState(t("exporting"));
    try {
      await download("/transactions/export", { ...asked, format });
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
