/** One booking in detail, over whatever place it was opened from. */
import { one, useRead } from "./api.js";
import { Correction } from "./correction.js";
import { day, longDay } from "./format.js";
import { CategoryTile } from "./icons.js";
import { useNames } from "./own-categories.js";
import { OwnWords } from "./own-words.js";
import { Dialog, Facts, Loaded, Money, MoreLink, State, accountAmong, partyOf } from "./parts.js";
import { address } from "./place.js";
import { html } from "./ui.js";
import { named, t } from "./words.js";

export default function Booking({ id, person, onClose }) {
  const path = one("transactions", id);
  const row = useRead(path);
  const reasons = useRead(`${path}/explanation`, { include: "detailedCategory,annotation,endToEndId" });
  const isUnknown = row.error?.status === 404 || row.error?.status === 400;
  return html`<${Dialog} title=${t("row")} onClose=${onClose}>
    ${isUnknown
      ? html`<${State} icon="warn" title=${t("row_unknown")} />`
      : html`<${Loaded} of=${row}>${(data) => html`<${DetailText} row=${data} reasons=${reasons.data} person=${person} onClose=${onClose} />`}<//>`}
  <//>`;
}

function DetailText({ row, reasons, person, onClose }) {
  const name = useNames();
  const account = person.byId.get(row.bankAccount.id);
  const facts = [
    ["account", account ? accountAmong(account) : row.bankAccount.bankConnection.bankName],
    ["booked", longDay(row.bookingDate)],
    ["valued", row.valueDate && row.valueDate !== row.bookingDate && day(row.valueDate)],
    ["kind", row.type && named(row.type)],
    [row.amount < 0 ? "payee" : "payer", row.counterpartName !== partyOf(row) && row.counterpartName],
    ["counterpartIban", row.counterpartIban?.replace(/(.{4})(?=.)/g, "$1 ")],
    ["bank", row.counterpartBankName],
    ["purpose", row.purpose !== partyOf(row) && row.purpose],
    ["counterpartMandateReference", row.counterpartMandateReference],
    ["counterpartCreditorId", row.counterpartCreditorId],
    ["endToEndId", reasons?.endToEndId],
    ["sepaPurposeCode", row.sepaPurposeCode],
    ["bankTransactionCode", row.bankTransactionCode],
    ["why_category", reasons && reasons.category.reason],
    ["why_transfer", reasons?.transfer.rule && reasons.transfer.reason],
  ];
  const merchant = row.merchantName || row.counterpartName;
  return html`
    <div class="detail-head">
      <${CategoryTile} category=${row.category} />
      <div class="row-text"><p class="detail-title">${partyOf(row)}</p><p class="soft">${row.category && [row.category, reasons?.detailedCategory.value, reasons?.ownCategory.value].filter(Boolean).map(name).join(" · ")}</p></div>
    </div>
    <p class="figure medium"><${Money} amount=${row.amount} currency=${row.currency} signed /></p>
    ${row.isPotentialDuplicate && html`<p class="caution">${t("duplicate")}</p>`}
    ${row.isAdjustingEntry && html`<p class="caution">${t("adjusting")}</p>`}
    <${Facts} facts=${facts} />
    ${!row.isAdjustingEntry && html`<${Correction} row=${row} onDone=${onClose} />`}
    <${OwnWords} row=${row} />
    ${merchant && html`<p><${MoreLink} to=${address("/merchants", { name: merchant })}>${t("more_like", { name: merchant })}<//></p>`}
  `;
}
