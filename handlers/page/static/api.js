/** Asks the interface: remembers answers until something changes, waits where it is told to, tries again where it helps. */
import { accessToken, anotherToken } from "./auth.js";
import { BASE } from "./place.js";
import { useEffect, useState } from "./ui.js";

const RETRIED_FOR = 20_000;
const UNREACHABLE = new Set([502, 503, 504]);

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
let version = 0;
const watchers = new Set();
const conditions = new Map();
const conditionWatchers = new Set();

/** Something changed: what was remembered is asked for anew by whoever shows it. */
export function forget() {
  kept = new Map();
  version += 1;
  for (const watcher of watchers) watcher(version);
}

/**
 * What goes along with a request, besides its parameters.
 * @typedef {{ parameters?: object, body?: object, file?: Blob, signal?: AbortSignal }} Along
 */

/**
 * What is read of an address, `/transactions` and its parameters, as JSON.
 * @param {string} path @param {object} parameters @param {Along} along
 */
export async function read(path, parameters = {}, { signal } = {}) {
  const asked = `${path}${query(parameters)}`;
  if (!kept.has(asked)) {
    const mine = kept;
    const answer = await call("GET", asked, { signal });
    mine.set(asked, await answer.json());
    return mine.get(asked);
  }
  return kept.get(asked);
}

/**
 * A change: the body of the answer, null where there is none. What was remembered is kept: the caller forgets it.
 * @param {string} method @param {string} path @param {Along} along
 */
export async function change(method, path, { parameters = {}, body, file, signal } = {}) {
  const sent = file ? { "Content-Type": "application/octet-stream" } : body ? { "Content-Type": "application/json" } : {};
  const answer = await call(method, `${path}${query(parameters)}`, {
    signal, headers: sent, body: file ?? (body && JSON.stringify(body)),
  });
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

/** Save what is answered as a file, under the name that the service gives it. */
export async function download(path, parameters) {
  const answer = await call("GET", `${path}${query(parameters)}`, {});
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
      const answer = await fetch(`${BASE}/api/v1${asked}`, {
        method, body, signal, headers: { ...headers, Authorization: `Bearer ${token}` },
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
        condition(mark, { kind: "waiting", seconds: Math.max(1, after) });
        await pause(Math.max(1, after) * 1000, signal);
      } else if (isRepeated) {
        condition(mark, { kind: "away" });
        await pause(Math.min(4000, 500 * 2 ** attempt), signal);
      } else if (isAway) {
        throw new Away();
      } else {
        throw await refused(answer);
      }
    }
  } finally {
    condition(mark, null);
  }
}

async function refused(answer) {
  const body = await answer.json().catch(() => ({}));
  const { headers } = answer;
  return new Refused(answer.status, body.error ?? "", headers.get("x-request-id"), Number(headers.get("retry-after") ?? 0));
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

function query(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

function condition(mark, value) {
  if (value) conditions.set(mark, value);
  else if (!conditions.delete(mark)) return;
  for (const watcher of conditionWatchers) watcher([...conditions.values()].at(-1) ?? null);
}

/** Whether the service is away or has us wait just now, and for how long. */
export function useCondition() {
  const [value, setValue] = useState(null);
  useEffect(() => {
    conditionWatchers.add(setValue);
    return () => conditionWatchers.delete(setValue);
  }, []);
  return value;
}

/**
 * What is read of an address, for a component: `{data, error, again}`; `path` null asks nothing.
 * What was shown stays while what replaces it is on its way; who asks for something else overtakes.
 */
export function useRead(path, parameters = {}) {
  const asked = path === null ? null : path + query(parameters);
  const [state, setState] = useState(() => ({ asked, data: kept.get(asked) ?? null, error: null }));
  const [turn, setTurn] = useState(version);
  useEffect(() => {
    watchers.add(setTurn);
    return () => watchers.delete(setTurn);
  }, []);
  useEffect(() => {
    if (asked === null) return undefined;
    const overtaken = new AbortController();
    read(path, parameters, { signal: overtaken.signal }).then(
      (data) => overtaken.signal.aborted || setState({ asked, data, error: null }),
      (error) => overtaken.signal.aborted || setState({ asked, data: null, error }),
    );
    return () => overtaken.abort();
  }, [asked, turn]);
  const isMine = state.asked === asked;
  return {
    data: asked === null ? null : isMine ? state.data : kept.get(asked) ?? state.data,
    error: isMine ? state.error : null,
    isStale: !isMine && !kept.has(asked),
    again: () => {
      setState({ asked, data: null, error: null });
      setTurn((before) => before + 0.001);
    },
  };
}
