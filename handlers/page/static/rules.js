/** Rules of the person's own: a list in its order, a form that says what a rule will change before it does, and their undo. */
import { change, one, usePreview, useRead } from "./api.js";
import { OwnCategories, PlaceChoice, placeIn, placeOf, useNames } from "./own-categories.js";
import { Card, Choice, Line, Loaded, tried, undoing } from "./parts.js";
import { TagField } from "./tags.js";
import { html, useEffect, useId, useLayoutEffect, useRef, useState, useThere } from "./ui.js";
import { named, said, t } from "./words.js";

const FIELDS = ["text", "counterpartName", "merchantName", "purpose", "counterpartIban", "counterpartCreditorId", "counterpartMandateReference"];
const OPERATORS = ["contains", "equals", "startswith"];
const EMPTY = { field: "text", operator: "contains", value: "", place: "", merchant: "", tags: [], tag: "" };
const TYPING_RESTS = 400; // milliseconds

export function Rules() {
  const list = useRead("/rules");
  const [isOpen, setIsOpen] = useState(false);
  const opener = !isOpen && html`<button type="button" onClick=${() => setIsOpen(true)}>${t("new_rule")}</button>`;
  return html`<${OwnCategories} /><${Card} title=${t("rules")} aside=${opener}>
    <p class="soft small">${t("rules_text")}</p>
    ${isOpen && html`<${RuleForm} onClose=${() => setIsOpen(false)} />`}
    <${Loaded} of=${list}>${({ rules }) =>
      rules.length === 0 ? html`<p class="soft">${t("rules_none")}</p>` : html`<${Ordered} rules=${rules} />`}<//>
  <//>`;
}

