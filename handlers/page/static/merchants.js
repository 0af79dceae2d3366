/** Merchants: to whom most goes; and one of them, what was paid to it and came from it, month by month. */
import { useOngoing, useRead } from "./api.js";
import { day, daysBetween } from "./format.js";
import { Card, Expected, Place, State } from "./parts.js";
import { address } from "./place.js";
import { daysOf } from "./searched.js";
import { Latest, Parties, Totals } from "./totals.js";
import { html } from "./ui.js";
import { named, t } from "./words.js";

export default function Merchants({ person, parameters }) {
  const name = parameters.get("name");
  return name ? html`<${Merchant} key=${name} name=${name} person=${person} />`
    : html`<${Place} title=${t("merchants")} text=${t("merchants_text")}><${Parties} asked=${{}} limit=${100} title="" /><//>`;
}

function Merchant({ name, person }) {
  const asked = { merchant: name };
  const totals = useRead("/transactions/totals", { ...asked, groupBy: "month", limit: 1000 });
  const payments = useOngoing(person).data?.subscriptions ?? [];
  const { first, last } = totals.data ?? {};
  const list = address("/transactions", { merchant: name });
  return html`<${Place} title=${named(name)} text=${first && t("from_to", { first: day(first), last: day(last) })} actions=${html`<a class="button" href=${list}>${t("all_transactions")}</a>`}>
    ${totals.data?.count === 0 && !first
      ? html`<div class="card"><${State} icon="search" title=${t("none_found")} /></div>`
      : html`<${Card} title=${t("in_and_out")}><${Totals} asked=${asked} person=${person} counted
          link=${(month) => address("/transactions", { merchant: name, ...daysOf(month) })} /><//>
        ${payments.filter(({ merchantName }) => merchantName === name).map((payment) => html`<${Card} key=${payment.id} title=${t("recurring")}>
          <${Expected} payment=${payment} date=${payment.nextExpected} days=${daysBetween(person.profile.today, payment.nextExpected)} /><//>`)}
        <${Latest} asked=${asked} person=${person} link=${list} />`}
  <//>`;
}
