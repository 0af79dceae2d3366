/** The page: its frame, the places in it, and what is shown around them while something is amiss. */
import { OPEN, askAtOnce, forget, read, useCondition, useModule, usePerson, useRead } from "./api.js";
import { SignInFailed, SignedOut, accessToken, entry, finish, onEnd, signIn } from "./auth.js";
import { chosenLanguage, writeAs } from "./format.js";
import { Icon } from "./icons.js";
import { atOnce } from "./overview.js"; // what is seen first
import { Bones, Dialog, Failed, Loaded, Place, SignOut, State, Toasts } from "./parts.js";
import { BASE, PUBLIC_URL, address, beside, followLinks, go, leave, rememberPlaces, usePlace } from "./place.js";
import { html, render, useEffect, useEvents, useState } from "./ui.js";
import { speak, t } from "./words.js";

// By name; those aside are behind More on a phone
const PLACES = ["overview", "transactions", "months", "recurring"];
const ASIDE = ["merchants", "import", "connections", "settings"];
const BEHIND = ["account", "telling"]; // opened from what is shown elsewhere
// The account of the person themselves, with password and apps, has /account
const pathOf = (name) => ({ overview: "/", account: "/accounts", telling: "/notices" })[name] ?? `/${name}`;

const root = document.getElementById("page");
const RETURN = `${BASE}/signed-in`;

function Mark() {
  return html`<svg class="mark" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
    <path class="shield" d="M16 2 28 6.5v8.6c0 7-4.9 12.4-12 14.9C8.9 27.5 4 22.1 4 15.1V6.5z" />
    <path class="mark-bars" d="M10.5 20.5v-4M16 20.5v-10M21.5 20.5v-7" />
  </svg>`;
}

const PlaceLink = ({ name, current, open = 0 }) => html`<a class="place-link" href=${address(pathOf(name))} aria-current=${name === current ? "page" : undefined}>
  <${Icon} name=${name === "merchants" ? "SHOPPING" : name} /><span>${t(name)}</span>
  ${open > 0 && html`<span class="pill mark-open" role="img" aria-label=${t("n_open", { n: open })}>${open}</span>`}
</a>`;

/** The places beside the content; on a phone tabs below it, the less frequent ones behind More. */
function Navigation({ current, person }) {
  const [isOpen, setIsOpen] = useState(false);
  const notices = useRead(person && "/notices", OPEN).data?.notices.length;
  useEffect(() => setIsOpen(false), [current]);
  useEvents({
    keydown: ({ key }) => key === "Escape" && setIsOpen(false),
    pointerdown: ({ target }) => target.closest(".places") || setIsOpen(false),
  });
  return html`<nav class="places" aria-label=${t("places")}>
    <a class="masthead" href=${address("/")}><${Mark} /><span>${t("service")}</span></a>
    <div class="places-main">
      ${PLACES.map((name) => html`<${PlaceLink} key=${name} name=${name} current=${current} open=${name === "overview" && notices} />`)}
      <button type="button" class="place-link more" aria-expanded=${isOpen} aria-controls="more" onClick=${() => setIsOpen(!isOpen)}
        data-here=${ASIDE.includes(current) ? "" : undefined}>
        <${Icon} name="more" /><span>${t("more")}</span>
      </button>
    </div>
    <div class="places-aside ${isOpen ? "open" : ""}" id="more">
      ${ASIDE.map((name) => html`<${PlaceLink} key=${name} name=${name} current=${current} />`)}
      ${person && html`<a class="place-link who" href=${address("/settings")}><${Icon} name="person" /><span>${person}</span></a>`}
    </div>
  </nav>`;
}

/** What is amiss with the service, above the place; what is shown stays readable. */
function Banner() {
  const condition = useCondition();
  const text = condition && (condition.kind === "away" ? t("away") : t("waiting", { n: condition.seconds }));
  return html`<div role="status">${text && html`<div class="banner">${text}</div>`}</div>`;
}

