/** Rules of the person's own: a list, a form that says what a rule will change before it does, and their undo. */
import { change, useRead } from "./api.js";
import { OwnCategories, PlaceChoice, placeIn, placeOf, useNames } from "./own-categories.js";
import { Card, Choice, Line, Loaded, tried } from "./parts.js";
import { html, useEffect, useState } from "./ui.js";
import { named, said, t } from "./words.js";

const FIELDS = ["text", "counterpartName", "merchantName", "purpose", "counterpartIban", "counterpartCreditorId", "counterpartMandateReference"];
const OPERATORS = ["contains", "equals", "startswith"];
const EMPTY = { field: "text", operator: "contains", value: "", category: "", merchant: "" };
const TYPING_RESTS = 400; // milliseconds

export function Rules() {
  const list = useRead("/rules");
  const name = useNames();
  const [isOpen, setIsOpen] = useState(false);
  const opener = !isOpen && html`<button type="button" onClick=${() => setIsOpen(true)}>${t("new_rule")}</button>`;
  return html`<${OwnCategories} /><${Card} title=${t("rules")} aside=${opener}>
    <p class="soft small">${t("rules_text")}</p>
    ${isOpen && html`<${NewRule} onClose=${() => setIsOpen(false)} />`}
    <${Loaded} of=${list}>${({ rules }) =>
      rules.length === 0
        ? html`<p class="soft">${t("rules_none")}</p>`
        : html`<ul class="plain">${rules.map((rule, place) => html`<${Line} key=${rule.id} title=${condition(rule)} about=${result(rule, name)}>
            <button type="button" aria-label="${t("remove")}: ${condition(rule)}" onClick=${() => removed(rule, place === rules.length - 1)}>${t("remove")}</button>
          <//>`)}</ul>`}<//>
  <//>`;
}

const condition = ({ field, operator, value }) => `${t(field)} ${t(operator)} ${t("quoted", { value })}`;
const result = ({ merchant, type, ...place }, name) => [place.category && name(placeIn(place)), merchant, type && named(type)].filter(Boolean).join(" · ");

/** What a rule says, without what it leaves open. */
const saidBy = ({ id, changed, category, detailedCategory, ownCategoryId, ...rule }) => ({
  ...Object.fromEntries(Object.entries(rule).filter(([, value]) => value)),
  ...(category && placeOf(placeIn({ category, detailedCategory, ownCategoryId }))),
});

function NewRule({ onClose }) {
  const [rule, setRule] = useState(EMPTY);
  const [found, setFound] = useState(null); // how many bookings it will change, or why it is none
  const set = (name) => (value) => {
    setFound(null);
    setRule({ ...rule, [name]: value });
  };
  const typed = (name) => (event) => set(name)(event.target.value);
  const isWhole = Boolean(rule.value.trim() && (rule.category || rule.merchant.trim()));
  useEffect(() => {
    if (!isWhole) return undefined;
    const overtaken = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const { changed } = await change("POST", "/rules", { parameters: { dryRun: true }, body: saidBy(rule), signal: overtaken.signal });
        setFound({ changed });
      } catch (error) {
        if (!overtaken.signal.aborted) setFound({ error: said(error) });
      }
    }, TYPING_RESTS);
    return () => {
      clearTimeout(timer);
      overtaken.abort();
    };
  }, [rule]);
  const add = async (event) => {
    event.preventDefault();
    if (await added(rule)) onClose();
  };
  return html`<form class="rule" aria-label=${t("new_rule")} onSubmit=${add}>
    <div class="field"><label for="rule-value">${t("rule_if")}</label>
      <span class="buttons">
        <${Choice} name=${t("rule_field")} value=${rule.field} onChoose=${set("field")} options=${FIELDS.map((each) => [each, t(each)])} />
        <${Choice} name=${t("rule_operator")} value=${rule.operator} onChoose=${set("operator")} options=${OPERATORS.map((each) => [each, t(each)])} />
        <input id="rule-value" value=${rule.value} maxlength="200" required onInput=${typed("value")} autocomplete="off" />
      </span></div>
    <div class="field"><label for="rule-merchant">${t("rule_then")}</label>
      <span class="buttons">
        <${PlaceChoice} value=${rule.category} onChoose=${set("category")} none=${t("any_category")} />
        <input id="rule-merchant" value=${rule.merchant} maxlength="200" placeholder=${t("rule_merchant")} onInput=${typed("merchant")} autocomplete="off" />
      </span></div>
    <p class="soft small" role="status">${!isWhole ? t("rule_needs") : (found?.error ?? (found && t("rule_changes", { n: found.changed })))}</p>
    <p class="buttons">
      <button type="submit" class="primary" disabled=${!isWhole || !found || found.error}>${t("rule_add")}</button>
      <button type="button" onClick=${onClose}>${t("cancel")}</button>
    </p>
  </form>`;
}

/** Remove a rule: what it decided is derived anew. The last one can be brought back to its place. */
const removed = (rule, isLast = false) =>
  tried(
    () => change("DELETE", `/rules/${encodeURIComponent(rule.id)}`),
    ({ changed }) => t("rule_removed", { n: changed }),
    () => isLast && { text: t("undo"), act: () => added(rule) },
  );

const added = (rule) =>
  tried(
    () => change("POST", "/rules", { body: saidBy(rule) }),
    ({ changed }) => t("rule_added", { n: changed }),
    ({ id }) => ({ text: t("undo"), act: () => removed({ id }) }),
  );
