/** Sync now: starts it, follows its jobs, and says what came of it. */
import { change, followed, forget, one } from "./api.js";
import { moment } from "./format.js";
import { Icon } from "./icons.js";
import { toast } from "./parts.js";
import { html, useEffect, useState } from "./ui.js";
import { learn, said, t } from "./words.js";

const POLLED_EVERY = 1500; // milliseconds; the interface waits by itself while a bank is slow
const LOOKED_EVERY = 6000; // while a sync goes on that this page may not have begun
const isOver = ({ status }) => status === "completed" || status === "failed";

/** `accountIds` narrows it to the connections of these accounts. */
export function SyncButton({ accountIds = null, about = "" }) {
  const label = about ? `${t("sync")}: ${about}` : t("sync");
  const [isRunning, setIsRunning] = useState(false);
  const start = async () => {
    setIsRunning(true);
    try {
      toast(await synced(accountIds));
    } catch (error) {
      toast(whyNot(error));
    } finally {
      setIsRunning(false);
    }
  };
  return html`<button type="button" class="sync ${isRunning ? "running" : ""}" onClick=${start} disabled=${isRunning} aria-label=${isRunning ? t("syncing") : label}>
    <${Icon} name="recurring" /><span class="sync-text">${isRunning ? t("syncing") : t("sync")}</span>
  </button>`;
}

/** Whether any of the connections read is being synced, whoever began it; until none is, all that is shown is read anew. */
export function useIsSyncing({ data }) {
  const isSyncing = Boolean(data?.connections.some((connection) => connection.isSyncing));
  useEffect(() => {
    const timer = isSyncing ? setTimeout(forget, LOOKED_EVERY) : 0;
    return () => clearTimeout(timer);
  }, [data]);
  return isSyncing;
}

async function synced(accountIds) {
  const { syncJobs } = await change("POST", "/sync", { body: accountIds ? { accountIds } : {} });
  const jobs = await Promise.all(syncJobs.map(({ syncId, error }) => (syncId ? followed(one("sync", syncId), isOver, POLLED_EVERY) : { status: "failed", error })));
  forget();
  const failed = jobs.find(({ status }) => status === "failed");
  await learn();
  if (failed) return t("sync_failed", { reason: failed.error ?? "" });
  const n = jobs.reduce((all, { newTransactions }) => all + newTransactions, 0);
  return n ? t("synced", { n }) : t("synced_none");
}

function whyNot(error) {
  if (error.status === 429)
    return t("sync_recent", { time: moment(new Date(Date.now() + error.retryAfter * 1000).toISOString()) });
  if (error.status === 404) return t("sync_none");
  return t("sync_failed", { reason: said(error) });
}