function Frame() {
  const { path, parameters } = usePlace();
  askAtOnce(path === "/" && atOnce);
  const person = usePerson();
  const live = useModule("live");
  const push = useModule(globalThis.Notification?.permission === "granted" && "push");
  useEffect(() => {
    if (history.state?.at === undefined) scrollTo(0, 0); // Back leads to where one was
  }, [path]);
  const place = [...PLACES, ...ASIDE, ...BEHIND].find((name) => pathOf(name) === path);
  const module = useModule(place); // loaded when it is opened for the first time
  let content;
  if (!place) content = html`<${Nowhere} />`;
  else if (person.error)
    content = html`<${Place} title=${t(place)} key=${path}>
      <div class="card"><${Failed} error=${person.error} again=${person.again} /></div>
      <p class="buttons"><${SignOut} /></p>
    <//>`;
  else if (!person.data || !module.data)
    content = html`<${Place} title=${t(place)} key=${path}><div class="card">
      ${module.error ? html`<${Failed} error=${module.error} again=${module.again} />` : html`<${Bones} rows="6" />`}
    </div><//>`;
  else content = html`<${module.data.default} key=${path} person=${person.data} parameters=${parameters} />`;
  const name = place === "transactions" ? "id" : "booking";
  const booking = parameters.get(name);
  const notice = parameters.get("notice");
  return html`<a class="skip" href="#content" data-leaves>${t("skip")}</a>
    <${Navigation} current=${place} person=${person.data?.profile.name} />
    <main id="content" tabindex="-1"><${Banner} />${content}</main>
    ${booking && person.data && html`<${Opened} key=${booking} name="booking" title="row" id=${booking} person=${person.data} onClose=${() => leave(beside({ [name]: "" }))} />`}
    ${notice && person.data && html`<${Opened} key=${notice} name="notice" title="notice" id=${notice} person=${person.data} onClose=${() => leave(beside({ notice: "" }))} />`}
    ${push.data && person.data && html`<${push.data.default} />`}
    ${live.data && html`<${live.data.default} profile=${person.data?.profile} />`}
    <${Toasts} />`;
}

/** A booking or a notice, over the place it was opened from. */
function Opened({ name, title, id, person, onClose }) {
  const module = useModule(name);
  return module.data
    ? html`<${module.data.default} id=${id} person=${person} onClose=${onClose} />`
    : html`<${Dialog} title=${t(title)} onClose=${onClose}><${Loaded} of=${module} /><//>`;
}

const Nowhere = () => html`<${Place} title=${t("nowhere")} text=${t("nowhere_text")}>
  <p><a class="button primary" href=${address("/")}>${t("to_overview")}</a></p>
<//>`;

/** A sentence instead of the whole page. */
const alone = (title, text, action = null) =>
  html`<main class="alone"><div class="card"><${State} icon="warn" title=${title} text=${text}>${action}<//></div></main>`;

function Page() {
  const [state, setState] = useState("opening");
  useEffect(() => {
    onEnd(() => setState("over"));
    const open = async () => {
      try {
        if (location.pathname === RETURN) go(await finish(new URLSearchParams(location.search)), { replace: true });
        await (entry ?? accessToken());
        setState("open");
      } catch (error) {
        if (error instanceof SignedOut) await signIn();
        else setState(error instanceof SignInFailed ? "failed" : "away");
      }
    };
    open();
  }, []);
  // What the browser keeps to go back to shows nothing, and asks first when it is shown again
  useEvents({ pageshow: (event) => event.persisted && location.reload(), pagehide: (event) => event.persisted && render(null, root) });
  if (state === "opening") return html`<main class="alone" key="opening"><${Bones} rows="3" /></main>`;
  const retry = html`<button type="button" class="primary" onClick=${signIn}>${t("again")}</button>`;
  if (state === "failed") return alone(t("sign_in_failed"), t("sign_in_failed_text"), retry);
  if (state === "away")
    return alone(t("away_text"), "", html`<button type="button" onClick=${() => location.reload()}>${t("again")}</button>`);
  if (state === "over") return html`<${SessionOver} />`;
  return html`<${Frame} />`;
}

/** The session ended, here or in another tab: nothing of anybody's money stays on the screen. */
function SessionOver() {
  useEffect(forget, []);
  const action = html`<button type="button" class="primary" onClick=${signIn}>${t("sign_in")}</button>`;
  return html`<main class="alone"><div class="card" role="alert"><${State} icon="person" title=${t("over")}>${action}<//></div></main>`;
}

/** The same service on this machine under another name, where a sign-in would not come back to. */
function isSameMachine(url) {
  const names = ["localhost", "127.0.0.1", "[::1]"];
  return names.includes(location.hostname) && names.includes(new URL(url).hostname);
}

/** Ask for what is seen first, while its frame is drawn. */
function begin() {
  askAtOnce(atOnce);
  return read("/profile");
}

async function start() {
  const chosen = chosenLanguage();
  document.documentElement.lang = chosen;
  const words = speak(chosen);
  entry?.then(() => location.pathname === address("/") && begin()).catch(() => {}); // Page says what went wrong
  await words;
  writeAs(chosen);
  document.addEventListener("click", followLinks);
  document.addEventListener("submit", (event) => event.preventDefault()); // a form is sent by what it is told to do
  rememberPlaces();
  const open = `${new URL(PUBLIC_URL).origin}${location.pathname}${location.search}`;
  if (new URL(PUBLIC_URL).origin !== location.origin) {
    if (isSameMachine(PUBLIC_URL)) return location.replace(open);
    return render(alone(t("elsewhere"), t("elsewhere_text"), html`<a href=${open} data-leaves>${PUBLIC_URL}</a>`), root);
  }
  if (!globalThis.crypto?.subtle) return render(alone(t("need_https"), t("need_https_text")), root);
  return render(html`<${Page} />`, root);
}

start();
