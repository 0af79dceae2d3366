/** Import: files dropped, looked into before anything is stored, imported one by one or all at once, taken back again. */
import { change, followed, forget, one, useRead } from "./api.js";
import { day, moment, money, size } from "./format.js";
import { Hint } from "./first-run.js";
import { Icon } from "./icons.js";
import { KeptLayouts, Layout } from "./layout.js";
import { Bones, Card, Choice, Dialog, Line, Money, Place, accountAmong, accountName, nameOfImport, shortIban, tried } from "./parts.js";
import { address } from "./place.js";
import { html, shared, useRef, useState } from "./ui.js";
import { said, t } from "./words.js";

const POLLED_EVERY = 1000; // milliseconds
const FILE_BYTES_MAX = 256 * 1024 * 1024; // what the interface takes at once
const NEW_ACCOUNT = "new";

export default function Import({ person }) {
  return html`<${Place} title=${t("import_title")} text=${t("import_text")}>
    <${Files} person=${person} />
    <div class="hints"><${Hint} icon="file" title=${t("where_file")} text=${t("where_file_text")} /></div>
    <${History} />
    <${KeptLayouts} />
  <//>`;
}

// Files stay while the person looks at other places
const files = shared([]);
let last = 0;

const set = (key, values) => files.set(files.get().map((each) => (each.key === key ? { ...each, ...values } : each)));

/** Look into files that were dropped, one after the other: imports take turns anyway. */
export async function add(dropped) {
  const fresh = [...dropped].map((file) => ({ key: (last += 1), file, asked: {}, state: "reading" }));
  files.set([...files.get(), ...fresh]);
  for (const each of fresh) await look(each);
}

/** `asked` is what the person says of a file: its account, and its layouts by place. */
async function look({ key, file, asked }) {
  set(key, { state: "reading", asked });
  const answer = unsendable(file) ?? (await sent(file, asked, true));
  // who has asked for something else by now waits for that
  if (files.get().some((each) => each.asked === asked)) set(key, answer);
}

const refused = (error) => ({ state: "refused", error });

function unsendable({ size: bytes }) {
  if (bytes === 0) return refused(t("empty_file"));
  return bytes > FILE_BYTES_MAX ? refused(t("too_large")) : null;
}

/** Import these files, one after the other as imports take turns. */
async function store(all) {
  for (const { key } of all) set(key, { state: "importing" });
  for (const { key, file, asked, keepLayout, layouts } of all) {
    // the layouts by which the file was looked into are what is kept
    const kept = keepLayout && { keepLayout, layout: layouts.map(({ profile }) => profile) };
    set(key, await sent(file, { ...asked, ...kept }, false));
  }
  forget();
  lookAgain();
}

/** What was found new or known in files that wait may be otherwise now. */
const lookAgain = () => files.get().filter(({ state }) => state === "looked").forEach(look);

/** Take these imports back, the last one first; one that cannot be taken back ends it. */
async function undo(all) {
  for (const { key, report } of [...all].reverse()) {
    if (!(await takenBack(report.importId))) return;
    set(key, { said: "import_undone" });
  }
}

/** Whether a file waits for an answer that only a person can give. */
const isUnclear = ({ state, report }) => state === "looked" && report.candidates.length > 0 && report.error !== null;

/** What stands over several files: what became of them, one press for all that is new, and one that takes all back. */
function Together({ shown }) {
  const [isWorking, setIsWorking] = useState(false);
  const ready = shown.filter((each) => each.state === "looked" && !isUnclear(each) && each.report.new > 0);
  const imported = shown.filter(({ state, report }) => state === "imported" && report.new > 0);
  const press = (work, all) => async () => {
    setIsWorking(true);
    await work(all);
    setIsWorking(false);
  };
  const isAny = (...states) => shown.filter(({ state }) => states.includes(state)).length;
  const isDisabled = isWorking || isAny("reading", "importing") > 0;
  const facts = [
    ["files_in_work", isAny("reading", "importing")], ["files_ready", ready.length], ["files_unclear", shown.filter(isUnclear).length],
    ["files_imported", imported.length], ["files_refused", isAny("refused")], ["files_undone", isAny("undone")],
  ];
  const sum = imported.reduce((all, { report }) => all + report.new, 0);
  return html`<${Card} title=${t("n_files", { n: shown.length })}>
    <p role="status">${facts.filter(([, n]) => n > 0).map(([name, n]) => t(name, { n })).join(" · ")}${sum > 0 && html`<br />${t("imported", { n: sum })}`}</p>
    <p class="buttons">
      ${ready.length > 0 && html`<button type="button" class="primary" disabled=${isDisabled} onClick=${press(store, ready)}>${t("import_all", { n: ready.length })}</button>`}
      ${imported.length > 0 && html`<button type="button" disabled=${isDisabled} onClick=${press(undo, imported)}>${t("undo_all")}</button>`}
      <button type="button" disabled=${isDisabled} onClick=${() => files.set([])}>${t("clear_list")}</button>
    </p>
  <//>`;
}

