/** One notice, over the place it was opened from: what a message outside the page leads to. */
import { useRead } from "./api.js";
import { Notice } from "./notices.js";
import { Dialog, Loaded } from "./parts.js";
import { html } from "./ui.js";
import { t } from "./words.js";

export default function OpenNotice({ id, person, onClose }) {
  const list = useRead("/notices", { limit: 200 });
  return html`<${Dialog} title=${t("notice")} onClose=${onClose}><${Loaded} of=${list}>${({ notices }) => {
    const notice = notices.find((each) => each.id === id);
    if (!notice) return html`<p>${t("notice_nowhere")}</p>`;
    return html`${["over", "withdrawn", "dismissed"].includes(notice.state) && html`<p class="soft">${t(`notice_${notice.state}`)}</p>`}
      <ul class="plain"><${Notice} notice=${notice} person=${person} /></ul>`;
  }}<//><//>`;
}
