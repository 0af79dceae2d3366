/** Connections: where the bookings come from, how each source is, and when it may be asked again. */
import { minute, useRead } from "./api.js";
import { ago, day, moment } from "./format.js";
import { ConnectBank, FolderHint } from "./first-run.js";
import { AUTH_URL } from "./place.js";
import { Facts, Loaded, Place, State, accountName, tallBones } from "./parts.js";
import { SyncButton, useIsSyncing } from "./sync.js";
import { html } from "./ui.js";
import { named, t } from "./words.js";

export default function Connections({ person }) {
  const list = useRead("/connections");
  minute.use();
  useIsSyncing(list);
  return html`<${Place} title=${t("connections")} text=${t("connections_text")} actions=${html`<${ConnectBank} />`}>
    <${Loaded} of=${list} bones=${tallBones}>
      ${({ connections }) =>
        connections.length === 0
          ? html`<div class="card"><${State} icon="connections" title=${t("connections_none")} text=${t("connections_none_text")} /></div>`
          : html`<ul class="connections">${connections.map((each) => html`<li key=${each.id}><${Connection} connection=${each} person=${person} /></li>`)}</ul>`}
    <//>
    ${list.data && html`<div class="hints"><${FolderHint} person=${person} /></div>`}
  <//>`;
}

const READ_HERE = ["folder", "files", "demo"]; // sources with nothing to renew at a bank

const SHARED = ["household", "household-files"]; // what somebody shares, which is left on the page of shares

/** The ways to the pages on which a bank is renewed and disconnected, and a share left. */
function Care({ connection: { bankName, id, source } }) {
  const pages = `${AUTH_URL}/account/connect`;
  if (SHARED.includes(source)) return html`<p class="care"><a class="button" href="${AUTH_URL}/account/shares" data-leaves aria-label="${t("leave_share")}: ${bankName}">${t("leave_share")}</a></p>`;
  return html`<p class="care">
    ${!READ_HERE.includes(source) && html`<a class="button" href="${pages}?connection=${id}" data-leaves aria-label="${t("renew")}: ${bankName}">${t("renew")}</a>`}
    ${source !== "files" && html`<a class="button" href="${pages}/disconnect?connection=${id}" data-leaves aria-label="${t("disconnect")}: ${bankName}">${t("disconnect")}</a>`}
  </p>`;
}

function Connection({ connection, person }) {
  const { accountIds, bankName, canSync, consentDaysLeft, consentExpiresAt, isSyncing, lastSync, lastSyncedAt, message, needsUser, nextSyncAllowedAt, quota, status, warnings } = connection;
  const accounts = accountIds.map((id) => person.byId.get(id)).filter(Boolean);
  const fresh = lastSync?.newTransactions > 0 ? ` · ${t("n_new", { n: lastSync.newTransactions })}` : "";
  const facts = [
    ["accounts", accounts.map(accountName).join(", ")],
    ["last_sync", lastSyncedAt ? ago(lastSyncedAt) + fresh : t("never")],
    ["next_sync", canSync ? t("now") : nextSyncAllowedAt && moment(nextSyncAllowedAt)],
    ["quota", quota && t("quota_left", { n: quota.remaining, limit: quota.limit })],
    ["consent_until", consentExpiresAt && `${t("until", { day: day(consentExpiresAt) })}${consentDaysLeft === null ? "" : ` · ${t("days_left", { n: consentDaysLeft })}`}`],
  ];
  return html`<section class="card" aria-label=${bankName}>
    <header class="card-head">
      <div class="connection-name"><h2>${named(bankName)}</h2><span class="pill ${status === "ACTIVE" ? "good" : "up"}">${isSyncing ? t("syncing") : named(status)}</span></div>
      ${canSync && accountIds.length > 0 && html`<${SyncButton} accountIds=${accountIds} about=${bankName} />`}
    </header>
    ${message && html`<p class=${needsUser ? "caution" : "soft"}>${message}</p>`}
    ${warnings.map((warning) => html`<p class="caution" key=${warning}>${warning}</p>`)}
    <${Facts} facts=${facts} />
    <${Care} connection=${connection} />
  </section>`;
}
