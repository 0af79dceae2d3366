/** One of many, found by typing: a field that says what is chosen, and below it what fits. */
import { Icon } from "./icons.js";
import { html, into, useEffect, useId, useLayoutEffect, useRef, useState } from "./ui.js";
import { t } from "./words.js";

const LIST_MAX = 288; // pixels
const plain = (text) => text.normalize("NFKD").replaceAll(/\p{M}/gu, "").toLowerCase();

/**
 * The options that have every word that is typed, those first that are called so or begin so: `[key, text, what it is below]`.
 * @param {string[][]} options @param {string} typed
 */
function fitting(options, typed) {
  const wanted = plain(typed).trim();
  const words = wanted.split(/\s+/);
  /** @param {string[]} option */
  const rank = ([, text]) => (plain(text) === wanted ? 0 : plain(text).startsWith(wanted) ? 1 : 2);
  const fit = options.filter(([, ...texts]) => words.every((word) => plain(texts.join(" ")).includes(word)));
  return wanted ? fit.sort((a, b) => rank(a) - rank(b)) : fit;
}

/** `options` are as for `fitting`; `onOpen` is told that they are wanted. */
export function Pick({ name, value, options, onChoose, onOpen = () => {} }) {
  const [typed, setTyped] = useState(null); // null while it is closed
  const [active, setActive] = useState(0);
  const field = useRef();
  const list = useRef();
  const id = useId();
  const isOpen = typed !== null;
  const shown = isOpen ? fitting(options, typed) : [];
  const chosen = options.find(([key]) => key === value)?.[1] ?? value;
  const open = (text) => {
    onOpen();
    setTyped(text);
    setActive(text ? 0 : Math.max(0, options.findIndex(([key]) => key === value)));
  };
  const choose = (option) => {
    setTyped(null);
    if (option && option[0] !== value) onChoose(option[0]);
  };
  const keys = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) isOpen ? setActive(Math.max(0, Math.min(shown.length - 1, active + step))) : open("");
    else if (!isOpen) return event.key.length === 1 && field.current.select(); // what is typed takes the place of what is there
    else if (event.key === "Enter" || (event.key === "Tab" && typed)) choose(shown[active]);
    else if (event.key === "Escape") setTyped(null);
    else return;
    if (event.key !== "Tab") event.preventDefault();
  };
  // In the top layer, where neither a dialog nor a column cuts it off; above the field where there is more room
  const place = () => {
    if (!list.current || !field.current) return;
    const { left, top, bottom, width } = field.current.getBoundingClientRect();
    const height = globalThis.visualViewport?.height ?? innerHeight;
    const isBelow = height - bottom > LIST_MAX || height - bottom > top;
    Object.assign(list.current.style, {
      minWidth: `${width}px`, maxHeight: `${Math.min(LIST_MAX, (isBelow ? height - bottom : top) - 12)}px`,
      top: isBelow ? `${bottom + 4}px` : "auto", bottom: isBelow ? "auto" : `${innerHeight - top + 4}px`,
    });
    list.current.style.left = `${Math.max(8, Math.min(left, innerWidth - list.current.offsetWidth - 8))}px`;
  };
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    list.current.showPopover();
    document.addEventListener("scroll", place, { capture: true, passive: true });
    return () => document.removeEventListener("scroll", place, { capture: true });
  }, [isOpen]);
  useLayoutEffect(place);
  useEffect(() => list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }), [isOpen, active, typed]);
  return html`<span class="pick">
    <input ref=${field} class="choice" role="combobox" aria-label=${name} aria-autocomplete="list" aria-expanded=${isOpen} aria-controls=${id} aria-activedescendant=${shown[active] && `${id}-${active}`}
      value=${isOpen ? typed : chosen} placeholder=${chosen} autocomplete="off" spellcheck=${false} enterkeyhint="done"
      onClick=${() => isOpen || open("")} onInput=${into(open)} onKeyDown=${keys} onBlur=${() => setTyped(null)} />
    <${Icon} name="right" size="14" />
    ${isOpen && html`<ul ref=${list} id=${id} class="picks" popover="manual" role="listbox" aria-label=${t("choose")} onPointerDown=${(event) => event.preventDefault()}>
      ${shown.map((option, index) => html`<li key=${option[0]} id="${id}-${index}" role="option" aria-selected=${index === active} onClick=${() => choose(option)}>
        <span>${option[1]}</span> <span class="soft small">${option[2]}</span>
      </li>`)}
      ${shown.length === 0 && html`<li role="option" aria-disabled="true" aria-selected="false" class="soft">${t("none_found")}</li>`}
    </ul>`}
  </span>`;
}
