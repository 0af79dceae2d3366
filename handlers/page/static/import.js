/** Import: files dropped, looked into before anything is stored, imported one by one, taken back again. */
import { change, forget, useRead } from "./api.js";
import { day, money, moment, size } from "./format.js";
import { Icon } from "./icons.js";
import { Hint } from "./first-run.js";
import { Bones, Card, Loaded, Money, Place, shortIban, toast } from "./parts.js";
import { offers } from "./place.js";
import { html, useRef, useState } from "./ui.js";
import { named, t } from "./words.js";

const POLLED_EVERY = 1000; // milliseconds
const FILE_BYTES_MAX = 256 * 1024 * 1024; // what the interface takes at once

export default function Import({ person }) {
  return html`<${Place} title=${t("import_title")} text=${t("import_text")}>
    <${Files} person=${person} />
    <${History} />
    <div class="hints"><${Hint} icon="file" title=${t("where_file")} text=${t("where_file_text")} /></div>
  <//>`;
}

/** The place to drop files, and what became of those that were dropped. */
export function Files() {
  const [files, setFiles] = useState([]);
  const known = useRef(0);
  const set = (key, values) => setFiles((before) => before.map((each) => (each.key === key ? { ...each, ...values } : each)));
  const add = async (chosen) => {
    const fresh = [...chosen].map((file) => ({ key: (known.current += 1), file, state: "reading" }));
    setFiles((before) => [...fresh, ...before]);
    // one after the other: imports take turns anyway
    for (const { key, file } of fresh) set(key, await looked(file));
  };
  const store = async ({ key, file }) => {
    set(key, { state: "importing" });
    const outcome = await sent(file, { isDry: false });
    forget();
    set(key, outcome);
  };
  const undo = async ({ key, report }) => {
    await takeBack(report.importId);
    set(key, { state: "undone" });
  };
  return html`<${DropZone} onFiles=${add} />
    ${files.length > 0 && html`<p class="soft found">${t("not_before")}</p>`}
    ${files.map((each) => html`<${FileCard} key=${each.key} each=${each} onImport=${() => store(each)} onUndo=${() => undo(each)} onRemove=${() => setFiles(files.filter(({ key }) => key !== each.key))} />`)}`;
}

const looked = (file) => (file.size > FILE_BYTES_MAX ? { state: "refused", error: t("too_large") } : sent(file, { isDry: true }));

/** What the interface says of a file; `isDry` stores nothing. */
async function sent(file, { isDry }) {
  try {
    let report = await change("POST", "/imports", { parameters: { filename: file.name, dryRun: isDry }, file });
    while (report.status === "running") {
      await new Promise((resolve) => setTimeout(resolve, POLLED_EVERY));
      report = await change("GET", `/imports/${encodeURIComponent(report.importId)}`);
    }
    if (report.error) return { state: "refused", error: report.error };
    return { state: isDry ? "looked" : "imported", report };
  } catch (error) {
    return { state: "refused", error: error.message || t("failed_text") };
  }
}

async function takeBack(importId) {
  try {
    const { removed } = await change("DELETE", `/imports/${encodeURIComponent(importId)}`);
    forget();
    toast(t("import_undone", { n: removed }));
  } catch (error) {
    toast(error.message || t("failed_text"));
  }
}

function DropZone({ onFiles }) {
  const input = useRef();
  const [isOver, setIsOver] = useState(false);
  const drop = (event) => {
    event.preventDefault();
    setIsOver(false);
    onFiles(event.dataTransfer.files);
  };
  const over = (event) => {
    event.preventDefault();
    setIsOver(true);
  };
  const choose = () => {
    onFiles(input.current.files);
    input.current.value = "";
  };
  return html`<section class="drop ${isOver ? "over" : ""}" aria-label=${t("drop")} onDragOver=${over} onDragLeave=${() => setIsOver(false)} onDrop=${drop}>
    <${Icon} name="import" size="32" />
    <h2>${t("drop")}</h2>
    <p class="soft">${t("or")}</p>
    <button type="button" class="primary" onClick=${() => input.current.click()}>${t("choose_files")}</button>
    <input ref=${input} type="file" multiple hidden aria-label=${t("choose_files")} onChange=${choose} />
    <p class="soft small">${t("formats")}</p>
  </section>`;
}

