/** Accounts as their person wants to see them: own names, hidden ones, two that are one, and gone for good. */
import { change, useRead } from "./api.js";
import { Card, Choice, Dialog, Line, accountName, shortIban, tried } from "./parts.js";
import { html, useState } from "./ui.js";
import { t } from "./words.js";

export function Accounts({ person }) {
  const hidden = useRead("/accounts/hidden");
  const [open, setOpen] = useState(null);
  const path = (id) => `/accounts/${encodeURIComponent(id)}`;
  const done = async (work) => (await tried(work, () => t("changed"))) && setOpen(null);
  return html`<${Card} title=${t("accounts")}>
    <ul class="plain">
      ${person.accounts.map((account) => html`<${Line} key=${account.id} title=${accountName(account)} about=${about(account, account.bankConnection.bankName)}>
        <button type="button" aria-label="${t("change")}: ${accountName(account)}" onClick=${() => setOpen(account)}>${t("change")}</button>
      <//>`)}
      ${hidden.data?.accounts.map((account) => html`<${Line} key=${account.id} title=${accountName(account)} about=${about(account, account.bankName, t("hidden"))}>
        <button type="button" aria-label="${t("show")}: ${accountName(account)}" onClick=${() => done(() => change("PATCH", path(account.id), { body: { isHidden: false } }))}>${t("show")}</button>
      <//>`)}
    </ul>
    ${open && html`<${Change} account=${open} others=${person.accounts.filter(({ id }) => id !== open.id)} onClose=${() => setOpen(null)}
      onName=${(name) => done(() => change("PATCH", path(open.id), { body: { name: name || null } }))}
      onHide=${() => done(() => change("PATCH", path(open.id), { body: { isHidden: true } }))}
      onMerge=${(into) => done(() => change("POST", `${path(open.id)}/merge`, { body: { into } }))}
      onDelete=${(name) => done(() => change("DELETE", path(open.id), { parameters: { name } }))} />`}
  <//>`;
}

const about = (account, ...more) => [...more, account.accountName && shortIban(account.iban)].filter(Boolean).join(" · ");

function Change({ account, others, onClose, onName, onHide, onMerge, onDelete }) {
  const [name, setName] = useState(account.accountName ?? "");
  const [into, setInto] = useState("");
  const [typed, setTyped] = useState("");
  const shown = accountName(account);
  const submit = (act) => (event) => {
    event.preventDefault();
    act();
  };
  return html`<${Dialog} title=${shown} onClose=${onClose}>
    <form class="field" onSubmit=${submit(() => onName(name.trim()))}>
      <label for="own-name">${t("own_name")}</label>
      <span class="buttons"><input id="own-name" value=${name} maxlength="200" onInput=${(event) => setName(event.target.value)} /><button type="submit" class="primary">${t("save")}</button></span>
    </form>
    <div class="field"><span class="label">${t("hide")}</span><p class="soft small">${t("hide_text")}</p><button type="button" onClick=${onHide}>${t("hide")}</button></div>
    ${others.length > 0 && html`<form class="field" onSubmit=${submit(() => onMerge(into))}>
      <span class="label">${t("merge_into")}</span><p class="soft small">${t("merge_text")}</p>
      <span class="buttons"><${Choice} name=${t("merge_into")} value=${into} onChoose=${setInto}
        options=${[["", t("choose")], ...others.map((each) => [each.id, accountName(each)])]} /><button type="submit" disabled=${!into}>${t("merge")}</button></span>
    </form>`}
    <form class="field" onSubmit=${submit(() => onDelete(typed))}>
      <label for="delete-name">${t("delete_account")}</label><p class="soft small">${t("delete_text", { name: shown })}</p>
      <span class="buttons"><input id="delete-name" value=${typed} autocomplete="off" onInput=${(event) => setTyped(event.target.value)} />
        <button type="submit" class="danger" disabled=${typed !== shown}>${t("delete")}</button></span>
    </form>
  <//>`;
}
