/** Asks the interface: remembers answers until something changes, waits where it is told to, tries again where it helps. */
import { accessToken, anotherToken, tellOthers } from "./auth.js";
import { address } from "./place.js";
import { shared, useEffect, useEvents, useMemo, useState } from "./ui.js";
import { learn, spoken } from "./words.js";

const RETRIED_FOR = 20_000;
export const UNREACHABLE = new Set([502, 503, 504]);

/** The interface said no: its status, its sentence, and the id under which the log knows the request. */
export class Refused extends Error {
  constructor(status, sentence, requestId, retryAfter) {
    super(sentence);
    this.status = status;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
  }
}
/** Nobody answered, however often we asked. */
export class Away extends Error {}

let kept = new Map();
let coming = new Map(); // what is on its way: whoever wants the same waits for the same answer
const version = shared(0);
const conditions = new Map();
const condition = shared(null);

/**
 * Something changed: what was remembered is asked for anew by whoever shows it. The accounts come first, for an account that
 * is hidden now must not be asked about.
 */
export async function forget() {
  tellOthers();
  await anew();
}

let renewals = 0;

/** What was remembered is asked for anew by whoever shows it. */
export async function anew() {
  renewals += 1;
  const mine = renewals;
  const fresh = new Map();
  if (atOnce) await gather(fresh);
  else await change("GET", "/accounts").then((accounts) => fresh.set(operation("/accounts"), accounts), () => {}); // whoever shows them is told why
  if (mine !== renewals) return; // a later change is on its way
  kept = fresh;
  coming = new Map();
  gathered = { into: kept };
  version.set(version.get() + 1);
}

let atOnce = null; // how the open place asks at once for what it shows
let gathered = {}; // for which answers that was done, and the promise of it

/**
 * From now on the open place asks so for what it shows: `ask` gives the paths, parameters and answers that its parts would ask for.
 * @param {false | (() => Promise<any[][]>)} ask
 */
export const askAtOnce = (ask) => (atOnce = ask);

/** What could not be had at once is asked for by whoever shows it. */
async function gather(into) {
  for (const [path, parameters, data] of await atOnce().catch(() => [])) into.set(operation(path, parameters), data);
}

/** Each minute another number: whoever says how long ago something was says it anew. */
export const minute = shared(0);

/**
 * What goes along with a request, besides its parameters.
 * @typedef {{ parameters?: object, body?: object, file?: Blob, signal?: AbortSignal }} Along
 */

/**
 * What is read of an address, `/transactions` and its parameters, as JSON.
 * @param {string} path @param {object} parameters @param {Along} along
 */
export async function read(path, parameters = {}, { signal } = {}) {
  const asked = operation(path, parameters);
  if (kept.has(asked)) return kept.get(asked);
  if (atOnce && gathered.into !== kept) gathered = { into: kept, done: gather(kept) };
  await gathered.done;
  if (kept.has(asked)) return kept.get(asked);
  if (!coming.has(asked)) {
    const [mine, ours] = [kept, coming];
    const answered = async () => (await call("GET", asked, { signal })).json();
    ours.set(asked, answered().then((data) => (mine.set(asked, data), data)).finally(() => ours.delete(asked)));
  }
  return coming.get(asked).catch((error) => {
    if (error.name !== "AbortError" || signal?.aborted) throw error;
    return read(path, parameters, { signal }); // who asked first wants it no more
  });
}

/**
 * A change: the body of the answer, null where there is none. What was remembered is kept: the caller forgets it.
 * @param {string} method @param {string} path @param {Along} along
 */
