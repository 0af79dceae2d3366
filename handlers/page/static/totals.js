/** What bookings add up to, whichever they are: how many, in and out, month by month, and with whom. */
import { useRead } from "./api.js";
import { Legend, MonthBars, isOnlyOneWay } from "./charts.js";
import { count, money, sum } from "./format.js";
import { useNames } from "./own-categories.js";
import { Bookings, Card, Loaded, Money, MoreLink, Titled, chartBones, tallBones } from "./parts.js";
import { address } from "./place.js";
import { everyMonth } from "./searched.js";
import { html } from "./ui.js";
import { named, t } from "./words.js";

const GROUPS_MAX = 1000;

export const useTotals = (asked) => useRead("/transactions/totals", { ...asked, groupBy: "month", limit: GROUPS_MAX });

/** `asked` are the parameters of the interface, `link` leads from a month to its bookings; `counted` also says how many there are. */
export function Totals({ asked, person, link, counted = false }) {
  const totals = useTotals(asked);
  return html`<${Loaded} of=${totals} bones=${chartBones}>
    ${(data) => {
      const months = everyMonth(data.groups);
      return html`<div class="totals ${totals.isStale ? "stale" : ""}">
        <${Sums} totals=${data} counted=${counted} />
        ${months.length > 1 && html`<div>${!isOnlyOneWay(months) && html`<${Legend} />`}
          <${MonthBars} months=${months} currency=${data.currency} running=${person.profile.today.slice(0, 7)} link=${link} /></div>`}
      </div>`;
    }}
  <//>`;
}

/** What bookings add up to, and how many of them did not count and why. */
function Sums({ totals, counted }) {
  const { currency, leftOut } = totals;
  const reasons = Object.entries(leftOut).map(([reason, n]) => `${count(n)} ${t(`left_${reason}`)}`);
  const amounts = totals.income && totals.expenses ? ["income", "expenses", "net"] : totals.income ? ["income"] : ["expenses"];
  if (totals.refunds) amounts.push("refunds");
  return html`<div><dl class="figures">
      ${counted && html`<div><dt>${t("transactions")}</dt><dd class="figure medium">${count(totals.count)}</dd></div>`}
      ${amounts.map((name) => html`<div key=${name}>
        <dt>${t(name)}</dt>
        <dd><span class="figure medium ${name}"><${Money} amount=${totals[name]} currency=${currency} signed=${name === "net"} /></span><${AfterRefunds} name=${name} of=${totals} /></dd>
      </div>`)}
    </dl>
    ${reasons.length > 0 && html`<p class="soft small">${t("left_out")}: ${reasons.join(", ")}.</p>`}</div>`;
}

/** Expenses are gross, and refunds income; this says them net. */
export const AfterRefunds = ({ name, of: { currency, expenses, refunds } }) =>
  name === "expenses" && refunds > 0 && html`<p class="soft small">${t("after_refunds", { amount: money(sum([expenses, -refunds], currency), currency) })}</p>`;

/**
 * What a category holds by its finer ones and those of the person's own, and what is in none: together they are the category. `amountOf`
 * says which of the totals is shown.
 */
export function Finer({ asked, link, amountOf = ({ net }) => net, signed = false }) {
  const { data } = useRead("/categories");
  const name = useNames();
  const totals = useRead("/transactions/totals", { ...asked, groupBy: "ownCategory,detailedCategory", limit: GROUPS_MAX });
  const placeFor = ({ ownCategory, detailedCategory }) => ownCategory === null ? detailedCategory : data?.own?.find((own) =>
    own.name === ownCategory && own.category === asked.category && own.detailedCategory === detailedCategory)?.id;
  return html`<${Loaded} of=${totals}>${({ currency, groups }) => html`<ul class="plain">
    ${groups.map((group) => [placeFor(group.keys), group.keys.ownCategory, amountOf(group)]).filter(([, , amount]) => amount).sort(([, , one], [, , other]) => Math.abs(other) - Math.abs(one)).map(([place, own, amount]) => html`<li key=${place}>
      <a class="line" href=${link(place ?? asked.category)}><span>${place ? name(place) : (own ?? t("finer_none"))}</span><${Money} amount=${amount} currency=${currency} signed=${signed} /></a></li>`)}
  </ul>`}<//>`;
}

/** Those to whom money went before those from whom it came, the most first. */
const byNet = ({ net: one }, { net: other }) => Number(one > 0) - Number(other > 0) || Math.abs(other) - Math.abs(one);

/** With whom most money changed hands; each leads to its place. */
export function Parties({ asked, title, limit = 8 }) {
  const totals = useRead("/transactions/totals", { ...asked, groupBy: "merchant", limit });
  return html`<${Card} title=${title} aside=${title && html`<${MoreLink} to=${address("/merchants")}>${t("all")}<//>`}>
    <${Loaded} of=${totals} bones=${tallBones}>
      ${({ currency, groups }) => groups.length === 0 ? html`<p class="soft">${t("nothing_yet")}</p>` : html`<ol class="plain">
        ${groups.filter(({ keys }) => keys.merchant).sort(byNet).map(({ key, keys, count: n, net }) => html`<li key=${key}><a class="line tall" href=${address("/merchants", { name: keys.merchant })}>
          <${Titled} title=${named(keys.merchant)} about=${t("rows", { n })} /><${Money} amount=${net} currency=${currency} signed />
        </a></li>`)}
      </ol>`}
    <//>
  <//>`;
}

/** The latest bookings of those that are asked for. */
export function Latest({ asked, person, link }) {
  const latest = useRead("/transactions/search", { ...asked, perPage: 8 });
  return html`<${Card} title=${t("latest")} aside=${html`<${MoreLink} to=${link}>${t("all")}<//>`}>
    <${Loaded} of=${latest}>${({ transactions }) => html`<${Bookings} rows=${transactions} person=${person} />`}<//>
  <//>`;
}
