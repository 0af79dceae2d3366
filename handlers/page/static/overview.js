/** The overview: what there is, how it came about, what is coming. */
import { OPEN, change, minute, ongoing, preload, useModule, useOngoing, useRead } from "./api.js";
import { Course, Legend, MonthBars } from "./charts.js";
import { ago, comingUp, day, daysBefore, money, monthsBefore, sum } from "./format.js";
import { FirstRun } from "./first-run.js";
import { Bookings, Card, CategoryBars, Expected, Loaded, Money, MoreLink, NothingYet, Place, Segments, Titled, accountName, chartBones, shortIban } from "./parts.js";
import { address } from "./place.js";
import { SyncButton } from "./sync.js";
import { html, useState } from "./ui.js";
import { named, t } from "./words.js";

const PERIODS = [["3", "m3"], ["6", "m6"], ["12", "m12"], ["24", "m24"], ["", "m_all"]]; // in months; the last one is all time

export default function Overview({ person }) {
  return person.accounts.length === 0 ? html`<${FirstRun} person=${person} />` : html`<${Figures} person=${person} />`;
}

/** All that is shown here, in one request: what each part would ask for, and its answer. */
export async function atOnce() {
  const [all] = await Promise.all([change("GET", "/overview"), preload("notices", "forecast")]);
  const { accounts: { accounts }, profile: { today } } = all;
  const [ids, spendable] = [accounts, spendableOf(accounts)].map((each) => each.map(({ id }) => id).join(","));
  return [
    ["/profile", {}, all.profile],
    ["/accounts", {}, all.accounts],
    ["/notices", OPEN, all.notices],
    ["/snapshot", { accountIds: ids }, all.snapshot],
    ["/balances", course(MONTHS, today), all.balances],
    ["/cashflow", { accountIds: ids, months: 12 }, all.cashflow],
    ["/transactions", { accountIds: ids, perPage: 8 }, all.latest],
    ["/subscriptions/details", ongoing(ids), all.recurring],
    ["/forecast", { accountIds: spendable, days: "30" }, all.forecast],
  ].filter(([, , answer]) => answer);
}

const MONTHS = "12"; // shown first

/** How the course of balances over so many months is asked for. */
const course = (months, today) => ({
  dateFrom: months && monthsBefore(today, Number(months)), dateTo: today, every: months && months !== "24" ? "day" : "week",
});

const SPENDABLE = ["checking", "credit_card", null]; // null: its bank does not say what it is

export const isSpendable = ({ accountType }) => SPENDABLE.includes(accountType ?? null);

/** The accounts whose money can be spent, all of them where none is known to be such. */
export function spendableOf(accounts) {
  const own = accounts.filter(isSpendable);
  return own.length > 0 ? own : accounts;
}

function Figures({ person }) {
  const [months, setMonths] = useState(MONTHS);
  minute.use();
  const balances = useRead("/balances", course(months, person.profile.today));
  const dated = new Map(balances.data?.accounts.map((each) => [each.accountId, each]));
  // An old statement that came in a minute ago brings nothing up to date
  const current = person.accounts.filter(({ id }) => dated.get(id)?.isOld === false);
  const synced = current.map(({ lastSyncedAt }) => lastSyncedAt).filter(Boolean).sort().at(-1);
  const updated = balances.data ? synced && t("updated", { ago: ago(synced) }) : "\u00a0";
  return html`<${Place} title=${t("overview")} text=${updated} actions=${html`<${SyncButton} />`}>
    <${Later} name="notices" bones=${false} person=${person} />
    <div class="overview">
      <${Total} person=${person} balances=${balances} months=${months} setMonths=${setMonths} />
      <${Accounts} person=${person} dated=${dated} />
      <${Later} name="forecast" bones=${html`<${Card}>${chartBones}<//>`} person=${person} />
      <${ComingUp} person=${person} />
      <${LastMonths} person=${person} />
      <${Spending} person=${person} />
      <${Latest} person=${person} />
    </div>
  <//>`;
}

/** A part that is loaded after what is seen first. */
function Later({ name, bones, ...given }) {
  const module = useModule(name);
  return module.data ? html`<${module.data.default} ...${given} />` : html`<${Loaded} of=${module} bones=${bones} />`;
}

function Total({ person, balances, months, setMonths }) {
  const isKnown = person.accounts.some(({ balance }) => balance !== null);
  const { currency } = person;
  const snapshot = useRead("/snapshot", { accountIds: person.ids });
  const held = (balances.data?.accounts ?? []).filter(({ balance }) => balance !== null);
  const old = held.filter(({ isOld }) => isOld);
  const isAllOld = old.length === held.length;
  const choice = html`<${Segments} legend=${t("period")} value=${months} onChoose=${setMonths}
    options=${PERIODS.map(([key, name]) => [key, t(name), t(`${name}_long`)])} />`;
  return html`<section class="card total" aria-labelledby="total">
    <div class="total-head">
      <div>
        <h2 id="total" class="figure-name">${t("total_balance")}</h2>
        <${Loaded} of=${snapshot} bones=${html`<p class="figure coming"></p>`}>
          ${({ totalBalance }) => html`<p class="figure">${isKnown ? html`<${Money} amount=${totalBalance} currency=${currency} />` : "–"}</p>`}
        <//>
        ${old.length > 0 && html`<p class="soft">${isAllOld ? asOf(old) : t("part_of_total", {
          amount: money(sum(old.map(({ balance }) => balance), balances.data.currency), balances.data.currency), as_of: asOf(old),
        })}</p>`}
        ${!isAllOld && html`<${Change} of=${balances.data} />`}
      </div>
      ${isKnown && choice}
    </div>
    <${Loaded} of=${balances} bones=${chartBones}>
      ${(data) => html`
        ${isKnown && data.points.length > 0 && html`<${Course} points=${data.points} currency=${data.currency} />`}
        ${data.leftOut.length > 0 && html`<p class="soft small">${t("left_out_currencies", { names: leftOut(data.leftOut, person) })}</p>`}
      `}
    <//>
  </section>`;
}

