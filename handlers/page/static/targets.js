/** Amounts to compare with what was spent at a place in a month or its year: a number beside a number, and nothing more. */
import { change, useRead } from "./api.js";
import { asTyped, money, month as monthName, typedAmount } from "./format.js";
import { PlaceChoice, placeIn, placeOf, useNames } from "./own-categories.js";
import { AmountInput, Choice, Loaded, Titled, tried, undoing } from "./parts.js";
import { html, useState, useThere } from "./ui.js";
import { t } from "./words.js";

const PERIODS = { month: "monthly", year: "yearly" };

/** What holds in this month; what is set here holds from it on. */
export function Targets({ month, currency: home }) {
  const list = useRead("/targets", { month });
  const name = useNames();
  const [wanted, setWanted] = useState(null);
  const told = ({ amount, spent, left, currency, period }) =>
    t(left < 0 ? "target_over" : "target_left", {
      amount: money(amount, currency), period: t(PERIODS[period]), spent: money(spent, currency), left: money(Math.abs(left), currency),
    });
  return html`<section class="targets" aria-labelledby="targets">
    <h3 id="targets">${t("targets")}</h3>
    <${Loaded} of=${list}>${({ targets }) => html`
      <ul class="plain">${targets.map((each) => {
        const place = placeIn(each);
        return html`<li class="line tall target" key=${place}>
          <${Titled} title=${name(place)} about=${told(each)} />
          <button type="button" aria-label="${t("change")}: ${name(place)}" onClick=${() => setWanted(place)}>${t("change")}</button>
        </li>`;
      })}</ul>
      ${wanted !== null
        ? html`<${Wanted} key=${wanted} month=${month} first=${{ period: "month", currency: home, ...targets.find((each) => placeIn(each) === wanted), place: wanted }} held=${targets} onClose=${() => setWanted(null)} />`
        : html`<button type="button" onClick=${() => setWanted("")}>${t("target_set")}</button>`}`}<//>
  </section>`;
}

/** What is to hold instead; what held there before can be had again. */
function Wanted({ month, first, held, onClose }) {
  const [typed, setTyped] = useState({});
  const target = { ...first, ...typed };
  const { currency } = first;
  const close = useThere(onClose);
  const set = (changes) => setTyped({ ...typed, ...changes });
  const put = ({ place, amount, period }) => change("PUT", "/targets", { body: { ...placeOf(place), amount, period, from: month } });
  const save = async () => {
    const before = { ...target, ...(held.find((each) => placeIn(each) === target.place) ?? { amount: 0 }) };
    if (await tried(() => put(target), () => t("changed"), () => undoing(() => put(before)))) close();
  };
  const period = Object.entries(PERIODS).map(([key, word]) => [key, t(word)]);
  return html`<form onSubmit=${save}>
    <p class="soft small">${t("target_text", { month: monthName(month) })}</p>
    <p class="buttons">
      <${PlaceChoice} value=${target.place} onChoose=${(place) => set({ place })} none=${t("category")} />
      <${AmountInput} currency=${currency} required aria-label=${t("field_amount")} placeholder=${t("field_amount")} value=${target.text ?? asTyped(target.amount)} onInput=${({ target: { value: text } }) => set({ text, amount: typedAmount(text, currency) })} />
      <${Choice} name=${t("period")} value=${target.period} options=${period} onChoose=${(chosen) => set({ period: chosen })} />
      <button type="submit" class="primary" disabled=${!target.place}>${t("save")}</button>
      <button type="button" onClick=${onClose}>${t("cancel")}</button>
    </p>
  </form>`;
}
