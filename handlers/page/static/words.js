/** The words of the page in the language that is spoken; each language is a file of its own, and only one is loaded. */
import { count } from "./format.js";

let language = "en";
let words = {};
const learning = new Map(); // files of further words, which come with the first place that may say one of them

/** Speak this language, `en` or `de`, from now on. */
export async function speak(chosen) {
  language = chosen;
  words = {};
  learning.clear();
  await known(`words-${language}`);
}

/** The language that is spoken: the interface is asked for its sentences in it. */
export const spoken = () => language;

/** Know the words of all places from now on. */
export const learn = () => known(`more-words-${language}`);

function known(file) {
  if (!learning.has(file)) {
    const learnt = import(`./${file}.js`).then(
      (more) => {
        words = { ...words, ...more.default };
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

/** What went wrong, in words for a person: a whole sentence, without the name of the field that programs read first. */
export function said({ status, message }) {
  if (!message) return t("failed_text");
  if (status === 500) return t("failed_inside");
  const plain = message.replace(/^[a-z]\w*: /, "");
  return plain[0].toUpperCase() + plain.slice(1) + (/[.!?]$/.test(plain) ? "" : ".");
}

/** A text with its places filled; `n` decides between the forms for one and for many. */
export function t(name, values = {}) {
  const filled = (key) => (key === "n" ? count(values.n) : values[key]);
  return words[name].replace(/\{([^{}|]+)(?:\|([^{}]+))?\}/g, (_, one, many) => (!many ? filled(one) : new Intl.PluralRules(language).select(values.n) === "one" ? one : many));
}

/** What the interface calls something, in words; what is not known here as it came. */
export const named = (name) => (name in words ? t(name) : name);
