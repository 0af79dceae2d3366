/** Export: what the filters let through as a file, in a format of one's choice. */
import { download } from "./api.js";
import { Choice, Dialog } from "./parts.js";
import { html, useState } from "./ui.js";
import { said, t } from "./words.js";

const FORMATS = [["csv", "CSV"], ["camt053", "camt.053"], ["ofx", "OFX"], ["beancount", "Beancount"], ["jsonl", "JSON Lines"], ["parquet", "Parquet"]];

/** `asked` are the filters of the list, `total` is how many transactions they let through. */
export function Export({ asked, total, onClose }) {
  const [format, setFormat] = useState("csv");
  const [state, setState] = useState(null); // what is said: that it is being written, or what went wrong
  const save = async () => {
    setState(t("exporting"));
    try {
      await download("/transactions/export", { ...asked, format });
      onClose();
    } catch (error) {
      setState(said(error));
    }
  };
  return html`<${Dialog} title=${t("export")} onClose=${onClose}>
    <p>${t("export_text", { n: total })}</p>
    <div class="field"><span class="label">${t("format")}</span>
      <${Choice} name=${t("format")} value=${format} onChoose=${setFormat} options=${FORMATS} />
      <p class="soft small">${t(`format_${format}`)}</p>
    </div>
    <p class="soft small" role="status">${state}</p>
    <p class="buttons"><button type="button" class="primary" onClick=${save}>${t("save_file")}</button></p>
  <//>`;
}
