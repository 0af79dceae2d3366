/** What needs its person, in one place: each with the one step that settles it. */
import { useOngoing, useRead } from "./api.js";
import { daysBefore, money, shortDay } from "./format.js";
import { Icon } from "./icons.js";
import { Card, Told, accountName } from "./parts.js";
import { AUTH_URL, address } from "./place.js";
import { SameAccounts } from "./same-account.js";
import { html } from "./ui.js";
import { reminderOf, t } from "./words.js";

const WRONG = ["gap", "statement_differs", "balance_differs"];
const RECENT = 60; // days: what is older was lived with
const AT_ONCE = 4; // the others are a press away

export default function Needs({ person }) {
  const { profile: { today } } = person;
  const since = daysBefore(today, RECENT - 1);
  const connections = useRead("/connections").data?.connections ?? [];
  const hidden = useRead("/accounts/hidden").data?.accounts ?? [];
  const ledgers = useRead("/integrity").data?.accounts ?? [];
  const payments = useOngoing(person).data?.subscriptions ?? [];
  const unsorted = useRead("/transactions/search", { flag: "uncategorised", dateFrom: since, perPage: 1 }).data?.pagination.total;
  const problems = ledgers.flatMap(({ accountId, problems: all }) => all.map((each) => ({ ...each, account: accountName(person.byId.get(accountId)) })));
  const doubles = problems.filter(({ kind, from }) => kind === "possible_duplicate" && from >= since);
  const questions = hidden.filter(({ perhapsSameAs }) => perhapsSameAs);
  const needs = [
    ...connections.map((each) => [each, reminderOf(each)]).filter(([, reminder]) => reminder).map(([{ bankName, id }, reminder]) =>
      html`<${Need} key=${id} to="${AUTH_URL}/account/connect?connection=${id}" leaves step=${t("renew")} about=${bankName}><strong>${bankName}:</strong> ${reminder}<//>`),
    ...(questions.length > 0 ? [html`<${SameAccounts} key="same" accounts=${questions} person=${person} />`] : []),
    ...problems.filter(({ kind }) => WRONG.includes(kind)).map(({ account, message }) =>
      html`<${Need} key=${account + message} to=${address("/import")} step=${t("import_title")} about=${account}><${Told} text="${account}: ${message}" /><//>`),
    ...(doubles.length > 0 ? [html`<${Need} key="double" icon="transactions" step=${t("look")} about=${t("flag_possible_duplicate")}
      to=${address("/transactions", doubles.length > 1 ? { flag: "possible_duplicate" } : { id: doubles[0].transactionIds[0] })}>${t("need_double", { n: doubles.length })}<//>`] : []),
    ...payments.filter(({ priceChange }) => priceChange?.amount > 0 && priceChange.since.slice(0, 10) >= since).map(({ id, merchantName, amount, currency, priceChange }) =>
      html`<${Need} key=${id} icon="recurring" to=${address("/recurring", { id })} step=${t("look")} about=${merchantName}>
        ${t("need_price", { name: merchantName, day: shortDay(priceChange.since, today), more: money(priceChange.amount, currency), amount: money(amount, currency) })}<//>`),
    ...(unsorted > 0 ? [html`<${Need} key="unsorted" icon="transactions" to=${address("/transactions", { flag: "uncategorised", period: "other", from: since, to: today })}
      step=${t("sort_them", { n: unsorted })} about=${t("flag_uncategorised")}>${t("need_category", { n: unsorted, days: RECENT })}<//>`] : []),
  ];
  if (needs.length === 0) return null;
  const more = needs.slice(AT_ONCE);
  return html`<${Card} title=${t("needs_you")}><ul class="plain">${needs.slice(0, AT_ONCE)}</ul>
    ${more.length > 0 && html`<details><summary>${t("n_more", { n: more.length })}</summary><ul class="plain">${more}</ul></details>`}
  <//>`;
}

const Need = ({ icon = "warn", to, leaves = false, step, about, children }) => html`<li class="need">
  <${Icon} name=${icon} /><p>${children}</p>
  <a class="more-link" href=${to} data-leaves=${leaves ? "" : undefined} aria-label="${step}: ${about}">${step}<${Icon} name="right" size="14" /></a>
</li>`;
