/** The coming days: what is expected to be held, how sure that is, on which day it is least, and what is due until the next pay. */
import { useRead } from "./api.js";
import { Course } from "./charts.js";
import { day, money, percent } from "./format.js";
import { Card, Loaded, Money, Segments, accountName, chartBones } from "./parts.js";
import { html, useState } from "./ui.js";
import { t } from "./words.js";

const PERIODS = ["30", "90", "180"]; // days

/** `accountIds` are all of the person's, or one. */
export default function Forecast({ person, accountIds = person.ids }) {
  const [days, setDays] = useState(PERIODS[0]);
  const [wanted, setWanted] = useState(person.currency);
  const forecast = useRead("/forecast", { accountIds, days });
  const choice = html`<${Segments} legend=${t("period")} value=${days} onChoose=${setDays}
    options=${PERIODS.map((each) => [each, t(`d${each}`), t("n_days", { n: Number(each) })])} />`;
  return html`<${Card} title=${t("outlook")} aside=${forecast.data?.currencies.length > 0 && choice}>
    <${Loaded} of=${forecast} bones=${chartBones}>
      ${({ currencies, leftOut }) => {
        const shown = currencies.find(({ currency }) => currency === wanted) ?? currencies[0];
        return html`
          ${currencies.length > 1 && html`<${Segments} legend=${t("layout_currency")} value=${shown.currency} onChoose=${setWanted}
            options=${currencies.map(({ currency }) => [currency, currency])} />`}
          ${shown ? html`<${Outlook} of=${shown} today=${person.profile.today} />` : html`<p class="soft">${t("outlook_none")}</p>`}
          ${shown && leftOut.length > 0 && html`<p class="soft small">${t("left_out_currencies", { names: leftOut.map(({ accountId, reason }) =>
            `${accountName(person.byId.get(accountId))} (${t(reason)})`).join(", ") })}</p>`}`;
      }}
    <//>
  <//>`;
}

function Outlook({ of: { accuracy, balance, currency, days, lowest, nextPay }, today }) {
  const now = { date: today, balance, low: balance, high: balance };
  const points = [now, ...days.map(({ date, expected, low, high }) => ({ date, balance: expected, low, high }))];
  const end = days.at(-1);
  const isWorse = accuracy?.beatsLastBalance === false; // to be known before the line is read
  const facts = [
    [t("lowest_on", { day: day(lowest.date) }), lowest.expected, t("band_low", { low: money(lowest.low, currency) })],
    ...(nextPay
      ? [[t("due_until_pay", { day: day(nextPay.date) }), nextPay.due, ""], [t("left_then"), nextPay.left, ""]]
      : [[t("expected_on", { day: day(end.date) }), end.expected, t("band", { low: money(end.low, currency), high: money(end.high, currency) })]]),
  ];
  return html`<dl class="figures outlook">
      ${facts.map(([name, amount, note]) => html`<div key=${name}><dt>${name}</dt>
        <dd><span class="figure medium"><${Money} amount=${amount} currency=${currency} /></span>${note && html`<span class="note soft small">${note}</span>`}</dd></div>`)}
    </dl>
    ${isWorse && html`<${Accuracy} of=${accuracy} currency=${currency} />`}
    <${Course} points=${points} currency=${currency} label=${t("outlook_course")} rest=${points.findIndex(({ date }) => date === lowest.date)} />
    <p class="soft small">${t("band_text")}</p>
    ${!isWorse && html`<${Accuracy} of=${accuracy} currency=${currency} />`}`;
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
