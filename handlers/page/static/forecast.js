/** The coming days: what is expected to be held, how sure that is, on which day it is least, and what is due until the next pay. */
import { useRead } from "./api.js";
import { Course } from "./charts.js";
import { daysBefore, money, percent, shortDay } from "./format.js";
import { Icon } from "./icons.js";
import { Card, Line, Loaded, Money, Segments, accountName, chartBones } from "./parts.js";
import { isSpendable, spendableOf } from "./overview.js";
import { html, useState } from "./ui.js";
import { t } from "./words.js";

const PERIODS = ["30", "90", "180"]; // days

const OWED = ["credit_card", "loan"]; // below zero by nature

/** `accountId` is one account; without it what can be spent is counted, with savings and loans beside it. */
export default function Forecast({ person, accountId = "" }) {
  const [days, setDays] = useState(PERIODS[0]);
  const [wanted, setWanted] = useState(person.currency);
  const counted = accountId ? [person.byId.get(accountId)] : spendableOf(person.accounts);
  const forecast = useRead("/forecast", { accountIds: counted.map(({ id }) => id).join(","), days });
  const choice = html`<${Segments} legend=${t("period")} value=${days} onChoose=${setDays}
    options=${PERIODS.map((each) => [each, t(`d${each}`), t("n_days", { n: Number(each) })])} />`;
  return html`<${Card} title=${t("outlook")} aside=${forecast.data?.currencies.length > 0 && choice}>
    <${Loaded} of=${forecast} bones=${chartBones}>
      ${({ accounts, currencies, leftOut }) => {
        const shown = currencies.find(({ currency }) => currency === wanted) ?? currencies[0];
        const beside = accountId ? [] : person.accounts.filter((each) => !counted.includes(each) && each.balance !== null);
        return html`
          ${currencies.length > 1 && html`<${Segments} legend=${t("layout_currency")} value=${shown.currency} onChoose=${setWanted}
            options=${currencies.map(({ currency }) => [currency, currency])} />`}
          ${!accountId && counted.every(isSpendable) && html`<p class="soft small">${t("outlook_spendable")}</p>`}
          ${shown
            ? html`<${Outlook} of=${shown} accounts=${accounts.filter(({ currency }) => currency === shown.currency)} person=${person} />`
            : html`<p class="soft">${t("outlook_none")}</p>`}
          ${shown && leftOut.length > 0 && html`<p class="soft small">${t("left_out_currencies", { names: leftOut.map(({ accountId: id, reason }) =>
            `${accountName(person.byId.get(id))} (${t(reason)})`).join(", ") })}</p>`}
          ${shown && beside.length > 0 && html`<h3>${t("outlook_beside")}</h3>
            <ul class="plain">${beside.map((each) => html`<li class="line" key=${each.id}><span>${accountName(each)}</span><${Money} amount=${each.balance} currency=${each.currency} /></li>`)}</ul>`}`;
      }}
    <//>
  <//>`;
}

/** The figures all count alike: what is expected at the end of a day, after what is due and what is spent besides. */
function Outlook({ of, accounts, person }) {
  const { accuracy, balance, currency, days, lowest, nextPay } = of;
  const { today } = person.profile;
  const now = { date: today, balance, low: balance, high: balance };
  const points = [now, ...days.map(({ date, expected, low, high }) => ({ date, balance: expected, low, high }))];
  const end = days.at(-1);
  const before = nextPay && days.find(({ date }) => date === daysBefore(nextPay.date, 1));
  const isOwed = ({ accountId }) => OWED.includes(person.byId.get(accountId)?.accountType);
  const isWorse = accuracy?.beatsLastBalance === false; // to be known before the line is read
  const facts = [
    [t("held_now"), balance, ""],
    [t("lowest_on", { day: shortDay(lowest.date, today) }), lowest.expected, t("band_low", { low: money(lowest.low, currency) })],
    before
      ? [t("before_pay", { day: shortDay(nextPay.date, today) }), before.expected, t("due_until_pay", { due: money(nextPay.due, currency) })]
      : [t("expected_on", { day: shortDay(end.date, today) }), end.expected, t("band", { low: money(end.low, currency), high: money(end.high, currency) })],
  ];
  return html`<dl class="figures outlook">
      ${facts.map(([name, amount, note]) => html`<div key=${name}><dt>${name}</dt>
        <dd><span class="figure medium"><${Money} amount=${amount} currency=${currency} /></span>${note && html`<span class="note soft small">${note}</span>`}</dd></div>`)}
    </dl>
    ${(accounts.length > 1 || !isOwed(accounts[0])) && html`<${Lasts} of=${of} today=${today} />`}
    ${isWorse && html`<${Accuracy} of=${accuracy} currency=${currency} />`}
    <${Course} points=${points} currency=${currency} label=${t("outlook_course")} rest=${points.findIndex(({ date }) => date === lowest.date)} />
    ${accounts.length > 1 && html`<ul class="plain ahead">${accounts.map((each) => {
      const account = person.byId.get(each.accountId);
      const least = t("lowest_of", { amount: money(each.lowest.expected, currency), day: shortDay(each.lowest.date, today) });
      return html`<${Line} key=${each.accountId} title=${accountName(account)} about=${html`${least}${!isOwed(each) && each.lowest.expected < 0 && html`<br /><b>${below(each, today)}</b>`}`}>
        <${Money} amount=${each.balance} currency=${currency} /><//>`;
    })}</ul>`}
    <p class="soft small">${t("band_text")}</p>
    ${!isWorse && html`<${Accuracy} of=${accuracy} currency=${currency} />`}`;
}

/** Whether the money lasts. */
const Lasts = ({ of, today }) => of.lowest.expected < 0
  ? html`<p class="caution">${below(of, today)}</p>`
  : html`<p class="good"><${Icon} name="check" /> ${t("stays_above", { day: shortDay(of.days.at(-1).date, today) })}</p>`;

/** The first day below zero, and the payment that day because of which it is. */
export function below({ balance, currency, days, events }, today) {
  if (balance < 0) return t("below_now");
  const first = days.find(({ expected }) => expected < 0);
  const [cause] = events.filter(({ date, amount }) => date === first.date && amount < 0).sort((one, other) => one.amount - other.amount);
  const when = shortDay(first.date, today);
  return cause ? t("below_on", { day: when, name: cause.name, amount: money(cause.amount, currency) }) : t("below_daily", { day: when });
}

/** How wrong such forecasts were, beside the plainest one there is. */
function Accuracy({ of, currency }) {
  if (!of) return html`<p class="soft small">${t("accuracy_none")}</p>`;
  const { tests, days, meanAbsoluteError, lastBalanceError, coverage, beatsLastBalance } = of;
  const values = { n: tests, days, error: money(meanAbsoluteError, currency), last: money(lastBalanceError, currency), share: percent(Math.round(100 * coverage)) };
  return beatsLastBalance
    ? html`<p class="soft small">${t("accuracy", values)}</p>`
    : html`<p class="caution">${t("accuracy_worse", values)}</p>`;
}
