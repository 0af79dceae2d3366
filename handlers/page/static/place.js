/** Where the page is: the addresses of the service, the place that is open, and how to go to another one. */
import { useEvents, useState } from "./ui.js";

const told = globalThis.document?.documentElement.dataset ?? {};

/** The path before every address of the service, which a proxy may have put there; no slash at its end. */
export const BASE = told.base ?? "";
/** The address of the sign-in pages, and the public address of the service, as the settings of the server say. */
export const AUTH_URL = told.auth ?? "";
export const PUBLIC_URL = told.public ?? "";

const CHANGED = "placechange";
const THEIR_OWN = ["wheel", "touchstart", "pointerdown", "keydown"];
const COMES_WITHIN = 3000; // milliseconds: what comes later moves nothing

/** The address of a place with parameters; those that are empty are left out. */
export function address(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return `${BASE}${path}${query && `?${query}`}`;
}

/** The address of the open place with other parameters. */
export const beside = (parameters) => address(here().path, { ...Object.fromEntries(here().parameters), ...parameters });

/** Open a place; `replace` where going back should skip the one before. */
export function go(to, { replace = false } = {}) {
  if (replace) history.replaceState(history.state, "", to);
  else {
    remember();
    history.pushState({ isOpenedHere: true }, "", to);
  }
  dispatchEvent(new Event(CHANGED));
}

/** Where the person is on the open place, for when they come back. */
const remember = () => history.replaceState({ ...history.state, at: scrollY }, "");

let stopGoing = () => {};

/** Scroll to where the person was, while the place grows that long again, unless they scroll themselves. */
function goBackTo(at) {
  stopGoing();
  if (at === undefined) return; // opened for the first time
  const grown = new ResizeObserver(() => scrollTo(0, at));
  const timer = setTimeout(() => stopGoing(), COMES_WITHIN);
  stopGoing = () => {
    grown.disconnect();
    clearTimeout(timer);
    for (const type of THEIR_OWN) removeEventListener(type, stopGoing);
  };
  for (const type of THEIR_OWN) addEventListener(type, stopGoing, { once: true, passive: true });
  grown.observe(document.body);
}

/** From now on Back leads to where one was. */
export function rememberPlaces() {
  history.scrollRestoration = "manual";
  addEventListener("pagehide", remember);
  addEventListener("popstate", () => goBackTo(history.state?.at));
  addEventListener(CHANGED, () => stopGoing());
  goBackTo(history.state?.at);
}

let isLeaving = false; // two presses are one way back

/** Close what is open over a place: back to where it was opened from, and to `to` where it was opened by its address. */
export function leave(to) {
  if (!history.state?.isOpenedHere) go(to, { replace: true });
  else if (!isLeaving) {
    isLeaving = true;
    history.back();
  }
}

function here() {
  const path = location.pathname.slice(BASE.length).replace(/(.)\/$/, "$1");
  return { path: path || "/", parameters: new URLSearchParams(location.search) };
}

/** The open place: its path below the base, and its parameters. */
export function usePlace() {
  const [place, setPlace] = useState(here);
  const follow = () => {
    isLeaving = false;
    setPlace(here());
  };
  useEvents({ popstate: follow, [CHANGED]: follow });
  return place;
}

/** Links of the page are followed without loading it anew; all others, and those for a new tab, as ever. */
export function followLinks(event) {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return;
  // an SVG link's href is an object; the attribute is the same text in both
  const to = new URL(link.getAttribute("href"), location.href);
  if (to.origin !== location.origin || link.hasAttribute("data-leaves") || link.hasAttribute("download")) return;
  event.preventDefault();
  if (to.href !== location.href) go(to.href);
}
