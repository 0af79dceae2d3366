/** What a person says of one booking: a note, tags and parts, kept beside it. */
import { change, one, useRead } from "./api.js";
import { Loaded, tried } from "./parts.js";
import { Splits } from "./splits.js";
import { TagField } from "./tags.js";
import { html, useEffect, useEvents, useState } from "./ui.js";
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
  const [note, setNote] = useState(drafts.get(path) ?? said);
  useEffect(() => {
    if (note === said) drafts.delete(path);
    else drafts.set(path, note);
  }, [note, said]);
  useEvents({ beforeunload: (event) => drafts.size > 0 && event.preventDefault() });
  return html`<div class="field"><label for="own-note">${t("note")}</label>
    <textarea id="own-note" rows="3" maxlength=${NOTE_LENGTH_MAX} value=${note} onInput=${(event) => setNote(event.target.value)}></textarea>
    <p class="buttons"><button type="button" disabled=${note === said} onClick=${() => keep({ note: note || null })}>${t("keep_note")}</button></p>
  </div>`;
}

function Tags({ said, keep }) {
  const [tags, setTags] = useState(said.tags);
  const [tag, setTag] = useState("");
  const say = async (all, typed) => {
    setTags(all);
    setTag(typed);
    const answer = await keep({ tags: all });
    setTags((now) => (now === all ? (answer || said).tags : now));
    if (!answer) setTag((now) => now || tag);
  };
  const note = said.ruleTags && t("rule_tags", { tags: said.ruleTags.join(", ") });
  return html`<${TagField} tags=${tags} text=${tag} onText=${setTag} onTags=${say} note=${note} />`;
}
