/** Preact, its hooks and htm under one roof, so that every module of the page imports its tools from one place. */
import { h } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { Fragment, render } from "./vendor/preact.js";
export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export const html = htm.bind(h);
