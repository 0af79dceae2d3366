/** "Correct this": another place for a booking, all like it, or by a rule, with what it will change before it does. */
import { change, one, usePreview } from "./api.js";
import { NewOwn, PlaceChoice, placeIn, placeOf } from "./own-categories.js";
import { Choice, tried, undoing } from "./parts.js";
import { html, useState, useThere } from "./ui.js";
import { said, t } from "./words.js";

/**
 * The ways of correcting: what would change of it, how it is done, and how it is taken back.
 * @type {Record<string, { try: (row: any, place: string) => Promise<any>, hint: (found: any) => string, make: (row: any, place: string) => Promise<any>, told: (answer: any) => string, undo: (answer: any, row: any) => Promise<any> }>}
 */
const WAYS = {
  all: {
    try: (row, place) => corrected(row, place, true),
    hint: ({ name, matching }) => t("correct_hint", { name, n: matching }),
    make: (row, place) => corrected(row, place, false),
    told: ({ matching }) => t("corrected", { n: matching }),
    undo: ({ id }) => forgotten("corrections", id),
  },
  one: {
    try: async () => ({}),
    hint: () => t("correct_one_hint"),
    make: async (row, place) => {
      const before = await annotation("GET", row);
      await annotation("PATCH", row, placeOf(place));
      return before;
    },
    told: () => t("corrected", { n: 1 }),
    undo: (before, row) => annotation("PATCH", row, before.category ? placeOf(placeIn(before)) : { category: null }),
  },
  rule: {
    try: (row, place) => ruled(row, place, true),
    hint: ({ field, operator, value, changed }) =>
      t("correct_rule_hint", { rule: `${t(field)} ${t(operator)} ${t("quoted", { value })}`, n: changed }),
    make: (row, place) => ruled(row, place, false),
    told: ({ changed }) => t("corrected", { n: changed }),
    undo: ({ id }) => forgotten("rules", id),
  },
};

const of = (row) => one("transactions", row.id);
const corrected = (row, place, dryRun) =>
  change("POST", "/corrections", { parameters: { dryRun }, body: { transactionId: row.id, ...placeOf(place) } });
const annotation = (method, row, body) => change(method, `${of(row)}/annotation`, { body });
const forgotten = (kind, id) => change("DELETE", one(kind, id));
const ruled = async (row, place, dryRun) => {
  const { field, operator, value } = await change("GET", `${of(row)}/rule`);
  return change("POST", "/rules", { parameters: { dryRun }, body: { field, operator, value, ...placeOf(place) } });
};

/** `onDone` is called once the correction holds; it can be undone from the toast. */
export function Correction({ row, onDone }) {
  const [place, setPlace] = useState("");
  const [way, setWay] = useState("all");
  const [isWorking, setIsWorking] = useState(false);
  const preview = usePreview(place && (() => WAYS[way].try(row, place)), [row.id, place, way]);
  const done = useThere(onDone);
  const correct = async () => {
    setIsWorking(true);
    const { make, told, undo } = WAYS[way];
    const isDone = await tried(() => make(row, place), told, (answer) => undoing(() => undo(answer, row)));
    setIsWorking(false);
    if (isDone) done();
  };
  const ways = Object.keys(WAYS).map((each) => [each, t(`correct_${each}`)]);
  return html`<div class="correction">
    <h3>${t("correct")}</h3>
    <p class="buttons">
      <${PlaceChoice} value=${place} onChoose=${setPlace} none=${t("choose")} />
      <${Choice} name=${t("correct_which")} value=${way} options=${ways} onChoose=${setWay} />
      <button type="button" class="primary" disabled=${isWorking || !preview || preview.error} onClick=${correct}>${t("correct_it")}</button>
    </p>
    <${NewOwn} key=${place} below=${place} onMade=${setPlace} />
    <p class="small soft" role="status">${preview && (preview.error ? said(preview.error) : WAYS[way].hint(preview.data))}</p>
  </div>`;
}

/** Take a correction back: the category that was derived returns. */
export const undone = (id) => tried(() => forgotten("corrections", id), () => t("undone"));
