/** Tags, of a booking or a rule: to be taken off, and one more to be typed. */
import { useRead } from "./api.js";
import { html, into, useId } from "./ui.js";
import { t } from "./words.js";

const TAG_LENGTH_MAX = 100;
const TAGS_MAX = 50;

/** `text` is what is being typed; `onTags` gets all of them once one was added or taken off, and what is being typed then; `note` is said below them. */
export function TagField({ tags, text, onText, onTags, note }) {
  const id = useId();
  const known = useRead("/tags");
  const add = () => onTags([...tags, text.trim()], "");
  const isWhole = text.trim() && tags.length < TAGS_MAX;
  const entered = (event) => {
    if (event.key !== "Enter" || !text.trim()) return;
    event.preventDefault();
    if (isWhole) add();
  };
  return html`<div class="field"><label for=${id}>${t("tags")}</label>
    ${tags.length > 0 && html`<p class="buttons">${tags.map((each) => html`<button key=${each} type="button"
      aria-label="${t("remove")}: ${each}" onClick=${() => onTags(tags.filter((other) => other !== each), text)}>${each} ×</button>`)}</p>`}
    ${note && html`<p class="small soft">${note}</p>`}
    <p class="buttons">
      <input id=${id} list="${id}-known" maxlength=${TAG_LENGTH_MAX} value=${text} onInput=${into(onText)} onKeyDown=${entered} autocomplete="off" />
      <datalist id="${id}-known">${known.data?.tags.map(({ name }) => html`<option key=${name} value=${name}></option>`)}</datalist>
      <button type="button" disabled=${!isWhole} onClick=${add}>${t("add_tag")}</button>
    </p>
  </div>`;
}
