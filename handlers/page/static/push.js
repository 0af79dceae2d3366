/** Notices in this browser: whether it can show them, and its subscription, through which the service of its maker reaches it. */
import { change, one } from "./api.js";
import { address } from "./place.js";
import { t } from "./words.js";

/** What stands in the way of notices here, by the name of its sentence; nothing of it is asked yet. */
export function hindrance() {
  if (!navigator.serviceWorker || !globalThis.PushManager) return "standalone" in navigator ? "push_home" : "push_unable";
  return Notification.permission === "denied" ? "push_denied" : "";
}

/** The subscription of this browser; null where it has none. */
export async function subscribed() {
  const registration = await navigator.serviceWorker?.getRegistration(address("/"));
  return (await registration?.pushManager?.getSubscription()) ?? null;
}

/** Whether a target is this browser, whose subscription this is. */
export const isHere = (target, subscription) => target.way === "push" && Boolean(subscription?.endpoint.replace(/(=|%3d)+$/i, "").endsWith(target.last));

/** Whether a browser of this name is a target, though this one shows nothing: its permission or subscription has ended, or it is another one. */
export const isLost = (targets, subscription) => !subscription && targets.some(({ way, name }) => way === "push" && name === browserName());

/** Ask for permission, which browsers give at a press alone, and have notices sent here: the new target. */
export async function subscribe(wholeSentences) {
  if ((await Notification.requestPermission()) !== "granted") throw new Error(t(hindrance() || "push_not_allowed"));
  await register();
  return told(await subscription((await change("GET", "/notices/push-key")).key), wholeSentences);
}

let policy; // made once: the one address of a script that the policy of the page lets anybody name

function register() {
  policy ??= globalThis.trustedTypes?.createPolicy("worker", { createScriptURL: () => address("/worker.js") });
  const script = /** @type {string} */ (policy?.createScriptURL("") ?? address("/worker.js"));
  return navigator.serviceWorker.register(script, { scope: address("/"), updateViaCache: "none" });
}

async function subscription(key) {
  const { pushManager } = await navigator.serviceWorker.ready;
  const before = await pushManager.getSubscription();
  if (before && isFor(before, key)) return before;
  await before?.unsubscribe(); // it was made for a key that is no more
  return pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key }).catch(() => {
    throw new Error(t("push_failed"));
  });
}

const told = (made, wholeSentences, name = browserName()) =>
  change("POST", "/notices/targets", { body: { subscription: made.toJSON(), name, wholeSentences } });

/** Whether a subscription was made for this key; an older browser that does not say is believed. */
const isFor = (made, key) => ["", key].includes(keyOf(made));

function keyOf({ options }) {
  const text = btoa(String.fromCharCode(...new Uint8Array(options?.applicationServerKey ?? [])));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

const DEVICES = ["Android", "iPhone", "iPad", "Windows", "Mac OS", "Linux"];
const BROWSERS = { "Edg/": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari" };

function browserName({ userAgent } = navigator) {
  const [, name] = Object.entries(BROWSERS).find(([mark]) => userAgent.includes(mark)) ?? [];
  return [name, DEVICES.find((each) => userAgent.includes(each))].filter(Boolean).join(", ") || t("push_browser");
}

/** Nothing is shown here any more. */
export const unsubscribe = async () => (await subscribed())?.unsubscribe();

let isKept = false;

/** Keeps the subscription of this browser with whoever is signed in: of another person it ends, for a new key it is made anew. */
export default function Kept() {
  if (!isKept) keepUp().catch(() => {}); // once more with the next page
  isKept = true;
  return null;
}

async function keepUp() {
  const before = await subscribed();
  if (!before) return;
  const [{ key }, { targets }] = await Promise.all([change("GET", "/notices/push-key"), change("GET", "/notices/targets")]);
  const mine = targets.find((each) => isHere(each, before));
  if (!mine) return void (await before.unsubscribe());
  const isNew = !isFor(before, key);
  await told(isNew ? await subscription(key) : before, mine.wholeSentences, mine.name);
  if (isNew) await change("DELETE", one("notices/targets", mine.id));
}
