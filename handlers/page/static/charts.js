/** The two charts, drawn as SVG: the course of a balance, and months as bars. */
import { day, money, monthInShort, onAxis, roundMoney, shortDay } from "./format.js";
import { Icon } from "./icons.js";
import { html, useId, useLayoutEffect, useRef, useState } from "./ui.js";
import { t } from "./words.js";

const HEIGHT = 236;
const TOP = 10;
const BOTTOM = 26;
const WEEKS_MAX = 46; // days of which each week has its name
const MONTH_MIN = 25; // pixels: what a finger can hit

/** The width of an element, followed. */
function useWidth() {
  const element = useRef();
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    setWidth(Math.floor(element.current.getBoundingClientRect().width)); // before it is seen for the first time
    const follow = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    follow.observe(element.current);
    return () => follow.disconnect();
  }, []);
  return [element, width];
}

/** Round whole numbers from below the least to above the largest value. */
export function ticks(least, largest, wanted = 4) {
  const range = largest - least || Math.abs(largest) || 1;
  const rough = range / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough && Number.isInteger(size)) ?? 1;
  const first = Math.floor(least / step);
  const last = Math.max(first + 1, Math.ceil(largest / step));
  return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
}

/** What both charts share: the lines across with their amounts. */
function Grid({ levels, y, right, width, currency }) {
  return levels.map(
    (level) => html`<g key=${level}>
      <line class=${level === 0 ? "grid zero" : "grid"} x1="0" x2=${right} y1=${y(level)} y2=${y(level)} />
      <text class="axis" x=${width} y=${y(level) + 4} text-anchor="end">${roundMoney(level, currency)}</text>
    </g>`,
  );
}

/** Where the values of a chart lie: its lines across, the height of a value, and where the amounts begin on the right. */
function scale(values, width, currency) {
  const levels = ticks(Math.min(...values), Math.max(...values));
  const [low, high] = [levels[0], levels.at(-1)];
  const y = (level) => TOP + ((high - level) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const longest = Math.max(...levels.map((level) => roundMoney(level, currency).length));
  return { levels, y, right: Math.max(40, width - 14 - 7 * longest) };
}

/** A line through points of `[x, y]`. */
const lineThrough = (points) => points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

/**
 * A balance over days: `points` of `{date, balance}`, oldest first, with `low` and `high` where it is not sure. Arrow keys and the
 * pointer read single days; while nobody does, the one at `rest` is marked.
 */
export function Course({ points, currency, label = t("balance_course"), rest = points.length - 1 }) {
  const [element, width] = useWidth();
  const shade = useId();
  const [chosen, setChosen] = useState(null);
  const last = points.length - 1;
  const at = Math.min(chosen ?? rest, last);
  const isSure = points[last].low === undefined;
  const { levels, y, right } = scale(points.flatMap(({ balance, low = balance, high = balance }) => [low, high]), width, currency);
  const x = (index) => (last ? (index / last) * (right - 6) : right / 2);
  const line = lineThrough(points.map(({ balance }, index) => [x(index), y(balance)]));
  const edge = (name) => points.map((each, index) => [x(index), y(each[name])]);
  const named = names(points, x, right);

  const said = ({ date, balance, low, high }) =>
    `${day(date)}: ${money(balance, currency)}${isSure || low === high ? "" : ` (${t("band", { low: money(low, currency), high: money(high, currency) })})`}`;
  const keys = (event) => {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -30, PageUp: 30, Home: -last, End: last };
    if (!(event.key in step)) return;
    event.preventDefault();
    setChosen(Math.max(0, Math.min(last, at + step[event.key])));
  };
  const point = (event) => {
    const { left } = element.current.getBoundingClientRect();
    setChosen(Math.max(0, Math.min(last, Math.round(((event.clientX - left) / (right - 6)) * last))));
  };
  return html`<div class="chart" ref=${element} role="slider" tabindex="0" aria-label=${label}
    aria-valuemin="0" aria-valuemax=${last} aria-valuenow=${at} aria-valuetext=${said(points[at])}
    onKeyDown=${keys} onPointerMove=${point} onPointerLeave=${() => setChosen(null)} onBlur=${() => setChosen(null)}>
    ${width > 0 &&
    html`<svg width=${width} height=${HEIGHT} viewBox="0 0 ${width} ${HEIGHT}" aria-hidden="true">
      <defs>
        <linearGradient id=${shade} x1="0" y1="0" x2="0" y2="1">
          <stop class="shade-top" offset="0" /><stop class="shade-end" offset="1" />
        </linearGradient>
      </defs>
      <${Grid} levels=${levels} y=${y} right=${right} width=${width} currency=${currency} />
      ${named.map(([place, name]) => html`<text class="axis" key=${place} x=${place} y=${HEIGHT - 6} text-anchor="middle">${name}</text>`)}
      ${isSure
        ? html`<path d="${line}L${x(last).toFixed(1)} ${HEIGHT - BOTTOM}L${x(0).toFixed(1)} ${HEIGHT - BOTTOM}Z" fill="url(#${shade})" />`
        : html`<path class="band" d="${lineThrough([...edge("low"), ...edge("high").reverse()])}Z" />`}
      <path class="course" d=${line} />
      ${chosen !== null && html`<line class="cursor" x1=${x(at)} x2=${x(at)} y1=${TOP} y2=${HEIGHT - BOTTOM} />`}
      <circle class="dot" cx=${x(at)} cy=${y(points[at].balance)} r="4.5" />
    </svg>`}
    ${chosen !== null &&
    html`<div class="readout" style=${{ left: `${Math.max(80, Math.min(right - 60, x(at)))}px` }}>${said(points[at])}</div>`}
  </div>`;
}

