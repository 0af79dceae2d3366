/**
 * Months and years: income and expenses as bars; behind each bar its categories, how it compares with the year before, and the
 * bookings that add up to it.
 */
import { useRead } from "./api.js";
import { Legend, MonthBars, inShort } from "./charts.js";
import { day, month as monthName, money, sum } from "./format.js";
import { Bookings, Card, CategoryBars, Loaded, Money, NothingYet, Place, Segments, barsBones, yearsBones } from "./parts.js";
import { address, go } from "./place.js";
import { daysOf } from "./searched.js";
import { Targets } from "./targets.js";
import { AfterRefunds, Parties } from "./totals.js";
import { html, useState } from "./ui.js";
import { t } from "./words.js";

const MONTHS_MIN = 24;
const YEARS_MAX = 1000;
const ROWS_AT_FIRST = 50;

export default function Months({ person, parameters }) {
  const thisMonth = person.profile.today.slice(0, 7);
  const thisYear = thisMonth.slice(0, 4);
  const year = /^\d{4}$/.exec(parameters.get("year") ?? "")?.[0];
  const asked = parameters.get("month");
  const month = /^\d{4}-(0[1-9]|1[0-2])$/.test(asked ?? "") ? asked : thisMonth;
  const first = useFirstDay(person);
  const months = Math.max(MONTHS_MIN, monthsUntil(first.data || thisMonth, thisMonth), monthsUntil(month, thisMonth));
  const cashflow = useRead(first.data && "/cashflow", { accountIds: person.ids, months });
  const years = useRead(year && "/transactions/totals", { groupBy: "year", limit: YEARS_MAX });
  if (first.data === "") return html`<${Place} title=${t("months")}><div class="card"><${NothingYet} /></div><//>`;
  const [running, chosen, read] = year ? [thisYear, year, years] : [thisMonth, month, first.error ? first : cashflow];
  const bones = year ? yearsBones : barsBones;
  const link = (span) => address("/months", year ? { year: span } : { month: span });
  const choice = html`<${Segments} legend=${t("period")} value=${year ? "years" : "months"}
    onChoose=${(by) => go(address("/months", by === "years" ? { year: month.slice(0, 4) } : { month: year === thisYear ? "" : `${year}-12` }))}
    options=${[["months", t("months")], ["years", t("years")]]} />`;
  return html`<${Place} title=${t("months")} text=${t(year ? "choose_year" : "choose_month")} actions=${choice}>
    <${Card}>
      <${Legend} />
      <${Loaded} key=${running} of=${read} bones=${bones}>
        ${(data) => {
          const spans = year ? (data.groups ?? []).map(({ key, ...sums }) => ({ ...sums, month: key })) : (data.cashflow ?? []);
          if (spans.length === 0) return bones; // of the other kind, while this one is on its way
          const given = { months: spans, currency: data.currency ?? person.currency, running, link };
          return html`<${MonthBars} ...${given} chosen=${chosen} /><${AsTable} ...${given} />`;
        }}
      <//>
    <//>
    ${year
      ? html`<${Year} key=${year} year=${year} isRunning=${year === thisYear} />`
      : html`<${Month} key=${month} month=${month} isRunning=${month === thisMonth} person=${person} />`}
  <//>`;
}

/** From one month to another one, both counted. */
const monthsUntil = (from, to) => 12 * (to.slice(0, 4) - from.slice(0, 4)) + (to.slice(5, 7) - from.slice(5, 7)) + 1;

/** The day of the oldest booking, which is the last one of the list; empty where there is none. */
function useFirstDay(person) {
  const newest = useRead("/transactions", { accountIds: person.ids, perPage: 1 });
  const total = newest.data?.pagination.total;
  const oldest = useRead(total && "/transactions", { accountIds: person.ids, perPage: 1, page: total });
  if (total === 0) return { ...newest, data: "" };
  const { error, again } = newest.error ? newest : oldest;
  return { error, again, data: oldest.data?.transactions[0]?.bookingDate ?? null };
}

function AsTable({ months, currency, running, link }) {
  return html`<details class="as-table">
    <summary>${t("as_table")}</summary>
    <div class="scrolls" tabindex="0" role="region" aria-label=${t("as_table")}><table>
      <thead><tr>${["month", "income", "expenses", "net"].map((name) => html`<th key=${name} scope="col">${t(name)}</th>`)}</tr></thead>
      <tbody>
        ${[...months].reverse().map((each) => html`<tr key=${each.month}>
          <th scope="row"><a href=${link(each.month)}>${inShort(each.month)}</a>${each.month === running && html` <span class="soft small">${t("so_far")}</span>`}</th>
          <td><${Money} amount=${each.income} currency=${currency} /></td>
          <td><${Money} amount=${each.expenses} currency=${currency} /></td>
          <td><${Money} amount=${each.net} currency=${currency} signed /></td>
        </tr>`)}
      </tbody>
    </table></div>
  </details>`;
}

