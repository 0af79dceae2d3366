/** Preact, its hooks and htm under one roof, so that every module of the page imports its tools from one place. */
import { h } from "./vendor/preact.js";
import htm from "./vendor/htm.js";
import { useEffect, useRef, useState } from "./vendor/hooks.js";

export { render } from "./vendor/preact.js";
export { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export const html = htm.bind(h);

/** Hear events of the window while the component is there: `heard` is `{type: what is done}`. */
export function useEvents(heard, inputs = []) {
  useEffect(() => {
    const all = Object.entries(heard);
    for (const [type, act] of all) addEventListener(type, act, { passive: type === "scroll" });
    return () => {
      for (const [type, act] of all) removeEventListener(type, act);
    };
  }, inputs);
}

/** What is typed or chosen is handed to `set`. */
export const into = (set) => (event) => set(event.target.value);

/** `act`, as long as the component is there: who has gone on to something else when an answer comes is left there. */
export function useThere(act) {
  const isThere = useRef(true);
  useEffect(() => () => {
    isThere.current = false;
  }, []);
  return (...all) => isThere.current && act(...all);
}

/** A value that outlives who shows it: how a component reads it, and how it is set. */
export function shared(value) {
  const watchers = new Set();
  const use = () => {
    const [shown, setShown] = useState(value);
    useEffect(() => {
      watchers.add(setShown);
      setShown(value); // it may have changed since it was drawn
      return () => watchers.delete(setShown);
    }, []);
    return shown;
  };
  const set = (changed) => {
    value = changed;
    for (const watcher of watchers) watcher(value);
  };
  return { use, set, get: () => value };
}
