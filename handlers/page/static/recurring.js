/** Recurring payments, going out and coming in: what they cost, when the next ones come, how their prices changed, every single charge, and what a person says of them. */
import { change, one, useRead } from "./api.js";
import { Stair } from "./charts.js";
import { comingUp, count, day, daysBetween, money, shortDay, sum, typedAmount } from "./format.js";
import { Icon } from "./icons.js";
import { AmountInput, Card, Choice, Day, Dialog, dueIn, Facts, Loaded, Money, MoreLink, Place, State, Titled, accountAmong, short, tallBones, tried } from "./parts.js";
import { address, beside, leave } from "./place.js";
import { html, into, useState, useThere } from "./ui.js";
import { named, t } from "./words.js";

const FREQUENCIES = ["weekly", "biweekly", "monthly", "quarterly", "yearly"];
const BETWEEN = { 0.5: "twice_monthly", 2: "two_monthly", 6: "half_yearly" }; // months; no frequency says these
const rhythm = ({ frequency, intervalMonths }) => named(BETWEEN[intervalMonths] ?? frequency);

export default function Recurring({ person, parameters }) {
  const payments = useRead("/subscriptions/details", { accountIds: person.ids, status: "all", direction: "all" });
  const [isAdding, setIsAdding] = useState(false);
  const id = parameters.get("id");
  const opener = person.ids && !isAdding && html`<button type="button" onClick=${() => setIsAdding(true)}>${t("pay_add")}</button>`;
  return html`<${Place} title=${t("recurring")} text=${t("recurring_text")} actions=${opener}>
    ${isAdding && html`<${NewPayment} person=${person} onClose=${() => setIsAdding(false)} />`}
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

/** Why a payment is not among those that go on, if it is not. */
const setAside = ({ confirmation, status }) => (confirmation === "dismissed" ? confirmation : status === "ended" ? status : null);

function Payments({ payments: all, person }) {
  const { today, homeCurrency } = person.profile;
  const goingOn = all.filter((payment) => !setAside(payment));
  const payments = goingOn.filter(({ direction }) => direction === "outgoing");
  const sorted = (some) => [...some].sort((one, other) => other.yearlyCost - one.yearlyCost);
  const list = (some) => html`<ul class="payments">
    ${sorted(some).map((payment) => html`<li key=${payment.id}><${PaymentRow} payment=${payment} today=${today} /><${Sayings} payment=${payment} /></li>`)}
  </ul>`;
  const yearly = byCurrency(payments.map(({ yearlyCost, currency }) => [yearlyCost, currency]), homeCurrency);
  const monthly = yearly.map(([amount, currency]) => money(amount / 12, currency)).join(" + ");
  const coming = comingUp(payments, today);
  const days = [...new Set(coming.map(([, date]) => date))];
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
            <span>${short(payment.merchantName)}</span><${Money} amount=${payment.amount} currency=${payment.currency} />
          </a>`)}
        </li>`)}
      </ul>
    <//>`}
    ${[["expenses", "payee", "price", payments], ["income", "payer", "field_amount", goingOn.filter(({ direction }) => direction === "incoming")]].map(
      ([title, party, amount, some]) => some.length > 0 && html`<section key=${title} class="card flush" aria-label=${t(title)}>
        <h2 class="payments-title">${t(title)}</h2>
        <div class="payments-head" aria-hidden="true">
          <span></span><span>${t(party)}</span><span>${t("next")}</span><span>${t("price_history")}</span><span class="end">${t(amount)}</span><span class="end">${t("a_year")}</span>
        </div>
        ${list(some)}
      </section>`,
    )}
    ${["ended", "dismissed"].map((why) => {
      const some = all.filter((payment) => setAside(payment) === why);
      return some.length > 0 && html`<section key=${why} class="card flush" aria-label=${t(`all_${why}`)}><details><summary>${t(`all_${why}`)} (${count(some.length)})</summary>${list(some)}</details></section>`;
    })}`;
}

const Tile = ({ name, note, children }) => html`<section class="card tile-card">
  <h2 class="figure-name">${name}</h2><p class="figure medium">${children}</p><p class="soft small">${note}</p>