/** The names of the months that begin among the points, as many as have room; of many years only the years', of few days the weeks'. */
function names(points, x, right) {
  const isShort = points.length < WEEKS_MAX;
  const starts = points.flatMap(({ date }, index) => {
    const isNew = isShort ? index % 7 === 0 : index > 0 && points[index - 1].date.slice(0, 7) !== date.slice(0, 7);
    return isNew && x(index) > 14 && x(index) < right - 16 ? [[Math.round(x(index)), date]] : [];
  });
  const named = starts.length > 36 ? starts.filter(([, iso]) => iso.slice(5, 7) === "01") : starts;
  const every = Math.max(1, Math.ceil((named.length * 54) / right));
  const kept = named.filter((_, index) => index % every === 0);
  const months = onAxis(kept.map(([, iso]) => iso.slice(0, 7)));
  return kept.map(([place, iso], index) => [place, isShort ? shortDay(iso, iso) : months[index]]);
}

/**
 * Months, or years, as bars, oldest first: income up, expenses down, net as a line. `link` leads from a month to its rows. Of more
 * than have room those up to the latest are shown, or those around the chosen one, and two buttons lead to the others. Arrow keys go
 * from one to the next.
 */
export function MonthBars({ months, currency, link, chosen = null, running }) {
  const [element, width] = useWidth();
  const room = Math.max(1, Math.floor((width - 80) / MONTH_MIN));
  const most = Math.max(0, months.length - room); // months that can stand left of those shown
  const [moved, setMoved] = useState(null); // the first month shown, once the person has moved
  const place = months.findIndex(({ month: iso }) => iso === chosen);
  const from = Math.min(most, moved ?? (place < 0 || place >= most ? most : Math.max(0, place - (room >> 1))));
  const shown = months.slice(from, from + room);
  const isOneWay = isOnlyOneWay(months);
  const down = isOneWay ? 1 : -1; // what only goes out stands upright, as there is nothing to tell it from
  const { levels, y, right } = scale([0, ...shown.flatMap(({ income, expenses }) => [income, down * expenses])], width, currency);
  const mover = (name, to) => html`<button type="button" disabled=${to === from} onClick=${() => setMoved(to)}>
    <${Icon} name="right" size="16" />${t(name)}
  </button>`;
  const column = right / shown.length;
  const bar = Math.min(22, column * 0.56);
  const middle = (index) => column * (index + 0.5);
  const every = Math.ceil(30 / column);
  const isNamed = (index) => (shown.length - 1 - index) % every === 0;
  const under = onAxis(shown.filter((_, index) => isNamed(index)).map(({ month: iso }) => iso));
  const stop = shown.some(({ month: iso }) => iso === chosen) ? chosen : shown.at(-1).month; // one for the tabulator
  const walk = (event) => {
    const links = [...event.currentTarget.querySelectorAll("a")];
    const next = links[links.indexOf(document.activeElement) + { ArrowLeft: -1, ArrowRight: 1 }[event.key]];
    next?.focus();
  };
  const rectangle = (kind, index, from, to, isRunning) =>
    html`<rect class="bar ${kind} ${isRunning ? "running" : ""}" x=${middle(index) - bar / 2} width=${bar} rx="2"
      y=${Math.min(y(from), y(to))} height=${Math.abs(y(to) - y(from))} />`;
  return html`<div class="chart" ref=${element}>
    ${width > 0 &&
    html`<svg width=${width} height=${HEIGHT} viewBox="0 0 ${width} ${HEIGHT}" onKeyDown=${walk}>
      <g aria-hidden="true"><${Grid} levels=${levels} y=${y} right=${right} width=${width} currency=${currency} /></g>
      ${shown.map((each, index) => {
        const isRunning = each.month === running;
        return html`<a key=${each.month} class="month ${each.month === chosen ? "chosen" : ""}" href=${link(each.month)} tabindex=${each.month === stop ? 0 : -1}
          aria-label=${monthSaid(each, currency, isRunning)} aria-current=${each.month === chosen ? "true" : undefined}>
          <rect class="column" x=${column * index + 1} width=${column - 2} y="0" height=${HEIGHT} rx="6" />
          ${rectangle("in", index, 0, each.income, isRunning)} ${rectangle("out", index, down * each.expenses, 0, isRunning)}
          ${isNamed(index) && html`<text class="axis" x=${middle(index)} y=${HEIGHT - 6} text-anchor="middle" aria-hidden="true">${under.shift()}</text>`}
        </a>`;
      })}
      ${!isOneWay && html`<g class="net" aria-hidden="true">
        <path d=${lineThrough(shown.map((each, index) => [middle(index), y(each.net)]))} />
        ${shown.map((each, index) => html`<circle key=${each.month} cx=${middle(index)} cy=${y(each.net)} r="3.5" />`)}
      </g>`}
    </svg>`}
  </div>
  ${width > 0 && most > 0 && html`<p class="buttons movers">${mover("earlier", Math.max(0, from - room))}${mover("later", Math.min(most, from + room))}</p>`}`;
}

