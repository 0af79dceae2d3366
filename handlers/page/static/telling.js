/** Notices: what a person is told, when, and where it reaches them. */
import { change, useRead } from "./api.js";
import { languageName, languages } from "./format.js";
import { Card, Choice, Loaded, Place, tallBones, tried, undoing } from "./parts.js";
import { Ways } from "./ways.js";
import { html, useState } from "./ui.js";
import { t } from "./words.js";

const PATH = "/notices/settings";
const QUIET = { from: "22:00", until: "07:00" }; // what is offered first

export default function Telling() {
  const settings = useRead(PATH);
  return html`<${Place} title=${t("telling")} text=${t("telling_text")}>
    <div class="settings">
      <${Ways} />
      <${Loaded} of=${settings} bones=${tallBones}>${(data) => html`<${When} settings=${data} /><${Kinds} settings=${data} />`}<//>
    </div>
  <//>`;
}

/** Say these settings instead of the former ones, which can be had again; all others are as they are by then. */
const put = (changes, before) => {
  const sent = (body) => change("PUT", PATH, { body });
  return tried(() => sent(changes), () => t("changed"), () => undoing(() => sent(before)));
};

function When({ settings }) {
  const { language, timeZone, quietHours, digest } = settings;
  const set = (name) => (value) => put({ [name]: value }, { [name]: settings[name] });
  const zones = [...new Set([timeZone, ...(Intl.supportedValuesOf?.("timeZone") ?? [])])].map((zone) => [zone, zone.replaceAll("_", " ")]);
  return html`<${Card} title=${t("telling_when")}>
    <div class="field"><span class="label">${t("language")}</span>
      <${Choice} name=${t("language")} value=${language} onChoose=${set("language")} options=${languages.map((code) => [code, languageName(code)])} /></div>
    <div class="field"><span class="label">${t("time_zone")}</span>
      <${Choice} name=${t("time_zone")} value=${timeZone} onChoose=${set("timeZone")} options=${zones} /></div>
    <${Quiet} key=${JSON.stringify(quietHours)} hours=${quietHours} onChoose=${set("quietHours")} />
    <div class="field"><span class="label">${t("digest")}</span><p class="soft small">${t("digest_text")}</p>
      <${Choice} name=${t("digest")} value=${digest} onChoose=${set("digest")} options=${["off", "weekly", "monthly"].map((each) => [each, t(`digest_${each}`)])} /></div>
  <//>`;
}

/** The hours in which nothing makes a sound, by the clock on the wall. */
function Quiet({ hours, onChoose }) {
  const [typed, setTyped] = useState(hours ?? QUIET);
  const input = (name) => html`<label>${t(`quiet_${name}`)} <input type="time" required value=${typed[name]} onInput=${(event) => setTyped({ ...typed, [name]: event.target.value })} /></label>`;
  const isChanged = !hours || hours.from !== typed.from || hours.until !== typed.until;
  return html`<form class="field" onSubmit=${() => onChoose(typed)}><span class="label">${t("quiet")}</span><p class="soft small">${t("quiet_text")}</p>
    <span class="buttons">${input("from")}${input("until")}
      ${isChanged && html`<button type="submit" class="primary">${t(hours ? "save" : "quiet_set")}</button>`}
      ${hours && html`<button type="button" onClick=${() => onChoose(null)}>${t("quiet_none")}</button>`}
    </span>
  </form>`;
}

const HOW = ["now", "digest", "off"];

function Kinds({ settings }) {
  const word = (how) => (how === "digest" && settings.digest === "off" ? "how_digest_off" : `how_${how}`);
  return html`<${Card} title=${t("telling_what")}>
    <p class="soft small">${t("telling_what_text")}</p>
    <ul class="plain told">${Object.entries(settings.kinds).map(([kind, how]) => html`<li class="line" key=${kind}><span>${t(kind)}</span>
      <${Choice} name=${t(kind)} value=${how} onChoose=${(chosen) => put({ kinds: { [kind]: chosen } }, { kinds: { [kind]: how } })} options=${HOW.map((each) => [each, t(word(each))])} />
    </li>`)}</ul>
  <//>`;
}
