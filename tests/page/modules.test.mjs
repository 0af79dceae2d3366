// The parts of the page that compute: run by `node --test`, from tests/page/test_modules.py.
import assert from "node:assert/strict";
import { test } from "node:test";

const STATIC = "../../handlers/page/static";
const format = await import(`${STATIC}/format.js`);
const words = await import(`${STATIC}/words.js`);

const as = (tag) => format.writeAs(tag.slice(0, 2), [tag]);
const plain = (text) => text.replaceAll(/[\u00a0\u202f]/g, " ");

test("an amount has a real minus sign and its currency's decimals", () => {
  as("en-GB");
  assert.equal(format.money(-1234.5, "EUR"), "−€1,234.50");
  assert.equal(format.money(12, "EUR", { signed: true }), "+€12.00");
  assert.equal(format.money(0, "EUR", { signed: true }), "€0.00");
  assert.equal(format.money(-0.001, "EUR"), "€0.00");
  assert.equal(format.money(1500, "JPY"), "JP¥1,500");
  as("de-DE");
  assert.equal(plain(format.money(-1234.5, "EUR")), "−1.234,50 €");
  as("de-CH");
  assert.match(plain(format.money(1234.5, "CHF")), /^CHF 1['’]234\.50$/);
});

test("sums are of whole cents", () => {
  assert.equal(format.sum([0.1, 0.2], "EUR"), 0.3);
  assert.equal(format.sum([1.005, 2.675], "KWD"), 3.68);
  assert.equal(format.sum([100, 50], "JPY"), 150);
  assert.equal(format.sum([], "EUR"), 0);
});

test("a day is the bank's, wherever the browser is", () => {
  assert.equal(process.env.TZ, "America/Los_Angeles");
  as("en-GB");
  assert.equal(format.day("2026-11-01T00:00:00.000Z"), "1 Nov 2026");
  assert.equal(format.shortDay("2026-11-01", "2026-11-22"), "1 Nov");
  assert.equal(format.shortDay("2025-11-01", "2026-11-22"), "1 Nov 2025");
  assert.equal(format.month("2026-10"), "October 2026");
  assert.deepEqual([format.shortMonth("2026-01"), format.shortMonth("2026-10")], ["2026", "Oct"]);
  as("de-DE");
  assert.equal(format.longDay("2026-11-19"), "Donnerstag, 19. November 2026");
});

test("months before a day stay within their month", () => {
  assert.equal(format.monthsBefore("2026-11-22", 12), "2025-11-22");
  assert.equal(format.monthsBefore("2024-02-29", 12), "2023-02-28");
  assert.equal(format.monthsBefore("2026-03-31", 1), "2026-02-28");
  assert.equal(format.daysBefore("2026-03-01", 29), "2026-01-31");
  assert.equal(format.daysBetween("2026-10-20", "2026-11-20"), 31);
});

test("how long ago and in how many days is said in the language", () => {
  as("en-GB");
  const now = Date.parse("2026-11-22T12:00:00Z");
  assert.equal(format.ago("2026-11-22T11:00:00Z", now), "1 hour ago");
  assert.equal(format.ago("2026-11-22T11:59:50Z", now), "now");
  assert.equal(format.inDays(1), "tomorrow");
  as("de-DE");
  assert.equal(format.ago("2026-11-20T12:00:00Z", now), "vorgestern");
});

test("the language is the chosen one, else the browser's, else English", () => {
  assert.equal(format.chosenLanguage("de", ["en-GB"]), "de");
  assert.equal(format.chosenLanguage(null, ["fr-FR", "de-AT", "en"]), "de");
  assert.equal(format.chosenLanguage("xx", ["fr-FR"]), "en");
});

test("both languages have the same words, with the same places to fill in and the same forms", async () => {
  const [english, german] = await Promise.all(["en", "de"].map((name) => import(`${STATIC}/words-${name}.js`)));
  assert.deepEqual(Object.keys(english.default), Object.keys(german.default));
  const shape = (text) => [[...new Set(text.match(/\{\w+\}/g))].sort().join(), text.split(" | ").length];
  for (const [name, text] of Object.entries(english.default)) assert.deepEqual(shape(text), shape(german.default[name]), name);
});

test("one and many have their own forms", async () => {
  as("en-GB");
  await words.speak("en");
  assert.equal(words.t("n_transactions", { n: 1 }), "1 transaction");
  assert.equal(words.t("n_transactions", { n: 1652 }), "1,652 transactions");
  as("de-DE");
  await words.speak("de");
  assert.equal(words.t("n_transactions", { n: 0 }), "0 Umsätze");
  assert.equal(words.named("DINING"), "Restaurant");
  assert.equal(words.named("something new"), "something new");
});

test("sentences of the interface are said in German where they are known, and as they came where not", async () => {
  await words.speak("de");
  assert.deepEqual(words.told("The ISO 20022 purpose code SALA says so."), { text: "Der ISO-20022-Zweckcode SALA besagt es.", lang: undefined });
  assert.equal(
    words.told("The IBAN of the other side is that of another account of yours; it is left out where both accounts are selected.").text,
    "Die IBAN der Gegenseite ist die eines anderen Ihrer Konten; wo beide Konten gewählt sind, zählt sie nicht.",
  );
  assert.deepEqual(words.told("Field 61 is missing."), { text: "Field 61 is missing.", lang: "en" });
  await words.speak("en");
  assert.deepEqual(words.told("The file is empty."), { text: "The file is empty.", lang: "en" });
});