export async function change(method, path, { parameters = {}, body, file, signal } = {}) {
  const sent = file ? { "Content-Type": "application/octet-stream" } : body ? { "Content-Type": "application/json" } : {};
  const answer = await call(method, operation(path, parameters), {
    signal, headers: sent, body: file ?? (body && JSON.stringify(body)),
  });
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

/** What is read of an address, again and again until `isOver` says that it is the last word. */
export async function followed(path, isOver, every) {
  for (;;) {
    const found = await change("GET", path);
    if (isOver(found)) return found;
    await pause(every);
  }
}

/** Save what is answered as a file, under the name that the service gives it. */
export async function download(path, parameters) {
  const answer = await call("GET", operation(path, parameters), {});
  const name = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") ?? "")?.[1];
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name ?? "transactions";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // browsers read it a little later
}

/** @param {string} method @param {string} asked @param {{ signal?: AbortSignal, headers?: object, body?: BodyInit }} along */
async function call(method, asked, { signal, headers = {}, body }) {
  const began = Date.now();
  const mark = Symbol(asked);
  let token = await accessToken();
  let isNew = false;
  try {
    for (let attempt = 0; ; attempt += 1) {
      const answer = await fetch(asked, {
        method, body, signal, headers: { ...headers, Authorization: `Bearer ${token}`, "Accept-Language": spoken() },
      }).catch((error) => {
        if (signal?.aborted) throw error;
        return null;
      });
      if (answer?.ok) return answer;
      if (answer?.status === 401 && !isNew) {
        isNew = true;
        token = await anotherToken(token);
        continue;
      }
      const isAway = answer === null || UNREACHABLE.has(answer.status);
      // what failed on its way may have been done: only asking is repeated
      const isRepeated = isAway && method === "GET" && Date.now() - began < RETRIED_FOR;
      const after = Number(answer?.headers.get("retry-after") ?? 0);
      if (answer?.status === 429 && method === "GET" && after <= 60) {
        tell(mark, { kind: "waiting", seconds: Math.max(1, after) });
        await pause(Math.max(1, after) * 1000, signal);
      } else if (isRepeated) {
        tell(mark, { kind: "away" });
        await pause(Math.min(4000, 500 * 2 ** attempt), signal);
      } else if (isAway) {
        throw new Away();
      } else {
        throw await refused(answer);
      }
    }
  } finally {
    tell(mark, null);
  }
}

async function refused(answer) {
  const body = await answer.json().catch(() => ({}));
  const { headers } = answer;
  return new Refused(answer.status, body.error ?? "", headers.get("x-request-id"), Number(headers.get("retry-after") ?? 0));
}

/** @param {number} milliseconds @param {AbortSignal} [signal] @returns {Promise<void>} */
export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** The path of one of a kind, and of what is below it. */
export const one = (kind, id, below = "") => `/${kind}/${encodeURIComponent(id)}${below}`;

/** The address of an operation. */
export const operation = (path, parameters) => address(`/api/v1${path}`, parameters);

export function tell(mark, value) {
  if (value) conditions.set(mark, value);
  else if (!conditions.delete(mark)) return;
  condition.set([...conditions.values()].at(-1) ?? null);
}

/** Whether the service is away or has us wait just now, and for how long. */
export const useCondition = condition.use;

/**
 * What is read of an address, for a component: `{data, error, isStale, again}`; nothing is asked without a path.
 * What was shown stays while what replaces it is on its way; who asks for something else overtakes.
 */
export function useRead(path, parameters = {}) {
  const asked = path && operation(path, parameters);
  const [state, setState] = useState(() => ({ asked, data: kept.get(asked) ?? null, error: null }));
  const turn = version.use();
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const overtaken = new AbortController();
    if (!path) return undefined;
    read(path, parameters, { signal: overtaken.signal }).then(
      (data) => overtaken.signal.aborted || setState({ asked, data, error: null }),
      // what was known stays while nobody answers
      (error) => overtaken.signal.aborted || setState((before) => (error instanceof Away && before.asked === asked && before.data ? before : { asked, data: null, error })),
    );
    return () => overtaken.abort();
  }, [asked, turn, attempt]);
  const isMine = state.asked === asked;
  return {
    data: kept.get(asked) ?? state.data,
    error: isMine ? state.error : null,
    isStale: !isMine && !kept.has(asked),
    again: () => {
      setState({ asked, data: null, error: null });
      setAttempt(attempt + 1);
    },
  };
}

