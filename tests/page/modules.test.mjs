// The parts of the page that compute: run by `node --test`, from tests/page/test_modules.py.
import assert from "node:assert/strict";
import { test } from "node:test";

const { STATIC } = process.env; // the modules as they are served
const format = await import(`${STATIC}/format.js`);
const words = await import(`${STATIC}/words.js`);

const as = (tag) => format.writeAs(tag.slice(0, 2), [tag]);
const plain = (text) => text.replaceAll(/[\u00a0\u202f]/g, " ");

test("a chosen layout says what was changed and keeps the rest", async () => {
  const { choiceOf, profileOf } = await import(`${STATIC}/chosen-layout.js`);
  const columns = [["Tag", "date"], ["@2", null], ["Wer", "name"], ["Wer#2", null], ["Menge", "amount"]];
  const layout = {
    columns: columns.map(([name, field]) => ({ name, field, example: "" })),
    sign: "unknown", currency: null, currencySource: "assumed", decimalMark: ",", dateFormats: ["DD.MM.YYYY", "DD.MM.YY"],
    profile: '{"header": ["tag"], "date": ["DD.MM.YYYY", "DD.MM.YY"], "debit_words": ["aus"], "credit_words": ["ein"]}',
  };
  const choice = choiceOf(layout);
  assert.deepEqual(choice, { fields: ["date", "", "name", "", "amount"], sign: "", words: "aus", currency: "", date: "DD.MM.YYYY / DD.MM.YY", decimal: "," });
  const fields = ["date", "id", "name", "name", "amount"];
  assert.deepEqual(JSON.parse(profileOf(layout, { ...choice, fields, sign: "turned", currency: "CHF", date: "MM/DD/YYYY" })), {
    header: ["tag"], date: ["MM/DD/YYYY"], decimal: ",", inverted: true, currency: "CHF",
    columns: { date: ["Tag"], id: [2], name: ["Wer", "Wer#2"], amount: ["Menge"] },
  });
  const said = profileOf(layout, { ...choice, fields: ["date", "indicator", "", "", "amount"], sign: "turned", words: "raus, weg" });
  assert.deepEqual(JSON.parse(said), {
    header: ["tag"], date: ["DD.MM.YYYY", "DD.MM.YY"], decimal: ",", inverted: false,
    columns: { date: ["Tag"], indicator: [2], amount: ["Menge"] }, debit_words: ["raus", "weg"], credit_words: ["ein"],
  });
  assert.equal(choiceOf({ ...layout, sign: "turned" }).sign, "turned");
});

test("an amount has a real minus sign and its currency's decimals", () => {
  as("en-GB");
  assert.equal(format.money(-1234.5, "EUR"), "−\u2060€1,234.50");
  assert.equal(format.money(12, "EUR", { signed: true }), "+\u2060€12.00");
  assert.equal(format.money(0, "EUR", { signed: true }), "€0.00");
  assert.equal(format.money(-0.001, "EUR"), "€0.00");
  assert.equal(format.money(1500, "JPY"), "JP¥1,500");
  as("de-DE");
  assert.equal(plain(format.money(-1234.5, "EUR")), "−\u20601.234,50 €");
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
  assert.deepEqual([format.month("2026-10"), format.monthInShort("2026-10")], ["October 2026", "Oct 2026"]);
  assert.deepEqual(format.onAxis(["2025-10", "2025-11", "2026-02", "2026-05"]), ["2025", "Nov", "2026", "May"]);
  as("de-DE");
  assert.equal(format.longDay("2026-11-19"), "Donnerstag, 19. November 2026");
});

