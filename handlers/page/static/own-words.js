/** What a person says of one booking: a note, tags and parts, kept beside it. */
import { change, useRead } from "./api.js";
import { Loaded, tried } from "./parts.js";
import { Splits } from "./splits.js";
import { html, useState } from "./ui.js";
import { t } from "./words.js";

const NOTE_LENGTH_MAX = 4000;
const TAG_LENGTH_MAX = 100;
const TAGS_MAX = 50;

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
  const known = useRead("/tags");
  const add = (event) => {
    event.preventDefault();
    if (tag.trim()) keep({ tags: [...said.tags, tag.trim()] });
  };
  return html`<form class="field" onSubmit=${add}><label for="own-tag">${t("tags")}</label>
    ${said.tags.length > 0 && html`<p class="buttons">${said.tags.map((each) => html`<button key=${each} type="button"
      aria-label="${t("remove")}: ${each}" onClick=${() => keep({ tags: said.tags.filter((other) => other !== each) })}>${each} ×</button>`)}</p>`}
    ${said.ruleTags && html`<p class="small soft">${t("rule_tags", { tags: said.ruleTags.join(", ") })}</p>`}
    <p class="buttons">
      <input id="own-tag" list="own-tags" maxlength=${TAG_LENGTH_MAX} value=${tag} onInput=${(event) => setTag(event.target.value)} />
      <datalist id="own-tags">${known.data?.tags.map(({ name }) => html`<option key=${name} value=${name}></option>`)}</datalist>
      <button type="submit" disabled=${!tag.trim() || said.tags.length >= TAGS_MAX}>${t("add_tag")}</button>
    </p>
  </form>`;
}
