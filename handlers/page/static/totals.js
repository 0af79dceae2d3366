/** What bookings add up to, whichever they are: how many, in and out, month by month, and with whom. */
import { useRead } from "./api.js";
import { Legend, MonthBars, isOnlyOneWay } from "./charts.js";
import { count } from "./format.js";
import { Bookings, Card, Loaded, Money, MoreLink, Titled, chartBones, tallBones } from "./parts.js";
import { address } from "./place.js";
import { everyMonth } from "./searched.js";
import { html } from "./ui.js";
import { t } from "./words.js";

const MONTHS_MAX = 1000;

/** `asked` are the parameters of the interface, `link` leads from a month to its bookings; `counted` also says how many there are. */
export function Totals({ asked, person, link, counted = false }) {
  const totals = useRead("/transactions/totals", { ...asked, groupBy: "month", limit: MONTHS_MAX });
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
        <dd class="figure medium ${name}"><${Money} amount=${totals[name]} currency=${currency} signed=${name === "net"} /></dd>
      </div>`)}
    </dl>
    ${reasons.length > 0 && html`<p class="soft small">${t("left_out")}: ${reasons.join(", ")}.</p>`}</div>`;
}

/** With whom most money changed hands; each leads to its place. */
export function Parties({ asked, title, limit = 8 }) {
  const totals = useRead("/transactions/totals", { ...asked, groupBy: "merchant", limit });
  return html`<${Card} title=${title} aside=${title && html`<${MoreLink} to=${address("/merchants")}>${t("all")}<//>`}>
    <${Loaded} of=${totals} bones=${tallBones}>
      ${({ currency, groups }) => groups.length === 0 ? html`<p class="soft">${t("nothing_yet")}</p>` : html`<ol class="plain">
        ${groups.filter(({ keys }) => keys.merchant).map(({ key, keys, count: n, net }) => html`<li key=${key}><a class="line tall" href=${address("/merchants", { name: keys.merchant })}>
          <${Titled} title=${keys.merchant} about=${t("n_transactions", { n })} /><${Money} amount=${net} currency=${currency} signed />
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