function Files({ person }) {
  const shown = files.use();
  return html`<${DropZone} onFiles=${add} />
    ${shown.some(({ state }) => state === "looked") && html`<p class="soft found">${t("not_before")}</p>`}
    ${shown.length > 1 && html`<${Together} shown=${shown} />`}
    ${shown.map((each) => html`<${FileCard} key=${each.key} each=${each} person=${person}
      onImport=${() => store([each])} onUndo=${() => undo([each])} onAsk=${(asked) => look({ ...each, asked: { ...each.asked, ...asked } })} onKeep=${(keepLayout) => set(each.key, { keepLayout })}
      onRemove=${() => files.set(shown.filter(({ key }) => key !== each.key))} />`)}`;
}

const isOver = ({ status }) => status !== "running";

/** What the interface says of a file; a dry run stores nothing. */
async function sent(file, asked, dryRun) {
  try {
    // a name is only told; what no name may hold is left out of it
    const filename = file.name.replace(/[\u0000-\u001f/\\]/g, "").slice(-255) || "file";
    const chosen = Object.values(asked.layout ?? {});
    const layout = chosen.length > 1 ? `[${chosen}]` : chosen[0];
    let report = await change("POST", "/imports", { parameters: { filename, dryRun, ...asked, layout }, file });
    if (!isOver(report)) report = await followed(one("imports", report.importId), isOver, POLLED_EVERY);
    const layouts = [...new Map(report.layouts.map((each) => [each.profile, each])).values()].filter(({ profile }) => profile);
    if (report.error !== null && (report.candidates.length === 0 || !report.isDryRun)) return { ...refused(report.error), layouts };
    return { state: report.isDryRun ? "looked" : "imported", report, layouts };
  } catch (error) {
    return refused(said(error));
  }
}

/** Take an import back; its file may be imported once more. */
async function takenBack(importId) {
  const isDone = await tried(() => change("DELETE", one("imports", importId)), () => t("import_undone"));
  if (!isDone) return false;
  for (const { key, state, report } of files.get()) if (state === "imported" && report.importId === importId) set(key, { state: "undone", said: "file_undone" });
  lookAgain();
  return true;
}