function Month({ month, isRunning, person }) {
  const rows = useRead(`/cashflow/${month}/transactions`, { accountIds: person.ids });
  const { from: dateFrom, to: dateTo } = daysOf(month);
  const totals = useRead("/transactions/totals", { dateFrom, dateTo, groupBy: "category", compareWith: "previousYear" });
  const isWhole = totals.data || totals.error; // nothing moves what is read already
  const title = html`${monthName(month)}${isRunning && html` <span class="soft small">${t("so_far")}</span>`}`;
  return html`<${Card} title=${title}>
    <${Loaded} of=${isWhole ? rows : { data: null }}>${(data) => html`<${MonthRows} data=${data} totals=${totals.data} person=${person} />`}<//>
  <//>`;
}

/** A year: what it comes to beside the year before, by category, and with whom. */
function Year({ year, isRunning }) {
  const asked = { dateFrom: `${year}-01-01`, dateTo: `${year}-12-31` };
  const totals = useRead("/transactions/totals", { ...asked, groupBy: "category", compareWith: "previousYear" });
  const link = (category) => address("/transactions", { category, period: "other", from: asked.dateFrom, to: asked.dateTo });
  return html`<${Card} title=${html`${year}${isRunning && html` <span class="soft small">${t("so_far")}</span>`}`}>
      <${Loaded} of=${totals}>
        ${(data) => html`<${Figures} of=${data} compared=${data.compared} /><${ByCategory} of=${data} asked=${asked} link=${link} />`}
      <//>
    <//>
    ${(totals.data || totals.error) && html`<${Parties} asked=${asked} title=${t("with_whom")} />`}`;
}

/** What was spent in each category; refunds are income, as in the figures above. */
const ByCategory = ({ of: { currency, expenses, groups, refunds }, asked, link }) => expenses > 0 && html`<section aria-labelledby="by-category">
  <h3 id="by-category">${t("by_category")}${refunds > 0 && html` <span class="soft small">${t("before_refunds")}</span>`}</h3>
  <${CategoryBars} currency=${currency} total=${expenses} link=${link} asked=${asked} amountOf=${({ expenses: amount }) => amount}
    categories=${groups.filter((each) => each.expenses > 0).map(({ keys, expenses: amount }) => ({ category: keys.category, amount }))} />
</section>`;

/** Income, expenses and net; each beside that of the year before, where there is one to compare with. */
function Figures({ of, compared }) {
  const { currency } = of;
  return html`<dl class="figures">
    ${["income", "expenses", "net"].map((name) => html`<div key=${name}>
      <dt>${t(name)}</dt>
      <dd><span class="figure medium ${name}"><${Money} amount=${of[name]} currency=${currency} signed=${name === "net"} /></span>
        ${compared && html`<span class="note soft small">${t("compared", {
          amount: money(sum([of[name], -compared[name]], currency), currency, { signed: true }), span: spanSaid(compared),
        })}</span>`}<${AfterRefunds} name=${name} of=${of} /></dd>
    </div>`)}
  </dl>`;
}

/** A year, a month, or the days that are compared with one that is not over. */
function spanSaid({ dateFrom, dateTo }) {
  const [year, month] = [dateFrom.slice(0, 4), dateFrom.slice(0, 7)];
  if (dateFrom.endsWith("-01-01") && dateTo === `${year}-12-31`) return year;
  return dateFrom.endsWith("-01") && daysOf(month).to === dateTo ? inShort(month) : t("from_to", { first: day(dateFrom), last: day(dateTo) });
}

function MonthRows({ data, totals, person }) {
  const { currency } = data;
  const { from, to } = daysOf(data.month);
  const counted = data.transactions.filter(({ countedAs }) => countedAs);
  const leftOut = data.transactions.filter(({ countedAs }) => !countedAs);
  const [shown, setShown] = useState(ROWS_AT_FIRST);
  return html`<${Figures} of=${{ ...data, refunds: totals?.refunds }} compared=${totals?.compared} />
    ${data.transactions.length === 0 && html`<p class="soft">${t("month_none")}</p>`}
    <div class="halves">
      <div>
        ${totals && html`<${ByCategory} of=${totals} asked=${{ dateFrom: from, dateTo: to }} link=${(category) => address("/transactions", { category, ...daysOf(data.month) })} />`}
        <${Targets} month=${data.month} currency=${data.currency} />
      </div>
      ${counted.length > 0 && html`<section aria-labelledby="month-rows">
        <h3 id="month-rows">${t("transactions")}</h3>
        <p class="soft small">${t("counted_sum", { n: counted.length, sum: money(sum(counted.map(({ countedAmount }) => countedAmount), currency), currency, { signed: true }) })}</p>
        <${Bookings} rows=${counted.slice(0, shown)} person=${person} tag=${false} />
        ${counted.length > shown && html`<button type="button" onClick=${() => setShown(Infinity)}>${t("all")}</button>`}
      </section>`}
    </div>
    ${leftOut.length > 0 && html`<section class="left-out" aria-labelledby="left-out">
      <h3 id="left-out">${t("left_out")}</h3>
      <p class="soft small">${t("left_out_text")}</p>
      <${Bookings} rows=${leftOut} person=${person} tag=${false} />
    </section>`}`;
}
