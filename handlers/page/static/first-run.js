/** The first run: no account yet, and the ways to bring money in. */
import { Icon } from "./icons.js";
import { Place } from "./parts.js";
import { address, go } from "./place.js";
import { html, useEffect, useState } from "./ui.js";
import { t } from "./words.js";

export function FirstRun({ person }) {
  const [imports, setImports] = useState(null);
  useEffect(() => {
    import("./import.js").then(setImports);
  }, []);
  const drop = (files) => {
    imports.add(files);
    go(address("/import"));
  };
  return html`<${Place} title=${t("welcome")} text=${t("welcome_text")}>
    ${imports && html`<${imports.DropZone} onFiles=${drop} />`}
    <div class="hints">
      <${Hint} icon="folder" title=${t("folder")} text=${t("folder_text")} command="bankdata connect folder ~/statements --user ${person.profile.name}" />
      <${Hint} icon="file" title=${t("where_file")} text=${t("where_file_text")} />
      <${Hint} icon="command" title=${t("look_around")} text=${t("look_around_text")} command="bankdata demo" />
    </div>
  <//>`;
}

export function Hint({ icon, title, text, command }) {
  return html`<section class="card hint">
    <${Icon} name=${icon} size="24" />
    <h2>${title}</h2>
    <p class="soft">${text}</p>
    ${command && html`<pre tabindex="0"><code>${command}</code></pre>`}
  </section>`;
}