</section>`;

function PaymentRow({ payment, today }) {
  const { nextExpected, lastCharged, status, overdueSince, confirmation } = payment;
  const date = nextExpected ?? lastCharged;
  const state = status !== "active" ? status : overdueSince && "is_overdue";
  const about = html`${rhythm(payment)}${confirmation === "confirmed" && ` · ${t("confirmed")}`} ${state && html`<span class="pill ${state === "ended" ? "" : "up"}">${t(state)}</span>`}`;
  return html`<a class="payment" href=${address("/recurring", { id: payment.id })}>
    <span class="initial" aria-hidden="true">${[...payment.merchantName][0]?.toUpperCase()}</span>
    <${Titled} title=${payment.merchantName} about=${about} />
    <span class="payment-next"><span><${Day} date=${date} text=${shortDay(date, today)} /></span><span class="row-about">${nextExpected ? dueIn(daysBetween(today, date)) : t("last_charge")}</span></span>
    <span class="payment-prices"><${Stair} prices=${payment.priceHistory} /><${PriceChange} payment=${payment} today=${today} /></span>
    <span class="payment-price"><${Money} amount=${payment.amount} currency=${payment.currency} /></span>
    <span class="payment-year"><span class="sr">${t("a_year")}: </span><${Money} amount=${payment.yearlyCost} currency=${payment.currency} /></span>
  </a>`;
}

function PriceChange({ payment, today }) {
  const last = payment.priceHistory.at(-1);
  if (!last?.change) return null;
  const amount = money(last.change, payment.currency, { signed: true });
  const isDearer = last.change > 0 === (payment.direction === "outgoing");
  return html`<span class="pill ${isDearer ? "up" : "good"}">${t("changed_since", { amount, day: shortDay(last.since, today) })}</span>`;
}

function Payment({ payment, person }) {
  const close = () => leave(address("/recurring"));
  if (!payment) return html`<${Dialog} title=${t("recurring")} onClose=${close}><${State} icon="warn" title=${t("sub_unknown")} /><//>`;
  const { today } = person.profile;
  return html`<${Dialog} title=${payment.merchantName} onClose=${close}>
    <p class="figure medium"><${Money} amount=${payment.amount} currency=${payment.currency} /> <span class="soft small">${rhythm(payment)}</span></p>
    <${Facts} facts=${[
      ["next", payment.nextExpected && `${day(payment.nextExpected)} (${dueIn(daysBetween(today, payment.nextExpected))})`],
      [payment.direction === "outgoing" ? "per_year" : "a_year", html`<${Money} amount=${payment.yearlyCost} currency=${payment.currency} />`],
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
    <h3>${t("transactions")}</h3>
    <ol class="plain">
      ${[...payment.charges].reverse().map((charge) => html`<li key=${charge.transactionId}>
        <a class="line" href=${beside({ booking: charge.transactionId })}>
          <${Day} date=${charge.bookingDate} text=${day(charge.bookingDate)} /><${Money} amount=${charge.amount} currency=${payment.currency} />
        </a>
      </li>`)}
    </ol>
  <//>`;
}

const toAdded = (body) => change("POST", "/subscriptions/added", { body });

/** Say it of a payment, in place of what was said before; what was added by hand is taken away by all but "confirmed". */
function say(payment, confirmation) {
  const { id, merchantName: name, addedTo, amount, frequency, direction, nextExpected } = payment;
  const back = addedTo
    ? () => tried(() => toAdded({ name, amount, frequency, direction, nextExpected: nextExpected.slice(0, 10), accountId: addedTo }), () => t("undone"))
    : () => say(payment, payment.confirmation);
  return tried(
    () => change("POST", one("subscriptions", id, "/confirmation"), { body: { confirmation } }),
    () => `${name}: ${addedTo ? t("taken_away") : named(confirmation)}`,
    () => (!addedTo || nextExpected) && { text: t("undo"), act: back },
  );
}

/** What can be said of one. */
function Sayings({ payment }) {
  const { confirmation, addedTo, merchantName } = payment;
  const can = addedTo
    ? [["remove", "close", "none"]]
    : [confirmation === "none" ? ["confirm", "check", "confirmed"] : ["reset", "recurring", "none"], confirmation !== "dismissed" && ["dismiss", "close", "dismissed"]];
  return html`<span class="sayings">
    ${can.map((each) => each && html`<button key=${each[0]} type="button" class="round" title=${t(each[0])} aria-label="${t(each[0])}: ${merchantName}" onClick=${() => say(payment, each[2])}>
      <${Icon} name=${each[1]} />
    </button>`)}
  </span>`;
}

/** A payment that was not found, as its person knows it. */
function NewPayment({ person, onClose }) {
  const [said, setSaid] = useState({ direction: "outgoing", frequency: "monthly", accountId: person.accounts[0].id });
  const [typed, setTyped] = useState("");
  const { currency } = person.byId.get(said.accountId);
  const close = useThere(onClose);
  const set = (name) => (value) => setSaid({ ...said, [name]: value });
  const add = async () => {
    if (await tried(() => toAdded({ ...said, amount: typedAmount(typed, currency) }), () => t("changed"), (payment) => ({ text: t("undo"), act: () => say(payment, "none") }))) close();
  };
  const field = (word, input) => html`<label class="field"><span class="label">${t(word)}</span>${input}</label>`;
  const choice = (word, name, options) => html`<div class="field"><span class="label" aria-hidden="true">${t(word)}</span>
    <${Choice} name=${t(word)} value=${said[name]} onChoose=${set(name)} options=${options} /></div>`;
  return html`<${Card} title=${t("pay_add")}>
    <p class="soft small">${t("pay_text")}</p>
    <form class="fields" onSubmit=${add}>
      ${field("pay_name", html`<input required minlength="3" maxlength="200" autocomplete="off" onInput=${into(set("name"))} />`)}
      ${choice("field_indicator", "direction", [["outgoing", t("field_debit")], ["incoming", t("field_credit")]])}
      ${field("field_amount", html`<${AmountInput} currency=${currency} required onInput=${into(setTyped)} />`)}
      ${choice("pay_every", "frequency", FREQUENCIES.map((each) => [each, named(each)]))}
      ${field("pay_next", html`<input type="date" required min=${person.profile.today} onInput=${into(set("nextExpected"))} />`)}
      ${choice("account", "accountId", person.accounts.map((account) => [account.id, accountAmong(account)]))}
      <p class="buttons"><button type="submit" class="primary">${t("pay_add")}</button><button type="button" onClick=${onClose}>${t("cancel")}</button></p>
    </form>
  <//>`;
}
