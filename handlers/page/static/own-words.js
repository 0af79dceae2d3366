/** What a person says of one booking: a note, tags and parts, kept beside it. */
import { change, one, useRead } from "./api.js";
import { Loaded, tried } from "./parts.js";
import { Splits } from "./splits.js";
import { TagField } from "./tags.js";
import { html, into, useEffect, useEvents, useState } from "./ui.js";
import { t } from "./words.js";

const NOTE_LENGTH_MAX = 4000;

/** The note, tags and parts of a booking, to be read and changed. What is typed while a change is on its way stays. */
export function OwnWords({ row }) {
  const path = one("transactions", row.id, "/annotation");
  const said = useRead(path);
  const keep = (body) => tried(() => change("PATCH", path, { body }), () => t("changed"));
  return html`<div class="correction">
    <h3>${t("own_words")}</h3>
    <${Loaded} of=${said}>${(data) => html`
      <${Note} said=${data.note ?? ""} keep=${keep} path=${path} />
      <${Tags} said=${data} keep=${keep} />
      ${!row.isAdjustingEntry && html`<${Splits} row=${row} said=${data} keep=${keep} />`}
    `}<//>
  </div>`;
}

const drafts = new Map(); // notes that were typed and not saved, by the path of their booking; gone with the tab

function Note({ said, keep, path }) {
  const [typed, setTyped] = useState(drafts.get(path)); // undefined: as it is said
  const note = typed ?? said;
  useEffect(() => {
    if (note !== said) return void drafts.set(path, note);
    drafts.delete(path);
    setTyped((now) => (now === said ? undefined : now)); // what was typed since this was drawn stays
  }, [note, said]);
  const save = async () => (await keep({ note: note || null })) && drafts.get(path) === note && drafts.delete(path);
  useEvents({ beforeunload: (event) => drafts.size > 0 && event.preventDefault() });
  return html`<div class="field"><label for="own-note">${t("note")}</label>
    <textarea id="own-note" rows="3" maxlength=${NOTE_LENGTH_MAX} value=${note} onInput=${into(setTyped)}></textarea>
    <p class="buttons"><button type="button" disabled=${note === said} onClick=${save}>${t("keep_note")}</button></p>
  </div>`;
}

function Tags({ said, keep }) {
  const [own, setOwn] = useState(null); // those of a change, until what is said is read anew
  const [tag, setTag] = useState("");
  const { tags } = own || said;
  useEffect(() => setOwn((now) => !now?.isKept && now), [said]);
  const say = async (all, typed) => {
    /** @type {any} */
    const mine = { tags: all };
    setOwn(mine);
    setTag(typed);
    mine.isKept = await keep(mine);
    if (mine.isKept) return;
    setOwn((now) => now !== mine && now);
    setTag((now) => now || tag);
  };
  const note = said.ruleTags && t("rule_tags", { tags: said.ruleTags.join(", ") });
  return html`<${TagField} tags=${tags} text=${tag} onText=${setTag} onTags=${say} note=${note} />`;
}
