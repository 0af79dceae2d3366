/** Where notices go: this browser, mail and other addresses, each once its code was entered. */
import { change, one, useRead } from "./api.js";
import { moment } from "./format.js";
import { Card, Dialog, Line, Loaded, Titled, tried } from "./parts.js";
import { hindrance, isHere, isLost, subscribe, subscribed, unsubscribe } from "./push.js";
import { html, into, useEffect, useId, useState, useThere } from "./ui.js";
import { t } from "./words.js";

const TARGETS = "/notices/targets";
const WAYS = { push: "push_add", email: "email_add", apprise: "url_add" }; // in the order in which they are offered

export function Ways() {
  const list = useRead(TARGETS);
  const [here, setHere] = useState(undefined); // null: it has no subscription
  const [open, setOpen] = useState(""); // the way of which a target is being added
  useEffect(() => void subscribed().then(setHere, () => {}), [list.data]);
  return html`<${Card} title=${t("ways")}>
    <p class="soft small">${t("ways_text")}</p>
    <${Loaded} of=${list}>${({ targets, ways }) => html`
      ${targets.length === 0 ? html`<p>${t("ways_none")}</p>` : html`<ul class="plain told">${targets.map((each) => html`<${Target} key=${each.id} target=${each} isHere=${isHere(each, here)} />`)}</ul>`}
      ${here === null && isLost(targets, here) && html`<p class="caution">${t("push_lost")}</p>`}
      ${open
        ? html`<${Add} key=${open} way=${open} onClose=${() => setOpen("")} />`
        : html`<p class="buttons">${Object.keys(WAYS).filter((way) => ways.includes(way) && !(way === "push" && targets.some((each) => isHere(each, here))))
          .map((way) => html`<button key=${way} type="button" onClick=${() => setOpen(way)}>${t(WAYS[way])}</button>`)}</p>`}
    `}<//>
  <//>`;
}

const nameOf = ({ name, scheme, last }) => name ?? `${scheme}: …${last}`;

const act = (method, target, below, along, sentence) => tried(() => change(method, one("notices/targets", target.id, below), along), () => t(sentence));

/** One of the places, with what can be done about it. */
function Target({ target, isHere: isThis }) {
  const [open, setOpen] = useState("");
  const { state, reason, wholeSentences } = target;
  const name = nameOf(target);
  const about = [isThis && t("push_here"), state === "paused" ? t("target_paused", { reason: t(`why_${reason}`) }) : t(`target_${state}`), wholeSentences && t("whole_short")];
  const button = (text, onClick) => html`<button type="button" aria-label="${text}: ${name}" onClick=${onClick}>${text}</button>`;
  return html`<li>
    <div class="line tall"><${Titled} title=${name} about=${about.filter(Boolean).join(" · ")} /><span class="buttons">
      ${state !== "unconfirmed" && button(t("target_test"), () => act("POST", target, "/test", {}, "target_tested"))}
      ${button(t("target_sent"), () => setOpen("sent"))}
      ${button(t("remove"), () => setOpen("remove"))}
    </span></div>
    ${state === "unconfirmed" && html`<${Code} target=${target} />`}
    ${open === "sent" && html`<${Sent} target=${target} onClose=${() => setOpen("")} />`}
    ${open === "remove" && html`<${Remove} target=${target} isThis=${isThis} onClose=${() => setOpen("")} />`}
  </li>`;
}

/** The code that was sent there shows that it arrives, and that it is the person's own. */
function Code({ target }) {
  const id = useId();
  const [code, setCode] = useState("");
  const confirm = () => act("POST", target, "/confirmation", { body: { code: code.trim() } }, "target_confirmed");
  return html`<form class="field" onSubmit=${confirm}><label for=${id}>${t("target_code")}</label>
    <p class="soft small">${t("target_code_text")}</p>
    <span class="buttons"><input id=${id} inputmode="numeric" autocomplete="one-time-code" size="10" required value=${code} onInput=${into(setCode)} />
      <button type="submit" class="primary">${t("confirm")}</button>
      <button type="button" onClick=${() => act("POST", target, "/test", {}, "target_code_sent")}>${t("target_new_code")}</button></span>
  </form>`;
}

/** What was sent there, and what came of it. */
function Sent({ target, onClose }) {
  const list = useRead(one("notices/targets", target.id, "/deliveries"));
  return html`<${Dialog} title="${t("target_sent")}: ${nameOf(target)}" onClose=${onClose}><${Loaded} of=${list}>${({ deliveries }) =>
    deliveries.length === 0
      ? html`<p class="soft">${t("sent_none")}</p>`
      : html`<ul class="plain told">${deliveries.map(({ id, what, kind, state, reason, madeAt }) => html`<${Line} key=${id} title=${kind ? t(kind) : t(`sent_${what}`)}
          about=${[moment(madeAt), t(`sent_${state}`), reason && t(`why_${reason}`)].filter(Boolean).join(" · ")} />`)}</ul>`}<//><//>`;
}

function Remove({ target, isThis, onClose }) {
  const close = useThere(onClose);
  const remove = async () => {
    if (!(await act("DELETE", target, "", {}, "target_removed"))) return;
    if (isThis) await unsubscribe();
    close();
  };
  return html`<${Dialog} title="${t("remove")}: ${nameOf(target)}" onClose=${onClose}>
    <p>${t("target_remove_text")}</p>
    <p class="buttons"><button type="button" class="danger" onClick=${remove}>${t("remove")}</button><button type="button" onClick=${onClose}>${t("cancel")}</button></p>
  <//>`;
}

const TYPES = { email: { type: "email", autocomplete: "email", maxlength: 254 }, apprise: { type: "text", autocomplete: "off", maxlength: 2000 } };

/** A further place: what stands in the way of it, or its address. */
function Add({ way, onClose }) {
  const id = useId();
  const [typed, setTyped] = useState("");
  const [isWhole, setIsWhole] = useState(false);
  const close = useThere(onClose);
  const stopped = way === "push" && hindrance();
  const add = async () => {
    const body = { [way === "email" ? "email" : "url"]: typed.trim(), wholeSentences: isWhole };
    const made = () => (way === "push" ? subscribe(isWhole) : change("POST", TARGETS, { body }));
    if (await tried(made, () => t("target_code_sent"))) close();
  };
  if (stopped) return html`<div class="field" role="status"><p>${t(stopped)}</p><p class="buttons"><button type="button" onClick=${onClose}>${t("cancel")}</button></p></div>`;
  return html`<form class="field" aria-label=${t(WAYS[way])} onSubmit=${add}>
    ${way === "push"
      ? html`<p>${t("push_asks")}</p>`
      : html`<label for=${id}>${t(`${way}_address`)}</label>${way === "apprise" && html`<p class="soft small">${t("url_text")}</p>`}
        <input id=${id} ...${TYPES[way]} required value=${typed} onInput=${into(setTyped)} />`}
    <label class="check"><input type="checkbox" checked=${isWhole} onChange=${(event) => setIsWhole(event.target.checked)} /> ${t("whole")}</label>
    <p class="buttons"><button type="submit" class="primary">${t("add")}</button><button type="button" onClick=${onClose}>${t("cancel")}</button></p>
  </form>`;
}