test("months before a day stay within their month", () => {
  assert.equal(format.monthsBefore("2026-11-22", 12), "2025-11-22");
  assert.equal(format.monthsBefore("2024-02-29", 12), "2023-02-28");
  assert.equal(format.monthsBefore("2026-03-31", 1), "2026-02-28");
  assert.equal(format.monthsBefore("2026-12-01", -1), "2027-01-01");
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

test("one and many have their own forms", async () => {
  as("en-GB");
  await words.speak("en");
  await words.learn();
  assert.equal(words.t("rows", { n: 1 }), "1 transaction");
  assert.equal(words.t("rows", { n: 1652 }), "1,652 transactions");
  as("de-DE");
  await words.speak("de");
  await words.learn();
  assert.equal(words.t("rows", { n: 0 }), "0 Buchungen");
  assert.equal(words.named("DINING"), "Restaurant");
  assert.equal(words.named("something new"), "something new");
});

test("what is typed is an amount, words, or both; what is quoted is text", async () => {
  const { wanted } = await import(`${STATIC}/searched.js`);
  as("en-GB");
  const amount = (amountMin, amountMax = amountMin, direction = "", search = "") => ({ search, direction, amountMin, amountMax });
  for (const [typed, meant] of [
    ["12.99", amount("12.99")], ["12,9", amount("12.9")], [" -1.234,56 €", amount("1234.56", "1234.56", "out")],
    ["+1,234.56", amount("1234.56", "1234.56", "in")], ["1'234", amount("1234", "1234.99")], ["50", amount("50", "50.99")],
    ["0,50", amount("0.50")], ["EUR 50", amount("50", "50.99")], ["netflix 12,99", amount("12.99", "12.99", "", "netflix")],
    ["Filiale 50", { search: "Filiale 50" }], ["0049", { search: "0049" }], ["1234567", { search: "1234567" }],
    ['"50"', { search: "50" }], ["„12,99“", { search: "12,99" }], ["24.12.2026", { search: "24.12.2026" }], ["", { search: "" }],
    ["1 234,56", amount("1234.56")], ["rent 1 234,56", amount("1234.56", "1234.56", "", "rent")], ["12.345", { search: "12.345" }], ["12,345", amount("12345", "12345.99")],
  ]) assert.deepEqual(wanted(typed), meant, typed);
});

test("an amount is typed with the signs of any language, and never taken for a thousand times as much", () => {
  const read = (typed, currency) => {
    const amount = format.typedAmount(typed, currency);
    assert.equal(new RegExp(`^(?:${format.amountPattern(currency)})$`, "v").test(typed.trim()), !Number.isNaN(amount), typed); // as browsers read it
    return amount;
  };
  for (const tag of ["en-GB", "de-DE", "fr-FR", "de-CH"]) {
    as(tag);
    for (const [typed, meant] of [
      ["1234,56", 1234.56], ["1234.56", 1234.56], ["1.234,56", 1234.56], ["1,234.56", 1234.56], ["1 234,56", 1234.56], ["1\u202f234,56", 1234.56],
      ["1'234.56", 1234.56], ["1’234", 1234], ["12,5", 12.5], ["1.234.567", 1234567], ["-0,05", -0.05], ["\u2212\u206012", -12], [" 700 ", 700], ["0", 0],
    ]) assert.equal(read(typed), meant, `${tag} ${typed}`);
    for (const typed of ["", "12,", "1,2,3", "1.23.456", "zwölf", "1e3", "12.345,678", "1,234,56", "1 234 56"]) assert.equal(read(typed), NaN, `${tag} ${typed}`);
  }
  const { NaN: unclear } = globalThis;
  for (const [tag, point, comma] of [["en-GB", unclear, 12345], ["de-DE", 12345, unclear], ["fr-FR", unclear, unclear], ["de-CH", unclear, unclear]]) {
    as(tag);
    assert.deepEqual([read("12.345"), read("12,345"), read("-12.345")], [point, comma, -point], tag);
  }
  as("en-GB");
  assert.deepEqual([read("12.345", "KWD"), read("1,234.567", "KWD"), read("12,345", "KWD")], [12.345, 1234.567, 12345]);
  as("de-DE");
  assert.deepEqual([read("12,345", "KWD"), read("12.345", "KWD")], [12.345, 12345]);
  assert.deepEqual([1234.5, 0, null].map(format.asTyped), ["1234,5", "0", ""]);
  as("en-GB");
});

test("a chart has every month, those without a booking too", async () => {
  const { daysOf, everyMonth } = await import(`${STATIC}/searched.js`);
  const group = (key) => ({ key, income: 0, expenses: 1, net: -1, count: 1 });
  assert.deepEqual(everyMonth([]), []);
  assert.deepEqual(
    everyMonth([group("2025-11"), group("2026-02")]).map(({ month, expenses }) => [month, expenses]),
    [["2025-11", 1], ["2025-12", 0], ["2026-01", 0], ["2026-02", 1]],
  );
  assert.deepEqual(daysOf("2028-02"), { period: "other", from: "2028-02-01", to: "2028-02-29" });
});

test("the lines across a chart are whole amounts, each another one", async () => {
  const { ticks } = await import(`${STATIC}/charts.js`);
  assert.deepEqual(ticks(0, 0), [0, 1]);
  assert.deepEqual(ticks(0, 10), [0, 5, 10]);
  assert.deepEqual(ticks(-12.99, 0), [-15, -10, -5, 0]);
  assert.deepEqual(ticks(0, 100), [0, 25, 50, 75, 100]);
});

test("the size of an empty file is nothing", () => {
  as("en-GB");
  assert.equal(format.size(0), "0 kB");
  assert.equal(format.size(12), "1 kB");
  assert.equal(format.size(1_250_000), "1.3 MB");
});

test("a payment comes as often as it is due, an overdue one first", () => {
  const weekly = { id: "w", comingCharges: ["2026-11-24T00:00:00.000Z", "2026-12-01T00:00:00.000Z"] };
  const late = { id: "l", comingCharges: ["2026-11-20T00:00:00.000Z"] };
  assert.deepEqual(
    format.comingUp([weekly, late, { id: "y", comingCharges: [] }], "2026-11-22").map(([{ id }, , days]) => [id, days]),
    [["l", -2], ["w", 2], ["w", 9]],
  );
});

test("what the interface refuses is a sentence without the name of a field", async () => {
  await words.speak("en");
  assert.equal(words.said({ status: 400, message: "perPage: must be at most 100" }), "Must be at most 100.");
  assert.equal(words.said({ status: 400, message: "Dieses Konto gibt es nicht (mehr)" }), "Dieses Konto gibt es nicht (mehr).");
  assert.equal(words.said({ status: 400, message: "" }), words.t("failed_text"));
  assert.equal(words.said({ status: 500, message: "Internal error" }), words.t("failed_inside"));
});

test("money that does not last says since when, and because of what", async () => {
  globalThis.BroadcastChannel = undefined; // it would keep this process alive
  const { below } = await import(`${STATIC}/forecast.js`);
  await words.learn();
  as("en-GB");
  const days = [["2026-12-01", 20], ["2026-12-02", -14.1], ["2026-12-03", -40]].map(([date, expected]) => ({ date, expected }));
  const events = [["2026-12-01", -900, "Rent"], ["2026-12-02", -4.1, "Fee"], ["2026-12-02", -25, "Gas"], ["2026-12-03", -30, "Gym"]];
  const of = { balance: 945, currency: "EUR", days, events: events.map(([date, amount, name]) => ({ date, amount, name })) };
  assert.equal(below(of, "2026-11-30"), "It falls below zero on 2 Dec, with Gas (−\u2060€25.00).");
  assert.equal(below({ ...of, events: [] }, "2026-11-30"), "It falls below zero on 2 Dec, through everyday spending.");
  assert.equal(below({ ...of, balance: -1 }, "2026-11-30"), "It is below zero now.");
});
