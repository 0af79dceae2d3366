/** How a CSV file is read, where that was guessed or chosen: what each column means, the signs, the currency, to be changed. */
import { change, one, useRead } from "./api.js";
import { asksSign, choiceOf, profileOf } from "./chosen-layout.js";
import { moment } from "./format.js";
import { Card, Choice, Line, tried } from "./parts.js";
import { html, into, useId, useState } from "./ui.js";
import { t } from "./words.js";

const FIELDS = [["date", "field_date"], ["value_date", "valued"], ["amount", "field_amount"], ["debit", "field_debit"],
  ["credit", "field_credit"], ["indicator", "field_indicator"], ["currency", "layout_currency"], ["balance", "field_balance"],
  ["name", "counterpartName"], ["counterpart_iban", "counterpartIban"], ["purpose", "purpose"], ["account", "account"]];
const DATES = ["DD.MM.YYYY", "YYYY-MM-DD", "DD/MM/YYYY", "MM/DD/YYYY", "DD-MM-YYYY", "DD.MM.YY", "DD/MM/YY", "MM/DD/YY"];
const OPEN = ["assumed", "layout", "account"]; // where the currency comes from, as long as the file itself does not say it

/** `onTry` is handed the profile that was chosen, `onKeep` whether it is kept once the file is imported. */
export function Layout({ layout, number, isKept, isRefused, onTry, onKeep }) {
  const [isOpen] = useState(isRefused); // and stays so while other choices are tried
  const [choice, setChoice] = useState(() => choiceOf(layout));
  const id = useId();
  const set = (name) => (value) => setChoice({ ...choice, [name]: value });
  const { fields } = choice;
  const isWhole = fields.includes("date") && ["amount", "debit", "credit"].some((each) => fields.includes(each));
  const others = new Set(fields.filter((each) => each && FIELDS.every(([field]) => field !== each)));
  const options = [["", t("field_none")], ...FIELDS.map(([field, word]) => [field, t(word)]), ...[...others].map((each) => [each, each])];
  const dates = choiceOf(layout).date;
  const submit = () => isWhole && onTry(profileOf(layout, choice));
  const input = (name, values) => html`<div class="field"><label for="${id}-${name}">${t(`layout_${name}`)}</label>
    <input id="${id}-${name}" value=${choice[name]} required autocomplete="off" onInput=${into(set(name))} ...${values} /></div>`;
  const select = (name, all) => html`<div class="field"><span class="label">${t(`layout_${name}`)}</span>
    <${Choice} name=${t(`layout_${name}`)} value=${choice[name]} options=${all} onChoose=${set(name)} required /></div>`;
  return html`<details class="layout" open=${isOpen}>
    <summary>${t("layout")}${number}</summary>
    <form aria-label="${t("layout")}${number}" onSubmit=${submit}>
      <ul class="plain">${layout.columns.map(({ name, example }, place) => html`<${Line} key=${name} title=${name} about=${example}>
        <${Choice} name=${name} value=${fields[place]} options=${options}
          onChoose=${(field) => set("fields")(fields.map((each, index) => (index === place ? field : each)))} />
      <//>`)}</ul>
      <div class="buttons">
        ${asksSign(choice) && select("sign", [...(choice.sign ? [] : [["", t("choose")]]), ["written", t("sign_written")], ["turned", t("sign_turned")]])}
        ${fields.includes("indicator") && input("words", { maxlength: 200 })}
        ${OPEN.includes(layout.currencySource) && input("currency", { pattern: "[A-Z]{3}", maxlength: 3, size: 4, placeholder: "EUR" })}
        ${select("date", [...new Set([dates, ...DATES])].map((each) => [each, each || t("choose")]))}
        ${select("decimal", [[",", "1.234,56"], [".", "1,234.56"]])}
      </div>
      <p class="soft small" role="status">${isWhole ? "" : t("layout_needs")}</p>
      <p class="buttons">
        <button type="submit" aria-disabled=${!isWhole}>${t("layout_try")}</button>
        <label class="check"><input type="checkbox" checked=${isKept} onChange=${(event) => onKeep(event.target.checked)} /> ${t("layout_keep")}</label>
      </p>
    </form>
  </details>`;
}

/** What is kept for the next files with the same columns. */
export function KeptLayouts() {
  const kept = useRead("/layouts");
  if (!kept.data?.layouts.length) return null;
  const removed = (id) => tried(() => change("DELETE", one("layouts", id)), () => t("layout_removed"));
  return html`<${Card} title=${t("layouts")}><ul class="plain">
    ${kept.data.layouts.map(({ id, fileName, keptAt }) => html`<${Line} key=${id} title=${fileName} about=${moment(keptAt)}>
      <button type="button" onClick=${() => removed(id)} aria-label="${t("remove")}: ${fileName}">${t("remove")}</button>
    <//>`)}
  </ul><//>`;
}
