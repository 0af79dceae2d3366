/** The words of the page in the language that is spoken; each language is a file of its own, and only one is loaded. */
import { count } from "./format.js";

let words = {};

/** Speak this language, `en` or `de`, from now on. */
export async function speak(language) {
  words = (await import(`./words-${language}.js`)).default;
}

/** A text with its places filled; `n` decides between the forms for one and for many. */
export function t(name, values = {}) {
  const forms = words[name].split(" | ");
  const form = forms.length > 1 && values.n !== 1 ? forms[1] : forms[0];
  return form.replace(/\{(\w+)\}/g, (_, key) => (key === "n" ? count(values.n) : values[key]));
}

/** What the interface calls something, in words; what is not known here as it came. */
export const named = (name) => (name in words ? t(name) : name);