/** Of which day, or from which to which days, balances are. */
function asOf(balances) {
  const days = balances.map(({ date }) => date).sort();
  const [first, last] = [day(days[0]), day(days.at(-1))];
  return first === last ? t("as_of", { day: first }) : t("as_of_days", { first, last });
}

function leftOut(accounts, person) {
  const said = ({ accountId, reason }) => `${accountName(person.byId.get(accountId))} (${t(reason === "no_rate" ? "left_no_rate" : "no_balance")})`;
  return accounts.map(said).join(", ");
}

function Change({ of: { points, currency } }) {
  if (points.length < 2) return null;
  const change = sum([points.at(-1).balance, -points[0].balance], currency);
  return html`<p class="change">
    <data class="pill ${change >= 0 ? "good" : ""}" value=${change}>${money(change, currency, { signed: true })}</data>
    <span class="soft">${t("since", { day: day(points[0].date) })}</span>
  </p>`;
}

function Accounts({ person, dated }) {
  const banks = [...new Set(person.accounts.map(bankOf))];
  const counted = `${t("accounts_at", { n: person.accounts.length })} ${t("at_banks", { n: banks.length })}`;
  return html`<${Card} title=${t("accounts")} aside=${html`<span class="soft small">${counted}</span>`}>
    ${banks.map((bank) => html`<div class="bank" key=${bank}>
      <h3>${named(bank)}</h3>
      <ul class="accounts">
        ${person.accounts.filter((each) => bankOf(each) === bank).map((account) => html`<li key=${account.id}>
          <a class="account" href=${address("/accounts", { id: account.id })}>
            <${Titled} title=${accountName(account)} about=${about(account)} />
            ${account.balance === null
              ? html`<span class="soft small">${t("no_balance")}</span>`
              : html`<span class="dated">
                <${Money} amount=${account.balance} currency=${account.currency} />
                ${dated.get(account.id)?.isOld && html`<span class="soft small">${asOf([dated.get(account.id)])}</span>`}
              </span>`}
          </a>
        </li>`)}
      </ul>
    </div>`)}
  <//>`;
}

const bankOf = ({ bankConnection }) => bankConnection.bankName;

function about(account) {
  const kind = account.accountType && named(account.accountType);
  const status = account.bankConnection.status === "ACTIVE" ? null : named(account.bankConnection.status);
  return [kind !== accountName(account) && kind, account.accountName || account.accountType ? shortIban(account.iban) : null, status].filter(Boolean).join(" · ");
}

function LastMonths({ person }) {
  const cashflow = useRead("/cashflow", { accountIds: person.ids, months: 12 });
  return html`<${Card} title=${t("income_expenses")} aside=${html`<${MoreLink} to=${address("/months")}>${t("all_months")}<//>`}>
    <${Legend} />
    <${Loaded} of=${cashflow} bones=${chartBones}>
      ${(data) => data.cashflow.every(({ income, expenses }) => !income && !expenses)
        ? html`<p class="soft">${t("nothing_yet")}</p>`
        : html`<${MonthBars} months=${data.cashflow} currency=${person.currency}
        running=${person.profile.today.slice(0, 7)} link=${(month) => address("/months", { month })} />`}
    <//>
  <//>`;
}

function Spending({ person }) {
  const snapshot = useRead("/snapshot", { accountIds: person.ids });
  const { currency, profile: { today } } = person;
  return html`<${Card} title=${t("spending")}>
    <${Loaded} of=${snapshot}>
      ${({ last30Days: { totalExpenses, topCategories } }) =>
        topCategories.length === 0
          ? html`<p class="soft">${t("spending_none")}</p>`
          : html`<p class="figure medium"><${Money} amount=${totalExpenses} currency=${currency} /> <span class="soft small">${t("in_all")}</span></p>
            <${CategoryBars} categories=${topCategories} currency=${currency} asked=${{ dateFrom: daysBefore(today, 29), dateTo: today }}
              amountOf=${({ expenses, refunds }) => sum([expenses, -refunds], currency)} link=${(category) => address("/transactions", { category, period: "30" })} />`}
    <//>
  <//>`;
}

function Latest({ person }) {
  const latest = useRead("/transactions", { accountIds: person.ids, perPage: 8 });
  return html`<${Card} title=${t("latest")} aside=${html`<${MoreLink} to=${address("/transactions")}>${t("all_transactions")}<//>`}>
    <${Loaded} of=${latest}>
      ${({ transactions }) =>
        transactions.length === 0
          ? html`<${NothingYet} />`
          : html`<${Bookings} rows=${transactions} person=${person} />`}
    <//>
  <//>`;
}

function ComingUp({ person }) {
  const payments = useOngoing(person);
  return html`<${Card} title=${t("coming_up")} aside=${html`<${MoreLink} to=${address("/recurring")}>${t("all")}<//>`}>
    <${Loaded} of=${payments}>
      ${({ subscriptions }) => {
        const coming = comingUp(subscriptions, person.profile.today).slice(0, 8);
        if (coming.length === 0) return html`<p class="soft">${t("coming_up_none")}</p>`;
        return html`<ul class="coming-up">
          ${coming.map(([payment, date, days]) => html`<li key=${payment.id + date}><${Expected} payment=${payment} date=${date} days=${days} /></li>`)}
        </ul>`;
      }}
    <//>
  <//>`;
}
