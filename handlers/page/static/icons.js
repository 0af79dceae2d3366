/** The icons: lines on a grid of 20, drawn in the colour of the text beside them. */
import { html } from "./ui.js";

const PATHS = {
  overview: "M3.5 9.5 10 4l6.5 5.5M5 8.5V16h3.5v-4h3v4H15V8.5",
  transactions: "M4 5.5h12M4 10h12M4 14.5h8",
  months: "M4 16v-4M8 16V7M12 16v-6M16 16V4",
  recurring: "M15.8 8A6.2 6.2 0 0 0 4.6 7M4.2 12a6.2 6.2 0 0 0 11.2 1M4.3 3.5V7h3.5M15.7 16.5V13h-3.5",
  import: "M10 12.5v-9M6.5 6.5 10 3l3.5 3.5M3.5 12.5V16.5h13V12.5",
  connections: "M3 8 10 4l7 4zM4.5 8.5V15M8.2 8.5V15M11.8 8.5V15M15.5 8.5V15M3 16.5h14",
  settings: "M3.5 5.5h13M3.5 10h13M3.5 14.5h13M7 3.5v4M13 8v4M8.5 12.5v4",
  more: "M5 10h.01M10 10h.01M15 10h.01",
  person: "M10 9.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM4.5 17c.4-3.2 2.5-5 5.5-5s5.1 1.8 5.5 5",
  search: "M9 14.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM13 13l4 4",
  right: "m7.5 4.5 5.5 5.5-5.5 5.5",
  close: "m5 5 10 10M15 5 5 15",
  check: "m4 10.5 4 4 8-9",
  warn: "M10 3 2.5 16.5h15zM10 8v4M10 14.3v.01",
  file: "M5.5 3h6l3.5 3.5V17h-9.5zM11.5 3v3.5H15",
  folder: "M3 15.5V5h5l1.5 2H17v8.5z",
  command: "m4 6 4 4-4 4M10 14.5h6",
  download: "M10 3.5v9M6.5 9.5 10 13l3.5-3.5M3.5 16.5h13",
  out: "M8 4H4v12h4M8.5 10H17M13.5 6.5 17 10l-3.5 3.5",
  RENT: "M3.5 9.5 10 4l6.5 5.5M5.5 8.5V16h9V8.5M8.5 16v-3.5h3V16",
  INSURANCE: "M10 3 4.5 5v5c0 3.5 2.3 5.8 5.5 7 3.2-1.2 5.5-3.5 5.5-7V5zM7.5 10l2 2 3.5-4",
  GROCERIES: "M3 8h14l-1.5 8.5h-11zM6.5 8 9 3.5M13.5 8 11 3.5M8 11v2.5M12 11v2.5",
  DINING: "M6.5 3.5v13M4.5 3.5v3.5a2 2 0 0 0 4 0V3.5M13.5 16.5v-13c-1.8.8-2.5 3-2.5 6h2.5",
  TRANSPORT: "M5 12.5V5.5a2 2 0 0 1 2-2h6a2 2 0 0 1 2 2v7a1.5 1.5 0 0 1-1.5 1.5h-7A1.5 1.5 0 0 1 5 12.5zM5 9h10M7 14l-1.5 3M13 14l1.5 3M7.8 11.5h.01M12.2 11.5h.01",
  SHOPPING: "M4.5 7h11l.8 10H3.7zM7 7a3 3 0 0 1 6 0",
  ENTERTAINMENT: "M3 7.5V5h14v2.5a2.5 2.5 0 0 0 0 5V15H3v-2.5a2.5 2.5 0 0 0 0-5zM11.5 7v6",
  SUBSCRIPTION: "M3.5 4h13v9h-13zM6.5 16.5h7M8.8 6.5v4l3.2-2z",
  HEALTH: "M10 16.5C6 13.5 3.5 11 3.5 8a3.3 3.3 0 0 1 6.5-1.3A3.3 3.3 0 0 1 16.5 8c0 3-2.5 5.5-6.5 8.5z",
  SALARY: "M3.5 7h13v9h-13zM7.5 7V4.5h5V7M3.5 11h13M10 10.5v1.5",
  SAVINGS: "M4 9.5C4 7 6.5 5 10 5c1 0 2 .2 2.8.5L15 4v3c.7.6 1.2 1.3 1.5 2h1v3h-1.5c-.4.7-1 1.3-1.5 1.7V16.5h-2.5V15h-4v1.5H5.5v-3C4.5 12.5 4 11 4 9.5zM8 8h3.5",
  TRANSFER: "M4 7h11M12 4l3 3-3 3M16 13H5M8 10l-3 3 3 3",
};

/** An icon beside a text that says the same; screen readers pass it over. */
export function Icon({ name, size = 20 }) {
  return html`<svg class="icon" viewBox="0 0 20 20" width=${size} height=${size} aria-hidden="true">
    <path d=${PATHS[name] ?? PATHS.more} />
  </svg>`;
}

const GROUPS = {
  GROCERIES: "food", DINING: "food", RENT: "home", INSURANCE: "home", TRANSPORT: "move", SHOPPING: "leisure",
  ENTERTAINMENT: "leisure", SUBSCRIPTION: "leisure", HEALTH: "health", SALARY: "brand", SAVINGS: "brand", TRANSFER: "brand",
  OTHER: "other",
};

/** The categories of the interface, in the order in which a person looks for them. */
export const CATEGORIES = Object.keys(GROUPS);

/** The group whose colour a category has. */
export const group = (category) => GROUPS[category] ?? "other";

/** The tile of a category. */
export function CategoryTile({ category }) {
  return html`<span class="tile ${group(category)}"><${Icon} name=${category ?? "OTHER"} size="18" /></span>`;
}
