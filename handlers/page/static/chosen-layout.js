/** What a person says of the columns of a CSV file, and the profile in which the interface is told so. */

/** What a layout says, as a person may change it: of each column its field, of the days one format or those that it has. */
export function choiceOf({ columns, sign, currency, dateFormats, decimalMark, profile }) {
  return {
    fields: columns.map(({ field }) => field ?? ""),
    sign: sign === "turned" ? sign : sign === "unknown" ? "" : "written",
    words: (JSON.parse(profile).debit_words ?? []).join(", "),
    currency: currency ?? "",
    date: dateFormats.join(" / "),
    decimal: decimalMark,
  };
}

/** Which amounts were spent is asked where no column says it. */
export const asksSign = ({ fields }) => fields.includes("amount") && !fields.includes("indicator");

/** The profile that says what was chosen, as the interface takes it: everything else as the layout says. */
export function profileOf(layout, choice) {
  const profile = JSON.parse(layout.profile);
  profile.columns = {};
  layout.columns.forEach(({ name }, place) => {
    const field = choice.fields[place];
    if (field) (profile.columns[field] ??= []).push(/^@\d+$/.test(name) ? Number(name.slice(1)) : name);
  });
  if (choice.fields.includes("indicator")) profile.debit_words = choice.words.split(",").map((word) => word.trim());
  else for (const said of ["debit_words", "credit_words"]) delete profile[said];
  if (choice.date !== choiceOf(layout).date) profile.date = [choice.date];
  if (choice.currency) profile.currency = choice.currency;
  return JSON.stringify({ ...profile, decimal: choice.decimal, inverted: asksSign(choice) && choice.sign === "turned" });
}
