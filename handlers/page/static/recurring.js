/** Recurring payments: what they cost, when the next ones come, how their prices changed, and every single charge. */
import { useRead } from "./api.js";
import { Stair } from "./charts.js";
import { comingUp, count, day, daysBetween, money, shortDay, sum } from "./format.js";
import { Icon } from "./icons.js";
import { Card, Day, Dialog, dueIn, Facts, Loaded, Money, MoreLink, Place, State, Titled, tallBones } from "./parts.js";
import { address, beside, leave } from "./place.js";
import { html } from "./ui.js";
import { named, t } from "./words.js";

export default function Recurring({ person, parameters }) {
  const payments = useRead("/subscriptions/details", { accountIds: person.ids });
  const id = parameters.get("id");
  return html`<${Place} title=${t("recurring")} text=${t("recurring_text")}>
    <${Loaded} of=${payments} bones=${tallBones}>
      ${({ subscriptions }) =>
        subscriptions.length === 0
          ? html`<div class="card"><${State} icon="recurring" title=${t("recurring_none")} text=${t("recurring_none_text")} /></div>`
          : html`<${Payments} payments=${subscriptions} person=${person} />`}
    <//>
    ${id && payments.data && html`<${Payment} key=${id} payment=${payments.data.subscriptions.find((each) => each.id === id)} person=${person} />`}
  <//>`;
}

/** Amounts by currency, the home currency first: what is in another one is never added to it. */
function byCurrency(amounts, home) {
  const currencies = [...new Set(amounts.map(([, currency]) => currency))].sort((one) => (one === home ? -1 : 1));
  return currencies.map((currency) => [sum(amounts.filter(([, each]) => each === currency).map(([amount]) => amount), currency), currency]);
}

const Sums = ({ amounts }) =>
  amounts.length === 0 ? "–" : amounts.map(([amount, currency], index) => html`<span class="sum" key=${currency}>${index > 0 && "+ "}<${Money} amount=${amount} currency=${currency} /></span> `);

function Payments({ payments, person }) {
  const { today, homeCurrency } = person.profile;
  const yearly = byCurrency(payments.map(({ yearlyCost, currency }) => [yearlyCost, currency]), homeCurrency);
  const monthly = yearly.map(([amount, currency]) => money(amount / 12, currency)).join(" + ");
  const coming = comingUp(payments, today);
  const days = [...new Set(coming.map(([, date]) => date))];
  const sorted = [...payments].sort((one, other) => other.yearlyCost - one.yearlyCost);
  return html`<div class="tiles">
      <${Tile} name=${t("per_year")} note=${t("per_month", { amount: monthly })}><${Sums} amounts=${yearly} /><//>
      <${Tile} name=${t("coming_up")} note=${t("next_30")}>
        <${Sums} amounts=${byCurrency(coming.map(([{ amount, currency }]) => [amount, currency]), homeCurrency)} />
      <//>
      <${Tile} name=${t("recurring")} note=${t("n_active", { n: payments.length })}>${count(payments.length)}<//>
    </div>
    ${days.length > 0 && html`<${Card} title=${t("coming_up")}>
      <ul class="days">
        ${days.map((date) => html`<li key=${date}>
          <p class="days-head"><b><${Day} date=${date} /></b> <span class="soft small">${dueIn(daysBetween(today, date))}</span></p>
          ${coming.filter(([, due]) => due === date).map(([payment]) => html`<a key=${payment.id} class="days-row" href=${address("/recurring", { id: payment.id })}>
            <span>${payment.merchantName}</span><${Money} amount=${payment.amount} currency=${payment.currency} />
          </a>`)}
        </li>`)}
      </ul>
    <//>`}
    <section class="card flush" aria-label=${t("recurring")}>
      <div class="payments-head" aria-hidden="true">
        <span></span><span>${t("payee")}</span><span>${t("next")}</span><span>${t("price_history")}</span><span class="end">${t("price")}</span><span class="end">${t("a_year")}</span><span></span>
      </div>
      <ul class="payments">
        ${sorted.map((payment) => html`<li key=${payment.id}><${PaymentRow} payment=${payment} today=${today} /></li>`)}
      </ul>
    </section>`;
}

const Tile = ({ name, note, children }) => html`<section class="card tile-card">
  <h2 class="figure-name">${name}</h2><p class="figure medium">${children}</p><p class="soft small">${note}</p>
</section>`;

function PaymentRow({ payment, today }) {
  const days = daysBetween(today, payment.nextExpected);
  return html`<a class="payment" href=${address("/recurring", { id: payment.id })}>
    <span class="initial" aria-hidden="true">${[...payment.merchantName][0]?.toUpperCase()}</span>
    <${Titled} title=${payment.merchantName} about=${named(payment.frequency)} />
    <span class="payment-next"><span><${Day} date=${payment.nextExpected} text=${shortDay(payment.nextExpected, today)} /></span><span class="row-about">${dueIn(days)}</span></span>
    <span class="payment-prices"><${Stair} prices=${payment.priceHistory} /><${PriceChange} payment=${payment} today=${today} /></span>
    <span class="payment-price"><${Money} amount=${payment.amount} currency=${payment.currency} /></span>
    <span class="payment-year"><span class="sr">${t("a_year")}: </span><${Money} amount=${payment.yearlyCost} currency=${payment.currency} /></span>
    <${Icon} name="right" size="16" />
  </a>`;
}

function PriceChange({ payment, today }) {
  const last = payment.priceHistory.at(-1);
  if (!last?.change) return null;
  const amount = money(last.change, payment.currency, { signed: true });
  return html`<span class="pill ${last.change > 0 ? "up" : "good"}">${t("changed_since", { amount, day: shortDay(last.since, today) })}</span>`;
}

function Payment({ payment, person }) {
  const close = () => leave(address("/recurring"));
  if (!payment) return html`<${Dialog} title=${t("recurring")} onClose=${close}><${State} icon="warn" title=${t("sub_unknown")} /><//>`;
  const { today } = person.profile;
  return html`<${Dialog} title=${payment.merchantName} onClose=${close}>
    <p class="figure medium"><${Money} amount=${payment.amount} currency=${payment.currency} /> <span class="soft small">${named(payment.frequency)}</span></p>
    <${Facts} facts=${[
      ["next", `${day(payment.nextExpected)} (${dueIn(daysBetween(today, payment.nextExpected))})`],
      ["per_year", html`<${Money} amount=${payment.yearlyCost} currency=${payment.currency} />`],
      ["first_charge", day(payment.firstCharged)],
      ["missed", payment.missedCharges.map(day).join(", ")],
    ]} />
    <p><${MoreLink} to=${address("/merchants", { name: payment.merchantName })}>${t("more_like", { name: payment.merchantName })}<//></p>
    <h3>${t("price_history")}</h3>
    <ol class="plain">
      ${[...payment.priceHistory].reverse().map((price) => html`<li key=${price.since} class="line">
        <span>${t("since", { day: day(price.since) })}</span>
        <span>${price.change ? html`<span class="soft small">${money(price.change, payment.currency, { signed: true })} </span>` : null}<${Money} amount=${price.amount} currency=${payment.currency} /></span>
      </li>`)}
    </ol>
    <h3>${t("charges")}</h3>
    <ol class="plain">
      ${[...payment.charges].reverse().map((charge) => html`<li key=${charge.transactionId}>
        <a class="line" href=${beside({ booking: charge.transactionId })}>
          <${Day} date=${charge.bookingDate} text=${day(charge.bookingDate)} /><${Money} amount=${charge.amount} currency=${payment.currency} />
        </a>
      </li>`)}
    </ol>
  <//>`;
}
