/** A list of any length of which only what is in view is in the page: rows of one height, fetched page by page. */
import { read } from "./api.js";
import { count } from "./format.js";
import { Failed } from "./parts.js";
import { html, useEffect, useEvents, useLayoutEffect, useRef, useState } from "./ui.js";
import { t } from "./words.js";

const PER_PAGE = 100; // as many as the interface gives at once
const AROUND = 8; // rows above and below what is in view
const RESTS_AFTER = 90; // milliseconds without scrolling: pages flown over are not asked for

const rowHeight = () => (matchMedia("(max-width: 719px)").matches ? 64 : 56);

const rowIn = (pages, index) => pages.get(Math.floor(index / PER_PAGE))?.[index % PER_PAGE];

/** By how many rows the one at `index` has moved, now that `rows` are the first ones of `total`. */
function movedBy(before, rows, total, index) {
  if (index >= rows.length) return total - before.total;
  const now = rows.findIndex(({ id }) => id === rowIn(before.pages, index)?.id);
  return now < 0 ? 0 : now - index;
}

/** Pages whose rows have moved by `shift`. */
function shifted(pages, shift) {
  const moved = new Map();
  for (const page of pages.keys()) moved.set(page, Array.from({ length: PER_PAGE }, (_, place) => rowIn(pages, page * PER_PAGE + place - shift)));
  return moved;
}

/**
 * `path` and `parameters` are asked for page by page; `rowsOf` finds the rows in an answer. `first` is the first page,
 * `total` how many rows there are. `children(row, index, before)` is what stands in a row, null while it is on its way.
 */
export function LongList({ path, parameters, rowsOf, first, total, label, link, children }) {
  const list = useRef();
  const [, redraw] = useState(0);
  const [failed, setFailed] = useState(null); // why rows in view did not come
  const [attempt, setAttempt] = useState(0);
  const [isOnPaper, setIsOnPaper] = useState(false);
  const [view, setView] = useState({ from: 0, to: 20, height: rowHeight() });
  const [active, setActive] = useState(0);
  const wanted = useRef(null); // the row that the focus waits for
  const key = JSON.stringify([path, parameters]);
  const kept = useRef(null);
  const shift = useRef(0); // rows that came above those in view, which stay where they are
  if (kept.current?.key !== key || kept.current.first !== first) {
    if (kept.current && kept.current.key !== key) setActive(0);
    // after a change the rows in view stay until those that replace them have come
    const before = kept.current?.key === key ? kept.current : { pages: new Map(), total };
    const inView = view.from + (view.from > 0 ? AROUND : 0);
    shift.current = inView === 0 ? 0 : movedBy(before, rowsOf(first), total, inView);
    const pages = shifted(before.pages, shift.current).set(0, rowsOf(first));
    kept.current = { key, first, total, pages, fresh: new Set([0]) };
  }
  const rowAt = (index) => rowIn(kept.current.pages, index);

  const measure = () => {
    if (!list.current) return; // has just gone
    const height = rowHeight();
    const top = -list.current.getBoundingClientRect().top;
    const from = Math.max(0, Math.floor(top / height) - AROUND);
    const to = Math.min(total, Math.ceil((top + innerHeight) / height) + AROUND);
    setView((before) => (before.from === from && before.to === to && before.height === height ? before : { from, to, height }));
  };
  useEffect(measure, [total, key]);
  useEvents({ scroll: measure, resize: measure, beforeprint: () => setIsOnPaper(true), afterprint: () => setIsOnPaper(false) }, [total]);

  useEffect(() => setFailed(null), [key, first]);
  useEffect(() => {
    const overtaken = new AbortController();
    const mine = kept.current;
    const timer = setTimeout(() => {
      for (let page = Math.floor(view.from / PER_PAGE); page <= Math.floor(Math.max(view.from, view.to - 1) / PER_PAGE); page += 1) {
        if (mine.fresh.has(page) || page * PER_PAGE >= total) continue;
        read(path, { ...parameters, perPage: PER_PAGE, page: page + 1 }, { signal: overtaken.signal }).then(
          (answer) => {
            mine.pages.set(page, rowsOf(answer));
            mine.fresh.add(page);
            setFailed(null);
            redraw((turn) => turn + 1);
          },
          (error) => overtaken.signal.aborted || setFailed(error),
        );
      }
    }, RESTS_AFTER);
    return () => {
      clearTimeout(timer);
      overtaken.abort();
    };
  }, [view.from, view.to, key, total, first, attempt]);

  useLayoutEffect(() => {
    if (shift.current === 0) return;
    scrollBy(0, shift.current * view.height);
    setActive((before) => Math.max(0, before + shift.current));
    shift.current = 0;
  });
  useLayoutEffect(() => {
    if (wanted.current === null || !rowAt(wanted.current)) return;
    const row = list.current.querySelector(`[data-index="${wanted.current}"]`);
    if (!row) return;
    wanted.current = null;
    row.focus({ preventScroll: true });
  });

  const goTo = (index) => {
    const { height } = view;
    wanted.current = index;
    setActive(index);
    const top = list.current.getBoundingClientRect().top + index * height;
    const [least, most] = [height, innerHeight - 2.5 * height];
    if (top < least) scrollBy(0, top - least);
    else if (top > most) scrollBy(0, top - most);
  };
  const keys = (event) => {
    const page = Math.max(1, Math.floor(innerHeight / view.height) - 2);
    const to = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: total - 1 };
    if (!(event.key in to) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    goTo(Math.max(0, Math.min(total - 1, to[event.key])));
  };

  const indexes = new Set([Math.min(active, total - 1)]);
  for (let index = view.from; index < Math.min(view.to, total); index += 1) indexes.add(index);
  if (isOnPaper) for (const [page, rows] of kept.current.pages) rows.forEach((_, place) => page * PER_PAGE + place < total && indexes.add(page * PER_PAGE + place));
  const known = [...indexes].filter(rowAt).length;
  return html`${isOnPaper && known < total && html`<p class="on-paper">${t("on_paper", { n: total, shown: count(known) })}</p>`}
    <ol class="long-list" ref=${list} aria-label=${label} style=${{ height: `${total * view.height}px` }} onKeyDown=${keys}>
    ${[...indexes].sort((a, b) => a - b).map((index) => {
      const row = rowAt(index);
      const place = { transform: `translateY(${index * view.height}px)`, height: `${view.height}px` };
      return html`<li key=${index} style=${place} aria-setsize=${total} aria-posinset=${index + 1}>
        ${row
          ? html`<a class="row" href=${link(row)} data-index=${index} tabindex=${index === active ? 0 : -1}
              onFocus=${() => setActive(index)}>${children(row, index, rowAt(index - 1))}</a>`
          : html`<span class="row coming" data-coming></span>`}
      </li>`;
    })}
    </ol>
    ${failed && html`<div class="missing"><${Failed} error=${failed} again=${() => setAttempt(attempt + 1)} /></div>`}`;
}
