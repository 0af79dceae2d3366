/** "Correct this": another category for a booking and all like it, with what it will change before it does. */
import { change } from "./api.js";
import { CategoryChoice, tried } from "./parts.js";
import { html, useState } from "./ui.js";
import { said, t } from "./words.js";

/** `onDone` is called once the correction holds; it can be undone from the toast. */
export function Correction({ row, onDone }) {
  const [category, setCategory] = useState(row.category ?? "");
  const [preview, setPreview] = useState(null); // what it will change, or why nothing
  const [isWorking, setIsWorking] = useState(false);
  const asked = (chosen, dryRun) => change("POST", "/corrections", { parameters: { dryRun }, body: { transactionId: row.id, category: chosen } });
  const choose = async (chosen) => {
    setCategory(chosen);
    setPreview(null);
    if (!chosen || chosen === row.category) return;
    setPreview(await asked(chosen, true).catch((error) => ({ error: said(error) })));
  };
  const correct = async () => {
    setIsWorking(true);
    const isDone = await tried(
      () => asked(category, false),
      ({ matching }) => t("corrected", { n: matching }),
      ({ id }) => ({ text: t("undo"), act: () => undone(id) }),
    );
    setIsWorking(false);
    if (isDone) onDone();
  };
  return html`<div class="correction">
    <h3>${t("correct")}</h3>
    <p class="buttons">
      <${CategoryChoice} value=${category} onChoose=${choose} none=${!row.category && t("choose")} />
      <button type="button" class="primary" disabled=${isWorking || !preview || preview.error} onClick=${correct}>${t("correct_it")}</button>
    </p>
    <p class="small soft" role="status">${preview && (preview.error ?? t("correct_hint", { name: preview.name, n: preview.matching }))}</p>
  </div>`;
}

/** Take a correction back: the category that was derived returns. */
export const undone = (id) => tried(() => change("DELETE", `/corrections/${encodeURIComponent(id)}`), () => t("undone"));
