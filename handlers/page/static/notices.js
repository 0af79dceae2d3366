/** What there is to do, in one place: each notice with the one step that settles it, and a way to put it off or away. */
import { OPEN, change, one, useRead } from "./api.js";
import { daysBefore } from "./format.js";
import { Icon } from "./icons.js";
import { Card, accountName, tried, undoing } from "./parts.js";
import { AUTH_URL, address } from "./place.js";
import { SameAccounts } from "./same-account.js";
import { html } from "./ui.js";
import { t } from "./words.js";

const RECENT = 60; // days in which bookings are sorted
const AT_ONCE = 4; // the others are a press away
const RESTS = -7; // days until what was put off comes again

export default function Notices({ person }) {
  const open = useRead("/notices", OPEN).data?.notices ?? [];
  const asked = open.some(({ kind }) => kind === "account.same");
  const known = useRead(asked && "/accounts/hidden").data;
  const hidden = (asked && known?.accounts) || []; // once it is answered, what was known of it is past
  const questions = hidden.filter(({ perhapsSameAs }) => perhapsSameAs);
  const told = open.filter(({ kind }) => kind !== "account.same");
  const ordered = [...told.filter(({ interrupts }) => interrupts), ...told.filter(({ interrupts }) => !interrupts)];
  const items = [
    ...(questions.length > 0 ? [html`<${SameAccounts} key="same" accounts=${questions} person=${person} />`] : []),
    ...ordered.map((notice) => html`<${Notice} key=${notice.id} notice=${notice} person=${person} />`),
  ];
  if (items.length === 0) return null;
  const more = items.slice(AT_ONCE);
  return html`<${Card} title=${t("needs_you")}><ul class="plain">${items.slice(0, AT_ONCE)}</ul>
    ${more.length > 0 && html`<details><summary>${t("n_more", { n: more.length })}</summary><ul class="plain">${more}</ul></details>`}
  <//>`;
}

export function Notice({ notice, person }) {
  const { id, title, text, accountIds, state } = notice;
  const isOver = ["over", "withdrawn"].includes(state);
  const { to, leaves, word = "look", icon = "warn" } = stepOf(notice, person.profile.today);
  const account = accountIds.length === 1 && person.byId.get(accountIds[0]);
  const set = (body) => change("PATCH", one("notices", id), { body });
  const put = (body, sentence) => () => tried(() => set(body), () => t(sentence), () => undoing(() => set({ state: "open" })));
  const about = account ? `${accountName(account)}: ` : "";
  return html`<li class="need">
    <${Icon} name=${icon} />
    <p><strong>${title}</strong> ${about}${text}</p>
    <span class="buttons">
      ${!isOver && html`<button type="button" class="quiet" onClick=${put({ state: "snoozed", until: daysBefore(person.profile.today, RESTS) }, "notice_later_done")}>${t("notice_later")}</button>
      <button type="button" class="quiet" onClick=${put({ state: "dismissed" }, "notice_away_done")}>${t("notice_away")}</button>`}
      <a class="more-link" href=${to} data-leaves=${leaves ? "" : undefined}>${t(word, { n: notice.transactionIds.length })}<${Icon} name="right" size="14" /></a>
    </span>
  </li>`;
}

/** Where the one step of a notice is taken, and what it is called. */
function stepOf({ kind, accountIds: [account], transactionIds: ids, subscriptionId, connectionId }, today) {
  const [topic] = kind.split(".");
  if (connectionId) return { to: `${AUTH_URL}/account/connect?connection=${connectionId}`, leaves: true, word: "renew" };
  if (topic === "access" || topic === "server") return { to: `${AUTH_URL}/${topic === "access" ? "account" : "operator"}`, leaves: true };
  if (kind === "ledger.wrong") return { to: address("/import"), word: "import_title" };
  if (kind === "booking.unsorted") {
    const since = daysBefore(today, RECENT - 1);
    return { to: address("/transactions", { flag: "uncategorised", period: "other", from: since, to: today }), word: "sort_them", icon: "transactions" };
  }
  if (kind === "booking.duplicate" && ids.length > 1) return { to: address("/transactions", { flag: "possible_duplicate" }), icon: "transactions" };
  if (topic === "price" || topic === "income") return { to: address("/recurring", { id: subscriptionId }), icon: "recurring" };
  return ids.length > 0 ? { to: address("/transactions", { id: ids[0] }) } : { to: address("/accounts", { id: account }) };
}
