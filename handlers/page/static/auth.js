/**
 * Signs the person in: an access token in a variable, nothing on the disk, and no refresh token at all.
 *
 * The memory of who is signed in is the session of the sign-in pages. A token comes from it with PKCE: without a word
 * where the session lives (`prompt=none`), by way of the sign-in form where it does not.
 */

const { auth: AUTH_URL, base: BASE, public: PUBLIC_URL, scopes: SCOPES } = globalThis.document?.documentElement.dataset ?? {};
const CLIENT = "bankdata-page"; // auth/apps/clients.py
const REDIRECT = `${PUBLIC_URL}/signed-in`;
const HOME = `${BASE}/`;
const WAITING = "sign-in"; // in sessionStorage while the person is at the sign-in form
const RENEWED_BEFORE_END = 60_000;
const IS_SAME_ORIGIN = () => new URL(AUTH_URL).origin === location.origin;

/** There is no session: the person has to sign in. */
export class SignedOut extends Error {}
/** The sign-in went wrong, for a reason that signing in again may not mend. */
export class SignInFailed extends Error {}

/** Whether a sign-in would come back to this address, and the browser can ask for one. */
const isHere = () => new URL(PUBLIC_URL).origin === location.origin && globalThis.crypto?.subtle;

let token = null;
let endsAt = 0;
let asking = null;
let timer = 0;
let ended = () => {};
const channel = globalThis.BroadcastChannel && new BroadcastChannel("bankdata");

/** `told` is called when the session has ended, in this tab or another one. */
export function onEnd(told) {
  ended = told;
}

/** A token that holds; asked for once, however many callers there are. Raises SignedOut. */
export async function accessToken() {
  return token && Date.now() < endsAt ? token : anew();
}

/** The interface refused this token: the next one, once for all that were refused. Raises SignedOut. */
export function anotherToken(refused) {
  if (token === refused) token = null;
  return token ? Promise.resolve(token) : anew();
}

function anew() {
  asking ??= silently()
    .catch((error) => {
      if (error instanceof SignedOut && endsAt) ended();
      throw error;
    })
    .finally(() => (asking = null));
  return asking;
}

async function silently() {
  // Sign-in pages on a host of their own cannot be asked in the background: the browser keeps their cookie from us
  if (!IS_SAME_ORIGIN()) throw new SignedOut();
  const asked = await question();
  const answer = await fetch(asked.address({ prompt: "none" }), { cache: "no-store" });
  const came = new URL(answer.url).searchParams;
  if (came.has("error")) throw new SignedOut(came.get("error"));
  if (!answer.ok || came.get("state") !== asked.state) throw new SignInFailed(`${answer.status}`);
  return redeemed(came.get("code"), asked.verifier);
}

/** Leave for the sign-in form, and come back to this very address. */
export async function signIn() {
  const asked = await question();
  const back = location.pathname === `${BASE}/signed-in` ? HOME : location.pathname + location.search;
  sessionStorage.setItem(WAITING, JSON.stringify({ state: asked.state, verifier: asked.verifier, back }));
  location.assign(asked.address({}));
}

/** The end of the way through the sign-in form: the address to go back to. Raises SignInFailed. */
export async function finish(came) {
  const waiting = JSON.parse(sessionStorage.getItem(WAITING) ?? "null");
  sessionStorage.removeItem(WAITING);
  if (!waiting || came.get("state") !== waiting.state) return HOME; // an old address, opened once more
  if (came.has("error")) throw new SignInFailed(came.get("error"));
  await redeemed(came.get("code"), waiting.verifier);
  return waiting.back;
}

/** End the session of this browser, and with it what every tab shows. Fails where the session goes on. */
export async function signOut() {
  const isHere = IS_SAME_ORIGIN();
  if (isHere) {
    const headers = { Authorization: `Bearer ${await anew()}` }; // the one at hand may have ended before the session
    const { ok } = await fetch(`${AUTH_URL}/account/sign-out`, { method: "POST", headers });
    if (!ok) throw new SignInFailed();
    [token, endsAt] = [null, 0]; // until the browser has left, nothing is asked by a token that has ended
    if (globalThis.Notification?.permission === "granted") await import("./push.js").then((push) => push.unsubscribe()).catch(() => {});
  }
  channel?.postMessage("signed out");
  location.assign(isHere ? HOME : `${AUTH_URL}/account`);
}

async function question() {
  const state = random();
  const verifier = random();
  const challenge = base64url(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier)));
  const parameters = {
    response_type: "code",
    client_id: CLIENT,
    redirect_uri: REDIRECT,
    scope: SCOPES,
    state,
    code_challenge: challenge,
    code_challenge_method: "S256",
  };
  return {
    state,
    verifier,
    address: (more) => `${AUTH_URL}/oauth/authorize?${new URLSearchParams({ ...parameters, ...more })}`,
  };
}

async function redeemed(code, verifier) {
  const answer = await fetch(`${AUTH_URL}/oauth/token`, {
    method: "POST",
    body: new URLSearchParams({
      grant_type: "authorization_code",
      code,
      client_id: CLIENT,
      redirect_uri: REDIRECT,
      code_verifier: verifier,
    }),
  });
  if (!answer.ok) throw new SignInFailed(`${answer.status}`);
  const given = await answer.json();
  const lasts = given.expires_in * 1000 - RENEWED_BEFORE_END;
  token = given.access_token;
  endsAt = Date.now() + lasts;
  clearTimeout(timer);
  timer = setTimeout(() => anew().catch(() => {}), lasts);
  return token;
}

function random() {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

function base64url(bytes) {
  const text = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

const CHANGED = "changed";

/** Tell the other tabs of this browser that something is not as it was. */
export const tellOthers = () => channel?.postMessage(CHANGED);

/** `act` when another tab tells so; what is returned ends it. */
export function onChange(act) {
  const heard = ({ data }) => data === CHANGED && act();
  channel?.addEventListener("message", heard);
  return () => channel?.removeEventListener("message", heard);
}

channel?.addEventListener("message", ({ data }) => {
  if (data === CHANGED) return;
  clearTimeout(timer);
  token = null;
  ended();
});

/** The token that is asked for while the rest of the page is on its way: this module needs no other one. Null where none
 * can be had. */
export const entry = globalThis.document && isHere() && location.pathname !== `${BASE}/signed-in` ? accessToken() : null;
entry?.catch(() => {}); // who waits for it says what went wrong