/** What there is to do, for its list and for the mark with its number. */
export const OPEN = { state: "open", limit: 200 };

/** How the recurring payments that go on are asked for, without what was charged before. */
export const ongoing = (ids) => ({ accountIds: ids, status: "ongoing", withCharges: false });

export const useOngoing = ({ ids }) => useRead("/subscriptions/details", ongoing(ids));

/**
 * What a dry run of these inputs answers, `{data}` or `{error}`; null until it does. Newer inputs overtake it; `rest` is for how
 * many milliseconds they have to stay as they are before it is asked.
 * @param {false | "" | ((signal: AbortSignal) => Promise<any>)} ask nothing is asked without it
 * @param {any[]} inputs
 * @returns {null | { data?: any, error?: any }}
 */
export function usePreview(ask, inputs, rest = 0) {
  const asked = JSON.stringify(inputs);
  const [answer, setAnswer] = useState({ asked: "" });
  useEffect(() => {
    if (!ask) return undefined;
    const overtaken = new AbortController();
    const answered = (said) => overtaken.signal.aborted || setAnswer({ asked, ...said });
    const timer = setTimeout(() => ask(overtaken.signal).then((data) => answered({ data }), (error) => answered({ error })), rest);
    return () => {
      clearTimeout(timer);
      overtaken.abort();
    };
  }, [asked]);
  return answer.asked === asked ? answer : null;
}

const modules = new Map(); // those that are loaded

const load = async (name) => modules.set(name, await import(`./${name}.js`)).get(name);

/** Have these modules and their words at hand when they are shown. */
export const preload = (...names) => Promise.all([...names.map(load), learn()]).catch(() => {});

/** A module of the page, loaded when it is wanted, as what is read is: `{data, error, again}`. */
export function useModule(name) {
  const [state, setState] = useState({ name, data: modules.get(name) ?? null, error: null });
  const [attempt, setAttempt] = useState(0);
  const isLoaded = state.name === name && Boolean(state.data || state.error);
  useEffect(() => {
    if (!name || (isLoaded && state.data)) return undefined;
    let isWanted = true;
    const failed = async () => {
      // a newer server has other files, which the document names: that is loaded anew where it can be had
      const isThere = await fetch(location.href, { cache: "no-store" }).then(({ ok }) => ok, () => false);
      if (isWanted && isThere) location.reload();
      else if (isWanted) setState({ name, data: null, error: new Away() });
    };
    Promise.all([load(name), name !== "overview" && learn()]).then(
      ([data]) => isWanted && setState({ name, data, error: null }),
      failed,
    );
    return () => {
      isWanted = false;
    };
  }, [name, attempt]);
  const again = () => {
    setState({ name: null, data: null, error: null });
    setAttempt((before) => before + 1);
  };
  // heard from the beginning: the network may be back before the failure is known
  useEvents({ online: () => setAttempt((before) => before + 1) });
  return isLoaded ? { ...state, again } : { data: null, error: null, again };
}

/**
 * Whose money it is, which every place needs before it asks for anything else:
 * `{profile, accounts, currency, ids, byId}` once both are there: `ids` are the accounts' for operations that want them named (one that
 * is gone is refused there), and `currency` is that of their sums. Accounts that the person has hidden are not among them.
 */
export function usePerson() {
  const profile = useRead("/profile");
  const accounts = useRead("/accounts");
  const data = useMemo(() => {
    if (!profile.data || !accounts.data) return null;
    const all = accounts.data.accounts;
    return {
      profile: profile.data,
      accounts: all,
      currency: new Set(all.map(({ currency }) => currency)).size === 1 ? all[0].currency : profile.data.homeCurrency,
      ids: all.map(({ id }) => id).join(","),
      byId: new Map(all.map((account) => [account.id, account])),
    };
  }, [profile.data, accounts.data]);
  const again = () => {
    profile.again();
    accounts.again();
  };
  return { data, error: profile.error ?? accounts.error, again };
}