/** Where files are dropped or chosen. */
export function DropZone({ onFiles }) {
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
    onFiles([...input.current.files]);
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

function FileCard({ each: { file, asked, state, said, error, report, layouts = [], keepLayout = false }, person, onImport, onUndo, onAsk, onKeep, onRemove }) {
  const isWorking = state === "reading" || state === "importing";
  return html`<section class="card file" aria-label=${file.name}>
    <header class="card-head">
      <h2 class="file-name"><${Icon} name="file" /> ${file.name} <span class="soft small">${size(file.size)}</span></h2>
      ${!isWorking && html`<button type="button" class="round" aria-label="${t("remove")}: ${file.name}" onClick=${onRemove}><${Icon} name="close" /></button>`}
    </header>
    <div role="status">
      ${isWorking && html`<p class="soft">${t(state === "reading" ? "reading" : "importing")}</p><${Bones} rows="2" />`}
      ${state === "refused" && html`<p class="bad"><b>${t("refused_file")}.</b> ${error}</p>`}
      ${state === "undone" && html`<p class="soft">${t(said)}</p>
        <p class="buttons"><button type="button" onClick=${() => onAsk({})}>${t("look_again")}</button></p>`}
      ${state === "imported" && html`<p class="good"><${Icon} name="check" /> ${t("imported", { n: report.new })}</p>`}
    </div>
    ${["reading", "refused", "looked"].includes(state) && layouts.map((layout, place) => html`<${Layout} key=${place} layout=${layout} number=${layouts.length > 1 ? ` ${place + 1}` : ""} isKept=${keepLayout}
      isRefused=${state === "refused"} onTry=${(text) => onAsk({ layout: { ...asked.layout, [place]: text } })} onKeep=${onKeep} />`)}
    ${state === "looked" && html`
      ${report.candidates.length > 0 && html`<div class="field"><span class="label">${t("which_account")}</span>
        <${Choice} name=${t("which_account")} value=${asked.accountId ?? ""} onChoose=${(accountId) => onAsk({ accountId })} options=${[["", t("choose")],
          ...report.candidates.map((each) => [each.accountId, accountAmong(each)]), [NEW_ACCOUNT, t("new_account")]]} />
      </div>`}
      ${report.overlap && html`<p class="caution">${t("overlap", { n: report.overlap.bookings, name: nameOf(report.overlap.accountId, person) })}</p>`}
      ${report.warnings.map((warning) => html`<p class="caution" key=${warning}>${warning}</p>`)}
      ${!isUnclear({ state, report }) && html`<${Report} report=${report} />
        <p class="buttons">${report.new > 0
          ? html`<button type="button" class="primary" onClick=${onImport}>${t("import_n", { n: report.new })}</button>`
          : html`<span class="soft">${t("all_known")}</span> <a class="button" href=${wayOn(report)}>${t("see_transactions")}</a>`}</p>`}`}
    ${state === "imported" && html`<p class="buttons"><a class="button primary" href=${wayOn(report)}>${t("see_transactions")}</a>
      ${report.new > 0 && html`<button type="button" onClick=${onUndo}>${t("undo")}</button>`}</p>`}
  </section>`;
}

/** From a file to the bookings of its account, or of all where it has several. */
const wayOn = ({ accountIds }) => address("/transactions", { account: accountIds.length === 1 ? accountIds[0] : "" });

const nameOf = (accountId, person) => {
  const account = person.byId.get(accountId);
  return account ? accountName(account) : t("account");
};

/** What a format calls itself: camt.053 is small, CSV and MT940 are not. */
const formatName = (format) => (format?.startsWith("camt") ? format : format?.toUpperCase());

function Report({ report }) {
  return html`<p class="soft">${[formatName(report.format), t("n_new", { n: report.new }), t("n_known", { n: report.known })].filter(Boolean).join(" · ")}</p>
    ${report.statements.map((statement, index) => html`<div class="statement" key=${index}>
      <h3>${statement.accountName}${statement.iban && statement.iban !== statement.accountName && ` · ${shortIban(statement.iban)}`}</h3>
      <p class="soft small">
        ${t("rows", { n: statement.bookings })}${statement.firstDay && ` · ${day(statement.firstDay)} – ${day(statement.lastDay)}`}
        ${statement.closing !== null && ` · ${t("closing")} ${money(statement.closing, statement.currency)}`}
        ${statement.closing !== null && statement.closingDate && ` ${t("as_of", { day: day(statement.closingDate) })}`}
        ${" "}${statement.addsUp !== null && html`<span class="pill ${statement.addsUp ? "good" : "up"}">${t(statement.addsUp ? "adds_up" : "adds_not")}</span>`}
      </p>
      <ol class="plain" aria-label=${t("first_rows")}>
        ${statement.firstRows.map((row, place) => html`<${Line} key=${place} title=${row.counterpartName ?? row.purpose ?? t("no_name")}
          about=${[day(row.bookingDate), row.counterpartName && row.purpose].filter(Boolean).join(" · ")}>
          <${Money} amount=${row.amount} currency=${row.currency} signed />
        <//>`)}
      </ol>
    </div>`)}`;
}

function History() {
  const past = useRead("/imports");
  const [asked, setAsked] = useState(null); // the import that is to be undone, once that is confirmed
  if (!past.data?.imports.length) return null;
  return html`<${Card} title=${t("history")}><ul class="plain">
    ${past.data.imports.map((each) => {
      const name = nameOfImport(each);
      return html`<${Line} key=${each.importId} title=${name} about=${[moment(each.importedAt), each.new > 0 && t("n_new", { n: each.new })].filter(Boolean).join(" · ")}>
        <button type="button" onClick=${() => setAsked(each)} aria-label="${t("undo")}: ${name}">${t("undo")}</button>
      <//>`;
    })}
  </ul>
  ${asked && html`<${Dialog} title=${nameOfImport(asked)} onClose=${() => setAsked(null)}>
    ${asked.new > 0 && html`<p>${t("undo_text", { n: asked.new })}</p>`}
    <p class="buttons"><button type="button" class="danger" onClick=${async () => (await takenBack(asked.importId)) && setAsked(null)}>${t("undo_import")}</button></p>
  <//>`}<//>`;
}