function FileCard({ each: { file, state, error, report }, onImport, onUndo, onRemove }) {
  const title = html`<${Icon} name="file" /> ${file.name} <span class="soft small">${size(file.size)}</span>`;
  const isWorking = state === "reading" || state === "importing";
  return html`<section class="card file" aria-label=${file.name}>
    <header class="card-head"><h2>${title}</h2>
      ${!isWorking && html`<button type="button" class="round" aria-label="${t("remove")}: ${file.name}" onClick=${onRemove}><${Icon} name="close" /></button>`}
    </header>
    <div role="status">
      ${isWorking && html`<p class="soft">${t(state)}</p><${Bones} rows="2" />`}
      ${state === "refused" && html`<p class="bad"><b>${t("refused_file")}.</b> <span lang="en">${error}</span></p>`}
      ${state === "undone" && html`<p class="soft">${t("undone")}</p>`}
      ${state === "imported" && html`<p class="good"><${Icon} name="check" /> ${t("imported", { n: report.new })}</p>`}
    </div>
    ${state === "looked" && html`<${Report} report=${report} />
      <p class="buttons">
        ${report.new > 0
          ? html`<button type="button" class="primary" onClick=${onImport}>${t("import_n", { n: report.new })}</button>`
          : html`<span class="soft">${t("all_known")}</span>`}
      </p>`}
    ${state === "imported" && report.importId && html`<p class="buttons"><button type="button" onClick=${onUndo}>${t("undo")}</button></p>`}
  </section>`;
}

function Report({ report }) {
  return html`<p class="soft">${[report.format, t("n_new", { n: report.new }), t("n_known", { n: report.known })].join(" · ")}</p>
    ${report.statements.map((statement, index) => html`<div class="statement" key=${index}>
      <h3>${[statement.account.name, shortIban(statement.account.iban), statement.account.bankName].filter(Boolean).join(" · ") || t("unknown")}</h3>
      <p class="soft small">
        ${t("rows", { n: statement.rows })}${statement.from && ` · ${day(statement.from)} – ${day(statement.to)}`}
        ${statement.closing !== null && html` · ${t("closing")} ${money(statement.closing, statement.currency)}`}
        ${statement.addsUp !== null && html` · <span class="pill ${statement.addsUp ? "good" : "up"}">${t(statement.addsUp ? "adds_up" : "adds_not")}</span>`}
      </p>
      <ol class="plain" aria-label=${t("first_rows")}>
        ${statement.first.map((row, place) => html`<li class="line" key=${place}>
          <span class="row-text"><span class="row-title">${row.counterpartName ?? row.purpose ?? t("no_name")}</span><span class="row-about">${day(row.bookingDate)}${row.category && ` · ${named(row.category)}`}</span></span>
          <${Money} amount=${row.amount} currency=${row.currency} signed />
        </li>`)}
      </ol>
    </div>`)}`;
}

function History() {
  const past = useRead(offers("GET /imports") ? "/imports" : null);
  if (!past.data?.imports.length) return null;
  return html`<${Card} title=${t("history")}>
    <${Loaded} of=${past}>${({ imports }) => html`<ul class="plain">
      ${imports.map((each) => html`<li class="line" key=${each.importId}>
        <span class="row-text"><span class="row-title">${each.filename}</span><span class="row-about">${moment(each.createdAt)} · ${t("n_new", { n: each.new })}</span></span>
        ${each.canUndo && html`<button type="button" onClick=${() => takeBack(each.importId)} aria-label="${t("undo")}: ${each.filename}">${t("undo")}</button>`}
      </li>`)}
    </ul>`}<//>
  <//>`;
}
