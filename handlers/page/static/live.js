/** Keeps an open page true: it follows the events of the service, other tabs, a return to this one, and midnight. */
import { Away, UNREACHABLE, anew, minute, operation, pause, tell } from "./api.js";
import { SignedOut, accessToken, anotherToken, onChange, tellOthers } from "./auth.js";
import { useEffect, useEvents, useRef } from "./ui.js";

const RESTS_FOR = 1200; // milliseconds without a touch, a key or a wheel: until then nothing moves under the finger
const BEAT = 10_000;
const AWAY_LONG = 30_000; // whoever comes back later than this is shown everything anew

let lastEvent = ""; // its id, after which the stream goes on
let later = 0;
let isDue = false;
let touchedAt = 0; // Infinity while it is held

/** Something changed elsewhere: what is shown is read anew as soon as the person sees it and rests. */
function renew() {
  clearTimeout(later);
  isDue = true;
  if (document.hidden) return;
  const rest = Math.min(RESTS_FOR, touchedAt + RESTS_FOR - Date.now());
  later = setTimeout(rest > 0 ? renew : () => ((isDue = false), anew()), Math.max(0, rest));
}

/** Follows what happens: events of the service, other tabs, a return to this one, and midnight where the person is. */
export default function Live({ profile }) {
  const timeZone = profile?.timeZone;
  const zone = useRef(timeZone);
  zone.current = timeZone;
  lastEvent ||= profile?.lastEventId ?? ""; // what is shown was read after it
  useEffect(() => {
    const today = () => new Intl.DateTimeFormat("sv", { timeZone: zone.current }).format();
    let [day, seenAt, following] = ["", Date.now(), new AbortController()];
    const beat = () => {
      minute.set(Math.floor(Date.now() / 60_000));
      if (document.hidden) return;
      if ((day && day !== today()) || Date.now() - seenAt > AWAY_LONG) renew();
      [day, seenAt] = [zone.current && today(), Date.now()];
    };
    // One tab of a browser listens for all of them, as long as it is seen
    const follow = () => {
      following.abort();
      following = new AbortController();
      if (document.hidden || !zone.current) return; // before the profile is there, or without a subscription
      if (isDue) renew();
      beat();
      const { signal } = following;
      const listening = () => listen(signal);
      (navigator.locks?.request("bankdata-events", { signal }, listening) ?? listening()).catch(() => {});
    };
    const timer = setInterval(beat, BEAT);
    const forgetOthers = onChange(renew);
    document.addEventListener("visibilitychange", follow);
    follow();
    return () => {
      clearInterval(timer);
      clearTimeout(later);
      forgetOthers();
      document.removeEventListener("visibilitychange", follow);
      following.abort();
    };
  }, [Boolean(timeZone)]);
  const touched = () => (touchedAt = Date.now());
  const held = () => (touchedAt = Infinity);
  useEvents({ pointerdown: held, pointerup: touched, pointercancel: touched, keydown: touched, wheel: touched, touchmove: touched });
  return null;
}

/** The stream of events, opened again whenever it ends. */
async function listen(signal) {
  const mark = Symbol("events");
  let [failures, token] = [0, ""];
  while (!signal.aborted) {
    let wait = 1000;
    try {
      token = await accessToken();
      const headers = { Authorization: `Bearer ${token}`, ...(lastEvent && { "Last-Event-ID": lastEvent }) };
      const answer = await fetch(operation("/events"), { headers, signal });
      if (UNREACHABLE.has(answer.status)) throw new Away();
      tell(mark, null);
      if (failures > 0) reached();
      failures = 0;
      if (answer.ok) await heard(answer.body);
      else if (answer.status === 401) await anotherToken(token);
      else wait = 60_000;
    } catch (error) {
      if (error instanceof SignedOut) break;
      failures += 1;
      wait = Math.min(8000, 500 * 2 ** failures);
      if (!signal.aborted && failures > 1) tell(mark, { kind: "away" });
    }
    await pause(wait, signal).catch(() => {});
  }
  tell(mark, null);
}

/** The service answers again: whatever could not be had is asked for once more. */
function reached() {
  dispatchEvent(new Event("online"));
  tellOthers();
  renew();
}

async function heard(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (text + value).split("\n\n");
    text = events.pop();
    for (const event of events) lastEvent = /^id: (.+)$/m.exec(event)?.[1] ?? lastEvent;
    if (!events.some((event) => /^event: (?!stream\.opened)/m.test(event))) continue;
    tellOthers();
    renew();
  }
}
