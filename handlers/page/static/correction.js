/** "Correct this": another category for a booking and all like it, with what it will change before it does. */
import { change, forget } from "./api.js";
import { CATEGORIES } from "./categories.js";
import { Choice, toast } from "./parts.js";
import { html, useState } from "./ui.js";
import { said, t } from "./words.js";

/** `onDone` is called once the correction holds; it can be undone from the toast. */
export function Correction({ row, onDone }) {
  const [category, setCategory] = useState(row.category ?? "");
  const [preview, setPreview] = useState(null);
  const [isWorking, setIsWorking] = useState(false);
  const asked = (chosen, dryRun) => change("POST", "/corrections", { parameters: { dryRun }, body: { transactionId: row.id, category: chosen } });
  const attempt = async (work) => {
    setIsWorking(true);
    try {
      await work();
    } catch (error) {
      setPreview({ error: said(error) });
    } finally {
      setIsWorking(false);
    }
  };
  const choose = (chosen) => {
    setCategory(chosen);
    setPreview(null);
    if (chosen && chosen !== row.category) attempt(async () => setPreview(await asked(chosen, true)));
  };
  const correct = () =>
    attempt(async () => {
      const { id, matching } = await asked(category, false);
      forget();
      onDone();
      toast(t("corrected", { n: matching }), { text: t("undo"), act: () => undone(id) });
    });
  return html`<div class="correction">
    <h3>${t("correct")}</h3>
    <p class="buttons">
      <${Choice} name=${t("category")} value=${category} onChoose=${choose} options=${[...(row.category ? [] : [["", t("choose")]]), ...CATEGORIES.map((each) => [each, t(each)])]} />
      <button type="button" class="primary" disabled=${isWorking || !preview || preview.error} onClick=${correct}>${t("correct_it")}</button>
    </p>
    <p class="small soft" role="status">${preview && (preview.error ?? t("correct_hint", { name: preview.name, n: preview.matching }))}</p>
  </div>`;
}

/** Take a correction back: the category that was derived returns. */
export async function undone(id) {
  try {
    await change("DELETE", `/corrections/${encodeURIComponent(id)}`);
    forget();
    toast(t("undone"));
  } catch (error) {
    toast(said(error));
  }
}