/** The rules in the order in which they are asked, each to be moved, changed and removed. */
function Ordered({ rules }) {
  const name = useNames();
  const lines = useRef();
  const [edited, setEdited] = useState(null); // the id of the rule that is being changed
  const pressed = useRef(null); // the button that keeps the focus, wherever its rule goes: `{id, way}`
  useLayoutEffect(() => {
    const line = lines.current.children[rules.findIndex(({ id }) => id === pressed.current?.id)];
    const button = line?.querySelector(`[name=${pressed.current.way}]:enabled`) ?? line?.querySelector("button:enabled");
    if (!document.activeElement.closest("form")) button?.focus(); // who types by now goes on
    pressed.current = null;
  }, [rules, edited]);
  const ids = rules.map(({ id }) => id);
  const wanted = useRef(ids); // the order that was asked for last, from which a second press goes on
  const turn = useRef(Promise.resolve()); // one after the other
  useLayoutEffect(() => {
    wanted.current = ids;
  }, [rules]);
  const move = (by, { id }, way) => {
    const before = wanted.current;
    const others = before.filter((each) => each !== id);
    const place = Math.max(0, before.indexOf(id) + by);
    const now = [...others.slice(0, place), id, ...others.slice(place)];
    [wanted.current, pressed.current] = [now, { id, way }];
    turn.current = turn.current.then(async () => {
      if (await ordered(now, before)) return;
      [wanted.current, pressed.current] = [ids, null];
    });
  };
  const leave = (id) => () => {
    pressed.current = { id, way: "edit" };
    setEdited(null);
  };
  return html`<ol class="plain rules" ref=${lines}>${rules.map((rule, place) => {
    const what = condition(rule);
    const button = (way, label, text, act, isOff = false) => html`<button type="button" name=${way} disabled=${isOff}
      aria-label="${label}: ${what}" onClick=${act}>${text}</button>`;
    return rule.id === edited
      ? html`<li key=${rule.id}><${RuleForm} before=${rule} onClose=${leave(rule.id)} /></li>`
      : html`<${Line} key=${rule.id} title=${what} about=${result(rule, name)}><span class="buttons">
          ${rules.length > 1 && [
            button("earlier", t("rule_earlier"), "↑", () => move(-1, rule, "earlier"), place === 0),
            button("later", t("rule_later"), "↓", () => move(1, rule, "later"), place === rules.length - 1),
          ]}
          ${button("edit", t("change"), t("change"), () => setEdited(rule.id))}
          ${button("remove", t("remove"), t("remove"), () => removed(rule, ids))}
        </span><//>`;
  })}</ol>`;
}

const condition = ({ field, operator, value }) => `${t(field)} ${t(operator)} ${t("quoted", { value })}`;
const result = ({ merchant, type, tags = [], ...place }, name) =>
  [place.category && name(placeIn(place)), merchant, type && named(type), tags.length > 0 && `${t("tags")}: ${tags.join(", ")}`].filter(Boolean).join(" · ");

/** A rule as the form has it. */
const typedOf = ({ field, operator, value, merchant, tags = [], ...place }) =>
  ({ field, operator, value, merchant: merchant ?? "", tags, tag: "", place: placeIn(place) });

/** A rule of the form as a change says it: null for what it gives no longer. */
const changeOf = ({ field, operator, value, place, merchant, tags, tag }) => {
  const all = tag.trim() ? [...tags, tag.trim()] : tags;
  return { field, operator, value, merchant: merchant.trim() || null, tags: all.length > 0 ? all : null, ...(place ? placeOf(place) : { category: null }) };
};

/** The same as a new rule says it: without what it leaves open. */
const newOf = (typed) => Object.fromEntries(Object.entries(changeOf(typed)).filter(([, value]) => value !== null));

/** A new rule, or other words for the one of `before`. */
function RuleForm({ before, onClose }) {
  const id = useId();
  const first = useRef();
  const [typedNow, setTyped] = useState({}); // what is not typed anew follows the rule
  const rule = { ...(before ? typedOf(before) : EMPTY), ...typedNow };
  const close = useThere(onClose);
  const set = (changes) => setTyped({ ...typedNow, ...changes });
  const typed = (name) => (event) => set({ [name]: event.target.value });
  const hasTags = rule.tags.length > 0 || rule.tag.trim();
  const isWhole = Boolean(rule.value.trim() && (rule.place || rule.merchant.trim() || hasTags || before?.type));
  useEffect(() => first.current.focus(), []);
  const preview = usePreview(isWhole && ((signal) => sent(rule, before, { parameters: { dryRun: true }, signal })), [rule], TYPING_RESTS);
  const keep = async () => {
    if (await (before ? edited(rule, before) : added(rule))) close();
  };
  const hint = preview?.data && [t("rule_changes", { n: preview.data.changed }), hasTags && t("rule_tags_too")].filter(Boolean).join(" ");
  return html`<form class="rule" aria-label=${t(before ? "rule_edit" : "new_rule")} onSubmit=${keep}>
    <div class="field"><label for="${id}-value">${t("rule_if")}</label>
      <span class="buttons">
        <${Choice} name=${t("rule_field")} value=${rule.field} onChoose=${(field) => set({ field })} options=${FIELDS.map((each) => [each, t(each)])} />
        <${Choice} name=${t("rule_operator")} value=${rule.operator} onChoose=${(operator) => set({ operator })} options=${OPERATORS.map((each) => [each, t(each)])} />
        <input id="${id}-value" ref=${first} value=${rule.value} maxlength="200" required onInput=${typed("value")} autocomplete="off" />
      </span></div>
    <div class="field"><label for="${id}-merchant">${t("rule_then")}</label>
      <span class="buttons">
        <${PlaceChoice} value=${rule.place} onChoose=${(place) => set({ place })} none=${t("any_category")} />
        <input id="${id}-merchant" value=${rule.merchant} maxlength="200" placeholder=${t("rule_merchant")} onInput=${typed("merchant")} autocomplete="off" />
      </span></div>
    <${TagField} tags=${rule.tags} text=${rule.tag} onText=${(tag) => set({ tag })} onTags=${(tags, tag) => set({ tags, tag })} />
    <p class="soft small" role="status">${!isWhole ? t("rule_needs") : (preview?.error ? said(preview.error) : hint)}</p>
    <p class="buttons">
      <button type="submit" class="primary" disabled=${!isWhole || !preview || preview.error}>${t(before ? "save" : "rule_add")}</button>
      <button type="button" onClick=${onClose}>${t("cancel")}</button>
    </p>
  </form>`;
}

const of = (rule) => one("rules", rule.id);

/** Say the rule of the form to the interface: as a new one, or instead of the one of `before`. */
const sent = (typed, before, along = {}) =>
  before ? change("PATCH", of(before), { ...along, body: changeOf(typed) }) : change("POST", "/rules", { ...along, body: newOf(typed) });

const added = (typed) =>
  tried(() => sent(typed, null), ({ changed }) => t("rule_added", { n: changed }), ({ id }) => ({ text: t("undo"), act: () => removed({ id }) }));

const edited = (typed, before) =>
  tried(() => sent(typed, before), ({ changed }) => t("rule_changed", { n: changed }), () => undoing(() => sent(typedOf(before), before)));

/** Ask the rules in this order; `before` is the one to come back to. */
const ordered = (ids, before) =>
  tried(
    () => change("PUT", "/rules/order", { body: { ids } }),
    ({ changed }) => t("rules_ordered", { n: changed }),
    () => undoing(() => change("PUT", "/rules/order", { body: { ids: before } })),
  );

/** Remove a rule: what it decided is derived anew. It can be brought back to its place among `ids`. */
const removed = (rule, ids) =>
  tried(
    () => change("DELETE", of(rule)),
    ({ changed }) => t("rule_removed", { n: changed }),
    () => ids && undoing(() => restored(rule, ids)),
  );

const restored = async (rule, ids) => {
  const body = { ...newOf(typedOf(rule)), ...(rule.type && { type: rule.type }) };
  const { id } = await change("POST", "/rules", { body });
  await change("PUT", "/rules/order", { body: { ids: ids.map((each) => (each === rule.id ? id : each)) } });
};
