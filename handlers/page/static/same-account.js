/** The question whether two accounts are one: one press for each answer, and one that takes it back. */
import { change, one } from "./api.js";
import { Icon } from "./icons.js";
import { accountAmong, accountName, tried, undoing } from "./parts.js";
import { html } from "./ui.js";
import { t } from "./words.js";

/** `accounts` are those of which it is asked; an item of a list for each. */
export const SameAccounts = ({ accounts, person }) =>
  accounts.map((account) => html`<${SameAccount} key=${account.id} account=${account} person=${person} />`);

function SameAccount({ account, person }) {
  const { id, perhapsSameAs } = account;
  const other = person.byId.get(perhapsSameAs);
  const name = accountAmong(account);
  const place = one("accounts", id);
  const answer = (say, back, sentence) => () => tried(say, () => sentence, () => undoing(back));
  const same = answer(
    () => change("POST", `${place}/merge`, { body: { into: perhapsSameAs } }),
    () => change("DELETE", `${place}/merge`),
    t("same_account_merged"),
  );
  const another = answer(
    () => change("PATCH", place, { body: { isHidden: false } }),
    () => change("PATCH", place, { body: { isHidden: true } }),
    t("another_account_shown"),
  );
  return html`<li class="need" aria-label="${t("same_account")} ${name}">
    <${Icon} name="warn" /><p><strong>${t("same_account")}</strong> ${t("same_account_text", { name, other: other ? accountName(other) : t("hidden") })}</p>
    <p class="buttons">
      <button type="button" class="primary" onClick=${same}>${t("same_account_yes")}</button>
      <button type="button" onClick=${another}>${t("same_account_no")}</button>
    </p>
  </li>`;
}
