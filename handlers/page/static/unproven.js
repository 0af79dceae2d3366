/** What statements and balances contradict, above all that is computed from it. */
import { useRead } from "./api.js";
import { Told, accountName } from "./parts.js";
import { address } from "./place.js";
import { html } from "./ui.js";
import { t } from "./words.js";

const WRONG = ["gap", "statement_differs", "balance_differs"];

export function Unproven({ person }) {
  const { data } = useRead("/integrity");
  if (!data || data.isSound) return null;
  const wrong = data.accounts.flatMap(({ accountId, problems }) =>
    problems.filter(({ kind }) => WRONG.includes(kind)).map(({ message }) => `${accountName(person.byId.get(accountId))}: ${message}`));
  return html`<section class="caution" aria-labelledby="unproven">
    <h2 id="unproven">${t("unproven")}</h2>
    ${wrong.map((text) => html`<p key=${text}><${Told} text=${text} /></p>`)}
    <a href=${address("/import")}>${t("import_title")}</a>
  </section>`;
}
