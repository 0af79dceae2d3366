/** Months: income and expenses as bars; behind each bar its categories and the bookings that add up to it. */
import { useRead } from "./api.js";
import { Legend, MonthBars } from "./charts.js";
import { daysBefore, month as monthName, money, monthInShort, monthsBefore, sum } from "./format.js";
import { Bookings, Card, CategoryBars, Loaded, Money, NothingYet, Place, chartBones } from "./parts.js";
import { address } from "./place.js";
import { html, useState } from "./ui.js";
import { t } from "./words.js";

const MONTHS_MIN = 24;
const ROWS_AT_FIRST = 50;

export default function Months({ person, parameters }) {
  const running = person.profile.today.slice(0, 7);
  const asked = parameters.get("month");
  const chosen = /^\d{4}-(0[1-9]|1[0-2])$/.test(asked ?? "") ? asked : running;
  const { currency } = person;
  const first = useFirstDay(person);
  const months = Math.max(MONTHS_MIN, monthsUntil(first.data || running, running), monthsUntil(chosen, running));
  const cashflow = useRead(first.data && "/cashflow", { accountIds: person.ids, months });
  const link = (month) => address("/months", { month });
  if (first.data === "") return html`<${Place} title=${t("months")}><div class="card"><${NothingYet} /></div><//>`;
  return html`<${Place} title=${t("months")} text=${t("choose_month")}>
    <${Card}>
      <${Legend} />
      <${Loaded} of=${first.error ? first : cashflow} bones=${chartBones}>
        ${(data) => html`<${MonthBars} months=${data.cashflow} currency=${currency} running=${running} chosen=${chosen} link=${link} />
          <${AsTable} months=${data.cashflow} currency=${currency} running=${running} link=${link} />`}
      <//>
    <//>
    <${Month} key=${chosen} month=${chosen} isRunning=${chosen === running} months=${months} person=${person} />
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
          <th scope="row"><a href=${link(each.month)}>${monthInShort(each.month)}</a>${each.month === running && html` <span class="soft small">${t("so_far")}</span>`}</th>
          <td><${Money} amount=${each.income} currency=${currency} /></td>
          <td><${Money} amount=${each.expenses} currency=${currency} /></td>
          <td><${Money} amount=${each.net} currency=${currency} signed /></td>
        </tr>`)}
      </tbody>
    </table></div>
  </details>`;
}

function Month({ month, isRunning, months, person }) {
  const rows = useRead(`/cashflow/${month}/transactions`, { accountIds: person.ids });
  const categories = useRead("/cashflow/categories", { accountIds: person.ids, months });
  const title = html`${monthName(month)}${isRunning && html` <span class="soft small">${t("so_far")}</span>`}`;
  return html`<${Card} title=${title}>
    <${Loaded} of=${rows}>${(data) => html`<${MonthRows} data=${data} person=${person}
      categories=${categories.data?.months.find((each) => each.month === month) ?? null} />`}<//>
  <//>`;
}

function MonthRows({ data, person, categories }) {
  const { currency } = data;
  const counted = data.transactions.filter(({ countedAs }) => countedAs);
  const leftOut = data.transactions.filter(({ countedAs }) => !countedAs);
  const [shown, setShown] = useState(ROWS_AT_FIRST);
  return html`<dl class="figures">
      ${["income", "expenses", "net"].map((name) => html`<div key=${name}>
        <dt>${t(name)}</dt>
        <dd class="figure medium ${name}"><${Money} amount=${data[name]} currency=${currency} signed=${name === "net"} /></dd>
      </div>`)}
    </dl>
    ${data.transactions.length === 0 && html`<p class="soft">${t("month_none")}</p>`}
    <div class="halves">
      ${categories?.categories.length > 0 && html`<section aria-labelledby="by-category">
        <h3 id="by-category">${t("by_category")}</h3>
        <${CategoryBars} categories=${categories.categories} currency=${currency} total=${categories.expenses}
          link=${(category) => address("/transactions", { category, period: "other", from: `${data.month}-01`, to: lastDay(data.month) })} />
      </section>`}
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

const lastDay = (month) => daysBefore(monthsBefore(`${month}-01`, -1), 1);
