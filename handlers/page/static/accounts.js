/** Accounts as their person wants to see them: own names, hidden ones, two that are one, and gone for good. */
import { change, one, usePreview, useRead } from "./api.js";
import { AmountInput, Card, Choice, Dialog, Failed, Line, accountAmong, accountName, shortIban, tried } from "./parts.js";
import { asTyped, day, money, typedAmount } from "./format.js";
import { SameAccounts } from "./same-account.js";
import { html, useState, useThere } from "./ui.js";
import { named, t } from "./words.js";

export function Accounts({ person }) {
  const managed = useRead("/accounts/hidden", { withShown: true }).data?.accounts ?? [];
  const merged = useRead("/accounts/merged");
  const [id, setId] = useState("");
  const open = person.byId.get(id);
  return html`<${Card} title=${t("accounts")}>
    <ul class="plain">
      <${SameAccounts} accounts=${managed.filter(({ perhapsSameAs }) => perhapsSameAs)} person=${person} />
      ${person.accounts.map((account) => html`<${Line} key=${account.id} title=${accountName(account)} about=${about(account, named(account.bankConnection.bankName))}>
        <button type="button" aria-label="${t("change")}: ${accountAmong(account)}" onClick=${() => setId(account.id)}>${t("change")}</button>
      <//>`)}
      ${managed.filter(({ isHidden, perhapsSameAs }) => isHidden && !perhapsSameAs).map((account) => html`<${Line} key=${account.id} title=${accountName(account)} about=${about(account, named(account.bankName), t("hidden"))}>
        <button type="button" aria-label="${t("show")}: ${accountAmong(account)}" onClick=${() => act(account, "PATCH", { body: { isHidden: false } })}>${t("show")}</button>
      <//>`)}
      ${merged.data?.accounts.map((account) => html`<${Line} key=${account.id} title=${accountName(account)} about=${about(account, named(account.bankName), t("merged_into", { name: nameOf(person, account.into) }))}>
        <button type="button" aria-label="${t("separate")}: ${accountAmong(account)}" onClick=${() => act(account, "DELETE", {}, "/merge")}>${t("separate")}</button>
      <//>`)}
    </ul>
    ${open && html`<${Change} account=${open} line=${managed.find((each) => each.id === id)?.creditLine} others=${person.accounts.filter((each) => each.id !== id)} onClose=${() => setId("")} />`}
  <//>`;
}

const act = ({ id }, method, along, below = "") =>
  tried(() => change(method, one("accounts", id, below), along), () => t("changed"));

const about = (account, ...more) => [...more, (account.accountName || account.accountType) && shortIban(account.iban)].filter(Boolean).join(" · ");

const nameOf = (person, id) => {
  const found = person.byId.get(id);
  return found ? accountName(found) : t("hidden");
};

const isNewIban = (account, target) => Boolean(account.iban && target.iban && account.iban !== target.iban);

const intoBody = (account, target) => ({ into: target.id, ...(isNewIban(account, target) && { continues: true }) });

/** What a merge would come to, before it is confirmed. */
function Plan({ account, target }) {
  const plan = usePreview((signal) => change("POST", one("accounts", account.id, "/merge"), { parameters: { dryRun: true }, body: intoBody(account, target), signal }), [account.id, target.id]);
  if (!plan) return null;
  if (plan.error) return html`<${Failed} error=${plan.error} />`;
  const { bookings, inBoth, balance, balanceDate, currency, accessNarrowed } = plan.data;
  return html`<p role="status">${t("merge_plan", { n: bookings, name: accountName(target) })} ${inBoth > 0 && t("merge_twice", { n: inBoth })}
    ${" "}${balance !== null && t("merge_balance", { amount: money(balance, currency), as_of: t("as_of", { day: day(balanceDate) }) })} ${accessNarrowed > 0 && t("merge_apps", { n: accessNarrowed })} ${isNewIban(account, target) && t("merge_new_iban")} ${t("merge_back")}</p>
    <button type="submit">${t("merge")}</button>`;
}

function Change({ account, line, others, onClose }) {
  const [typedName, setName] = useState(null); // until it is typed, the newest there is
  const name = typedName ?? account.accountName ?? "";
  const [into, setInto] = useState("");
  const [typed, setTyped] = useState("");
  const shown = accountName(account);
  const target = others.find(({ id }) => id === into);
  const close = useThere(onClose);
  const submitted = (...what) => async () => {
    if (await act(account, ...what)) close();
  };
  return html`<${Dialog} title=${shown} onClose=${onClose}>
    <form class="field" onSubmit=${submitted("PATCH", { body: { name: name.trim() || null } })}>
      <label for="own-name">${t("own_name")}</label>
      <span class="buttons"><input id="own-name" value=${name} maxlength="200" onInput=${(event) => setName(event.target.value)} /><button type="submit" class="primary">${t("save")}</button></span>
    </form>
    ${line !== undefined && html`<${CreditLine} line=${line} submitted=${submitted} currency=${account.currency} />`}
    <div class="field"><span class="label">${t("hide")}</span><p class="soft small">${t("hide_text")}</p><button type="button" onClick=${submitted("PATCH", { body: { isHidden: true } })}>${t("hide")}</button></div>
    ${others.length > 0 && html`<form class="field" onSubmit=${submitted("POST", { body: target && intoBody(account, target) }, "/merge")}>
      <span class="label">${t("merge_into")}</span><p class="soft small">${t("merge_text")}</p>
      <span class="buttons"><${Choice} name=${t("merge_into")} value=${into} onChoose=${setInto}
        options=${[["", t("choose")], ...others.map((each) => [each.id, accountAmong(each)])]} /></span>
      ${target && html`<${Plan} account=${account} target=${target} />`}
    </form>`}
    <form class="field" onSubmit=${submitted("DELETE", { parameters: { name: typed } })}>
      <label for="delete-name">${t("delete_account")}</label><p class="soft small">${t("delete_text", { name: shown })}</p>
      <span class="buttons"><input id="delete-name" value=${typed} autocomplete="off" onInput=${(event) => setTyped(event.target.value)} />
        <button type="submit" class="danger" disabled=${typed !== shown}>${t("delete")}</button></span>
    </form>
  <//>`;
}

/** How far the account may go below zero, before notices warn. */
function CreditLine({ line, currency, submitted }) {
  const [newLine, setTyped] = useState(null);
  const typed = newLine ?? asTyped(line);
  return html`<form class="field" onSubmit=${submitted("PATCH", { body: { creditLine: typed === "" ? null : typedAmount(typed, currency) } })}>
    <label for="credit-line">${t("credit_line")} (${currency})</label><p class="soft small">${t("credit_line_text")}</p>
    <span class="buttons"><${AmountInput} id="credit-line" currency=${currency} value=${typed} onInput=${(event) => setTyped(event.target.value)} /><button type="submit">${t("save")}</button></span>
  </form>`;
}
