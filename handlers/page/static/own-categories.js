/** Where a booking belongs: a category, a finer one, or one of the person's own, which are made, renamed and removed here. */
import { change, useRead } from "./api.js";
import { CATEGORIES } from "./icons.js";
import { Card, Line, Loaded, tried } from "./parts.js";
import { Pick } from "./pick.js";
import { html, into, useState, useThere } from "./ui.js";
import { named, t } from "./words.js";

const NAME_LENGTH_MAX = 100;
const isOwn = (place) => place.startsWith("own_");

/** A place as the interface takes it. */
export const placeOf = (place) => ({ [isOwn(place) ? "ownCategoryId" : CATEGORIES.includes(place) ? "category" : "detailedCategory"]: place });

/** A place as the filters of the interface take it. */
export function filterOf(place) {
  const { ownCategoryId, ...filter } = placeOf(place);
  return ownCategoryId ? { ownCategory: ownCategoryId } : filter;
}

/**
 * The place that an answer of the interface says.
 * @param {any} answer
 */
export const placeIn = ({ ownCategory, ownCategoryId = ownCategory?.id, detailedCategory, category }) =>
  ownCategoryId ?? detailedCategory ?? category ?? "";

/** What places are called: a function that knows more names as soon as they are read. */
export function useNames() {
  const { data } = useRead("/categories");
  return (place) => data?.own?.find(({ id }) => id === place)?.name ?? inWords(data?.categories.find(({ code }) => code === place)) ?? named(place);
}

const inWords = (leaf) => leaf?.name[document.documentElement.lang];

/** One of all places, below their categories; `none` is what the choice of none is called, if there is one. */
export function PlaceChoice({ value, onChoose, none }) {
  const { data } = useRead("/categories");
  const own = (category, leaf) =>
    (data?.own ?? []).filter((each) => each.category === category && each.detailedCategory === (leaf?.code ?? null)).map(({ id, name }) => [id, name, leaf ? inWords(leaf) : t(category)]);
  const below = (category) => [
    [category, t(category)],
    ...own(category),
    ...(data?.categories ?? []).filter((leaf) => leaf.category === category).flatMap((leaf) => [[leaf.code, inWords(leaf), t(category)], ...own(category, leaf)]),
  ];
  return html`<${Pick} name=${t("category")} value=${value} onChoose=${onChoose} options=${[...(none ? [["", none]] : []), ...CATEGORIES.flatMap(below)]} />`;
}

/** A name for a new one below the place that is chosen; `onMade` gets its id. */
export function NewOwn({ below, onMade }) {
  const [name, setName] = useState("");
  const made = useThere(onMade);
  if (!below || isOwn(below)) return null;
  const add = async () => {
    const answer = await tried(() => change("POST", "/categories", { body: { name, ...placeOf(below) } }), () => t("changed"));
    if (answer) made(answer.id);
  };
  return html`<form class="buttons" onSubmit=${add}>
    <input aria-label=${t("own_new")} placeholder=${t("own_new")} maxlength=${NAME_LENGTH_MAX} value=${name} onInput=${into(setName)} />
    <button type="submit" disabled=${!name.trim()}>${t("own_add")}</button>
  </form>`;
}

/** The person's own, each to be renamed, and removed by a second press: what was in it is not found again. */
export function OwnCategories() {
  const list = useRead("/categories");
  const name = useNames();
  return html`<${Card} title=${t("own_categories")}>
    <p class="soft small">${t("own_text")}</p>
    <${Loaded} of=${list}>${({ own = [] }) => html`<ul class="plain">${own.map((each) => html`<${Own} key=${each.id + each.name} own=${each} at=${name(placeIn(each))} />`)}</ul>`}<//>
  <//>`;
}

function Own({ own, at }) {
  const [name, setName] = useState(null);
  const path = `/categories/${own.id}`;
  const rename = () => tried(() => change("PATCH", path, { body: { name } }), () => t("changed"));
  if (name !== null)
    return html`<li class="line tall"><form class="buttons" onSubmit=${rename}>
      <input aria-label=${t("own_name")} maxlength=${NAME_LENGTH_MAX} value=${name} onInput=${into(setName)} />
      <button type="submit" class="primary" disabled=${!name.trim()}>${t("save")}</button>
      <button type="button" onClick=${() => setName(null)}>${t("cancel")}</button>
      <button type="button" class="danger" onClick=${() => tried(() => change("DELETE", path), () => t("changed"))}>${t("remove")}</button>
      <small>${t("own_goes")}</small>
    </form></li>`;
  return html`<${Line} title=${own.name} about=${at}>
    <button type="button" aria-label="${t("change")}: ${own.name}" onClick=${() => setName(own.name)}>${t("change")}</button>
  <//>`;
}
