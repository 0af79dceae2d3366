/** One account: what it holds and held, what comes in and goes out, with whom, and what is coming. */
import { change, one, useRead } from "./api.js";
import { Course } from "./charts.js";
import { day, typedAmount } from "./format.js";
import Forecast from "./forecast.js";
import { AmountInput, Card, Loaded, Money, Place, SAID_BY_YOU, State, accountName, chartBones, nameOfImport, tried, undoing } from "./parts.js";
import { address } from "./place.js";
import { daysOf } from "./searched.js";
import { Latest, Parties, Totals } from "./totals.js";
import { html, useState } from "./ui.js";
import { named, t } from "./words.js";

export default function Account({ person, parameters }) {
  const account = person.byId.get(parameters.get("id"));
  if (!account) return html`<${Place} title=${t("account")}><div class="card"><${State} icon="warn" title=${t("account_unknown")}>
    <a class="button" href=${address("/")}>${t("to_overview")}</a><//></div><//>`;
  const { accountType, bankConnection, iban, id } = account;
  const about = [named(bankConnection.bankName), accountType && named(accountType), iban?.replace(/(.{4})(?=.)/g, "$1 ")].filter(Boolean).join(" · ");
  const list = address("/transactions", { account: id });
  return html`<${Place} key=${id} title=${accountName(account)} text=${about} actions=${html`<a class="button" href=${list}>${t("all_transactions")}</a>`}>
    <${Held} account=${account} today=${person.profile.today} />
    <${Card} title=${t("in_and_out")}><${Totals} asked=${{ accountIds: id }} person=${person} counted
      link=${(month) => address("/transactions", { account: id, ...daysOf(month) })} /><//>
    <div class="overview"><${Forecast} person=${person} accountId=${id} /><${Parties} asked=${{ accountIds: id }} title=${t("with_whom")} /></div>
    <${Latest} asked=${{ accountIds: id }} person=${person} link=${list} />
  <//>`;
}

/** What the account holds, of which day that is known, and the course of all its days. */
function Held({ account: { balance, currency, id }, today }) {
  const balances = useRead("/balances", { accountIds: id, dateTo: today, every: "day" });
  const known = balances.data?.accounts.find(({ accountId }) => accountId === id);
  return html`<section class="card total" aria-labelledby="held">
    <h2 id="held" class="figure-name">${t("balance")}${known && `, ${t("as_of", { day: day(known.date) })}`}</h2>
    <p class="figure">${balance === null ? html`<span class="soft">${t("no_balance")}</span>` : html`<${Money} amount=${balance} currency=${currency} />`}</p>
    ${balance === null
      ? html`<${Say} id=${id} today=${today} currency=${currency} />`
      : html`<${Said} id=${id} /><${Loaded} of=${balances} bones=${chartBones}>
        ${(data) => data.points.length > 1 && html`<${Course} points=${data.points} currency=${data.currency} />`}
      <//>`}
  </section>`;
}

/** Which balance the person said, and its way back. */
function Said({ id }) {
  const said = useRead("/imports").data?.imports.find(({ accountIds, source }) => source === SAID_BY_YOU && accountIds.includes(id));
  return said && html`<p class="soft small">${nameOfImport(said)} <button type="button" class="quiet" onClick=${() => tried(() => change("DELETE", one("imports", said.importId)), () => t("undone"))}>${t("undo")}</button></p>`;
}

/** What the account held, in the person's own words, where no file and no bank says it. */
function Say({ id, today, currency }) {
  const [said, setSaid] = useState({ date: today, amount: "" });
  const field = (name, label) => ({ "aria-label": t(label), value: said[name], required: true, onInput: (event) => setSaid({ ...said, [name]: event.target.value }) });
  const say = () => {
    tried(() => change("POST", one("accounts", id, "/balance"), { body: { ...said, amount: typedAmount(said.amount, currency) } }), () => t("changed"),
      ({ importId }) => undoing(() => change("DELETE", one("imports", importId))));
  };
  return html`<form onSubmit=${say}><p class="soft small">${t("balance_say")}</p><p class="buttons">
    <input type="date" max=${today} ...${field("date", "as_of_day")} /> <${AmountInput} currency=${currency} ...${field("amount", "balance")} />
    <button type="submit">${t("save")}</button></p></form>`;
}
