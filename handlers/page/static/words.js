/** The words of the page in the language that is spoken; each language is a file of its own, and only one is loaded. */
import { count, money } from "./format.js";

const AMOUNT = /^(-?[\d,]+(?:\.\d+)?) ([A-Z]{3})$/; // as sentences of the interface have it

let language = "en";
let words = {};
let sentences = []; // of the interface, which speaks English: how they are known, and what they are in our language
const learning = new Map(); // files of further words, which come with the first place that may say one of them

/** Speak this language, `en` or `de`, from now on. */
export async function speak(chosen) {
  language = chosen;
  [words, sentences] = [{}, []];
  learning.clear();
  await known(`words-${language}`);
}

/** Know the words of all places from now on; with those about banks, too, which are many. */
export const learn = ({ banks = false } = {}) =>
  Promise.all([known(`more-words-${language}`), banks && language !== "en" && known(`bank-sentences-${language}`)]);

function known(file) {
  if (!learning.has(file)) {
    const learnt = import(`./${file}.js`).then(
      (spoken) => {
        words = { ...words, ...spoken.default };
        sentences = [...sentences, ...shaped(spoken)];
      },
      (error) => {
        learning.delete(file); // to be tried again
        throw error;
      },
    );
    learning.set(file, learnt);
  }
  return learning.get(file);
}

const shaped = ({ sentences: told = [] }) => told.map(([english, own = english]) => [shape(english), own]);

const shape = (english) => new RegExp(`^${english.replaceAll(/[.?()|[\]]/g, "\\$&").replace(/\{(word)?\}/g, "(.+)")}$`, "si");

/** A sentence of the interface in the language that is spoken, null where it is not known here. */
function translated(sentence) {
  for (const [known, own] of sentences) {
    const found = known.exec(sentence);
    if (!found) continue;
    const parts = found.slice(1).map((part) => translated(part) ?? part.replace(AMOUNT, (_, amount, currency) => money(Number(amount.replaceAll(",", "")), currency)));
    return own.replace(/\{(word)?\}/g, (_, isWord) => (isWord ? named(parts.shift()) : parts.shift()));
  }
  const [, name, rest] = /^(.+?): (.+)$/s.exec(sentence) ?? []; // what it is about, such as an account or a file
  const own = rest && translated(rest);
  return own ? `${name}: ${own}` : null;
}

/** A sentence of the interface: translated where that is possible, and in which language it is then. */
export function told(sentence) {
  const own = translated(sentence);
  return own === null ? { text: sentence, lang: "en" } : { text: own, lang: undefined };
}

/** What went wrong, in words for a person: a whole sentence, without the name of the field that programs read first. */
export function said({ message }) {
  if (!message) return t("failed_text");
  const own = translated(message);
  if (own !== null) return own;
  const plain = message.replace(/^[a-z]\w*: /, "");
  return plain[0].toUpperCase() + plain.slice(1) + (/[.!?]$/.test(plain) ? "" : ".");
}

/** A text with its places filled; `n` decides between the forms for one and for many. */
export function t(name, values = {}) {
  const filled = (key) => (key === "n" ? count(values.n) : values[key]);
  return words[name].replace(/\{([^{}|]+)(?:\|([^{}]+))?\}/g, (_, one, many) => (!many ? filled(one) : values.n === 1 ? one : many));
}

/** What the interface calls something, in words; what is not known here as it came. */
export const named = (name) => (name in words ? t(name) : name);
