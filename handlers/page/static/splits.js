/** What of one booking went where: parts that add up to it. */
import { asTyped, sum, typedAmount } from "./format.js";
import { PlaceChoice, placeIn, placeOf } from "./own-categories.js";
import { AmountInput, Money } from "./parts.js";
import { html, useState } from "./ui.js";
import { t } from "./words.js";

const PARTS_MAX = 50;

/** The parts of a booking; the last one is always what the others leave. `keep` says them to the interface. */
export function Splits({ row, said, keep }) {
  const [own, setParts] = useState(null); // once one was touched
  const parts = own ?? said.splits.map((part) => ({ ...part, place: placeIn(part) }));
  const typed = parts.slice(0, -1);
  const rest = sum([row.amount, ...typed.map(({ amount }) => -amount)], row.currency);
  const whole = [...typed, { ...parts.at(-1), amount: rest }];
  const isWhole = parts.length > 1 && whole.every(({ amount }) => amount * row.amount > 0);
  const empty = { amount: 0, place: row.category ?? "OTHER" };
  const set = (at, changes) => setParts(parts.map((part, place) => (place === at ? { ...part, ...changes } : part)));
  const type = (at, text) => set(at, { text, amount: sum([Math.sign(row.amount) * Math.abs(typedAmount(text, row.currency) || 0)], row.currency) });
  return html`<div class="field"><span class="label">${t("splits")}</span>
    ${said.sleepingSplits && html`<p class="caution">${t("splits_asleep")}</p>`}
    ${parts.map((part, at) => html`<p class="buttons" key=${at}>
      ${at < typed.length
        ? html`<${AmountInput} currency=${row.currency} aria-label=${t("field_amount")} value=${part.text ?? asTyped(Math.abs(part.amount) || null)} onInput=${(event) => type(at, event.target.value)} onChange=${() => set(at, { text: undefined })} />`
        : html`<${Money} amount=${rest * Math.sign(row.amount)} currency=${row.currency} />`}
      <${PlaceChoice} value=${part.place} onChoose=${(place) => set(at, { place })} />
      <button type="button" aria-label="${t("remove")}: ${at + 1}" onClick=${() => setParts(parts.length > 2 ? parts.filter((_, place) => place !== at) : [])}>×</button>
    </p>`)}
    <p class="buttons">
      <button type="button" disabled=${parts.length >= PARTS_MAX} onClick=${() => setParts(parts.length ? [empty, ...parts] : [empty, empty])}>${t("split_add")}</button>
      ${parts.length > 0 && html`<button type="button" disabled=${!isWhole} onClick=${() => keep({ splits: whole.map(({ amount, note, tags, place }) => ({ amount, note, tags, ...placeOf(place) })) })}>${t("splits_keep")}</button>`}
      ${parts.length > 0 && !isWhole && html`<span class="soft small">${t("splits_need")}</span>`}
      ${!parts.length && (said.splits.length > 0 || said.sleepingSplits) && html`<button type="button" onClick=${() => keep({ splits: [] })}>${t("splits_back")}</button>`}
    </p>
  </div>`;
}
