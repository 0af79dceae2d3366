/** What a person says of one booking: a note, tags and parts, kept beside it. */
import { change, useRead } from "./api.js";
import { Loaded, tried } from "./parts.js";
import { Splits } from "./splits.js";
import { TagField } from "./tags.js";
import { html, useState } from "./ui.js";
import { t } from "./words.js";

const NOTE_LENGTH_MAX = 4000;

/** The note, tags and parts of a booking, to be read and changed. Each begins anew when it was changed itself, so that what is being typed into another one stays. */
export function OwnWords({ row }) {
  const path = `/transactions/${encodeURIComponent(row.id)}/annotation`;
  const said = useRead(path);
  const keep = (body) => tried(() => change("PATCH", path, { body }), () => t("kept"));
  return html`<div class="correction">
    <h3>${t("own_words")}</h3>
    <${Loaded} of=${said}>${(data) => html`
      <${Note} key=${`note ${data.note}`} said=${data.note ?? ""} keep=${keep} />
      <${Tags} key=${`tags ${JSON.stringify(data.tags)}`} said=${data} keep=${keep} />
      ${!row.isAdjustingEntry && html`<${Splits} key=${`parts ${JSON.stringify(data.splits)}`} row=${row} said=${data} keep=${keep} />`}
    `}<//>
  </div>`;
}

function Note({ said, keep }) {
  const [note, setNote] = useState(said);
  return html`<div class="field"><label for="own-note">${t("note")}</label>
    <textarea id="own-note" rows="3" maxlength=${NOTE_LENGTH_MAX} value=${note} onInput=${(event) => setNote(event.target.value)}></textarea>
    <p class="buttons"><button type="button" disabled=${note === said} onClick=${() => keep({ note: note || null })}>${t("keep_note")}</button></p>
  </div>`;
}

function Tags({ said, keep }) {
  const [tag, setTag] = useState("");
  const note = said.ruleTags && t("rule_tags", { tags: said.ruleTags.join(", ") });
  return html`<${TagField} tags=${said.tags} text=${tag} onText=${setTag} onTags=${(tags) => keep({ tags })} note=${note} />`;
}
