/** Merchants: to whom most goes; and one of them, what was paid to it and came from it, month by month. */
import { useOngoing } from "./api.js";
import { day, daysBetween } from "./format.js";
import { Card, Expected, Place, State } from "./parts.js";
import { address } from "./place.js";
import { daysOf } from "./searched.js";
import { Latest, Parties, Totals, useTotals } from "./totals.js";
import { html } from "./ui.js";
import { named, t } from "./words.js";

export default function Merchants({ person, parameters }) {
  const name = parameters.get("name");
  return name ? html`<${Merchant} key=${name} name=${name} person=${person} />`
    : html`<${Place} title=${t("merchants")} text=${t("merchants_text")}><${Parties} asked=${{}} limit=${100} title="" /><//>`;
}

function Merchant({ name, person }) {
  const asked = { merchant: name };
  const totals = useTotals(asked);
  const ongoing = useOngoing(person);
  const payments = ongoing.data?.subscriptions ?? [];
  const isWhole = [totals, ongoing].every(({ data, error }) => data || error); // nothing moves what is read already
  const { first, last } = totals.data ?? {};
  const list = address("/transactions", { merchant: name });
  return html`<${Place} title=${named(name)} text=${first ? t("from_to", { first: day(first), last: day(last) }) : "\u00a0"} actions=${html`<a class="button" href=${list}>${t("all_transactions")}</a>`}>
    ${totals.data?.count === 0 && !first
      ? html`<div class="card"><${State} icon="search" title=${t("none_found")} /></div>`
      : html`<${Card} title=${t("in_and_out")}><${Totals} asked=${asked} person=${person} counted
          link=${(month) => address("/transactions", { merchant: name, ...daysOf(month) })} /><//>
        ${isWhole && payments.filter(({ merchantName }) => merchantName === name).map((payment) => html`<${Card} key=${payment.id} title=${t("recurring")}>
          <${Expected} payment=${payment} date=${payment.nextExpected} days=${daysBetween(person.profile.today, payment.nextExpected)} /><//>`)}
        ${isWhole && html`<${Latest} asked=${asked} person=${person} link=${list} />`}`}
  <//>`;
}
