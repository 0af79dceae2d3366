/** The first run: no account yet, and the ways to bring money in. */
import { useModule, useRead } from "./api.js";
import { Icon } from "./icons.js";
import { Loaded, Place, State, tallBones } from "./parts.js";
import { AUTH_URL, address, go } from "./place.js";
import { useIsSyncing } from "./sync.js";
import { html } from "./ui.js";
import { t } from "./words.js";

export function FirstRun({ person }) {
  const imports = useModule("import");
  const isOnItsWay = useIsSyncing(useRead("/connections"));
  const drop = (files) => {
    imports.data.add(files);
    go(address("/import"));
  };
  if (isOnItsWay)
    return html`<${Place} title=${t("overview")}>
      <div class="card"><${State} icon="connections" title=${t("on_its_way")} text=${t("on_its_way_text")} /></div>
    <//>`;
  return html`<${Place} title=${t("welcome")} text=${t("welcome_text")} actions=${html`<${ConnectBank} />`}>
    <${Loaded} of=${imports} bones=${tallBones}>${({ DropZone }) => html`<${DropZone} onFiles=${drop} />`}<//>
    <div class="hints">
      <${FolderHint} person=${person} />
      <${Hint} icon="file" title=${t("where_file")} text=${t("where_file_text")} />
      <${Hint} icon="command" title=${t("look_around")} text=${t("look_around_text")} command="bankdata demo" />
    </div>
  <//>`;
}

/** The way to the pages on which a bank is connected. */
export const ConnectBank = () => html`<a class="button" href="${AUTH_URL}/account/connect" data-leaves>${t("connect_bank")}</a>`;

export const FolderHint = ({ person }) =>
  html`<${Hint} icon="folder" title=${t("folder")} text=${t("folder_text")} command="bankdata connect folder ~/statements --user ${person.profile.name}" />`;

export function Hint({ icon, title, text, command }) {
  return html`<section class="card hint">
    <${Icon} name=${icon} size="24" />
    <h2>${title}</h2>
    <p class="soft">${text}</p>
    ${command && html`<pre tabindex="0"><code>${command}</code></pre>`}
  </section>`;
}