/** A month in short, or a year. */
export const inShort = (iso) => (iso.length > 4 ? monthInShort(iso) : iso);

// With the very words below the bar, for whoever says what they see
function monthSaid({ month: iso, income, expenses, net }, currency, isRunning) {
  const said = { income: money(income, currency), expenses: money(expenses, currency), net: money(net, currency, { signed: true }) };
  return t("bar_name", { month: inShort(iso) + (isRunning ? ` (${t("so_far")})` : ""), ...said });
}

/** Whether there is only income in these months, or only expenses. */
export const isOnlyOneWay = (months) => months.every(({ income }) => !income) || months.every(({ expenses }) => !expenses);

/** What the colours of the bars mean. */
export const Legend = () => html`<ul class="legend">
  <li><span class="key in"></span>${t("income")}</li>
  <li><span class="key out"></span>${t("expenses")}</li>
  <li><span class="key net"></span>${t("net")}</li>
</ul>`;

/** A price over time as a small stair. */
export function Stair({ prices }) {
  const [least, largest] = [Math.min(...prices.map(({ amount }) => amount)), Math.max(...prices.map(({ amount }) => amount))];
  const total = prices.reduce((sum, { charges }) => sum + charges, 0) || 1;
  const y = (amount) => (largest === least ? 12 : 19 - (14 * (amount - least)) / (largest - least));
  let x = 2;
  const path = prices.map(({ amount, charges }, index) => {
    const from = x;
    x += (60 * charges) / total;
    return `${index ? "L" : "M"}${from.toFixed(1)} ${y(amount).toFixed(1)}L${x.toFixed(1)} ${y(amount).toFixed(1)}`;
  });
  return html`<svg class="stair" width="70" height="24" viewBox="0 0 70 24" aria-hidden="true">
    <path d=${path.join("")} /><circle cx=${x} cy=${y(prices.at(-1).amount)} r="2.5" />
  </svg>`;
}
