/** Settings: how the page looks and speaks, who is signed in, and the way to apps, password and interface. */
import { Accounts } from "./accounts.js";
import { change, useRead } from "./api.js";
import { currencyName, languageName, languages } from "./format.js";
import { undone } from "./correction.js";
import { placeIn, useNames } from "./own-categories.js";
import { Card, Choice, Facts, Line, Loaded, Place, Segments, SignOut, tried } from "./parts.js";
import { AUTH_URL, address } from "./place.js";
import { Rules } from "./rules.js";
import { html, useState } from "./ui.js";
import { t } from "./words.js";

/** What is kept on this device, and nothing else is: theme and language. */
function useKept(name, apply = () => {}) {
  const [value, setValue] = useState(localStorage.getItem(name) ?? "auto");
  const choose = (chosen) => {
    if (chosen === "auto") localStorage.removeItem(name);
    else localStorage.setItem(name, chosen);
    dispatchEvent(new Event("choice")); // early.js
    setValue(chosen);
    apply();
  };
  return [value, choose];
}

export default function Settings({ person }) {
  return html`<${Place} title=${t("settings")}>
    <div class="settings">
      <${Appearance} />
      <${You} person=${person} />
      ${person.accounts.length > 0 && html`<${Accounts} person=${person} />`}
      <${Card} title=${t("telling")}>
        <p class="soft">${t("telling_text")}</p>
        <p class="buttons"><a class="button" href=${address("/notices")}>${t("telling_open")}</a></p>
      <//>
      <${Corrections} />
      <${Rules} />
      <${Card} title=${t("apps")}>
        <p class="soft">${t("apps_text")}</p>
        <p class="buttons"><a class="button" href="${AUTH_URL}/account" data-leaves>${t("open_account")}</a></p>
      <//>
      <${Card} title=${t("for_programs")}>
        <p class="soft">${t("for_programs_text")}</p>
        <p class="buttons"><a class="button" href=${address("/docs")} data-leaves>${t("open_docs")}</a></p>
      <//>
    </div>
  <//>`;
}

function Appearance() {
  const [theme, setTheme] = useKept("theme");
  const [language, setLanguage] = useKept("language", () => location.reload());
  return html`<${Card} title=${t("appearance")}>
    <div class="field"><span class="label">${t("theme")}</span>
      <${Segments} legend=${t("theme")} value=${theme} onChoose=${setTheme}
        options=${[["auto", t("theme_auto")], ["light", t("theme_light")], ["dark", t("theme_dark")]]} />
    </div>
    <div class="field"><span class="label">${t("language")}</span>
      <${Segments} legend=${t("language")} value=${language} onChoose=${setLanguage}
        options=${[["auto", t("language_auto")], ...languages.map((code) => [code, languageName(code)])]} />
    </div>
  <//>`;
}

/** The person's corrections, each with its undo. */
function Corrections() {
  const list = useRead("/corrections");
  const name = useNames();
  return html`<${Card} title=${t("corrections")}>
    <${Loaded} of=${list}>${({ corrections }) =>
      corrections.length === 0
        ? html`<p class="soft">${t("corrections_none")}</p>`
        : html`<ul class="plain">${corrections.map(({ id, name: whose, matching, ...place }) => html`<${Line} key=${id} title=${whose} about="${name(placeIn(place))} · ${t("rows", { n: matching })}">
            <button type="button" aria-label="${t("undo")}: ${whose}" onClick=${() => undone(id)}>${t("undo")}</button>
          <//>`)}</ul>`}<//>
  <//>`;
}

// Those of the European Central Bank's reference rates; another one is refused with a sentence
const CURRENCIES = "AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF IDR ILS INR ISK JPY KRW MXN MYR NOK NZD PHP PLN RON SEK SGD THB TRY USD ZAR";

function You({ person: { profile } }) {
  const { homeCurrency } = profile;
  const currencies = [...new Set([homeCurrency, ...CURRENCIES.split(" ")])].map((code) => [code, currencyName(code)]);
  const choose = (chosen) => tried(() => change("PATCH", "/profile", { body: { homeCurrency: chosen } }), () => t("changed"));
  return html`<${Card} title=${t("you")}>
    <${Facts} facts=${[["signed_in_as", profile.name], ["time_zone", profile.timeZone]]} />
    <div class="field"><span class="label">${t("home_currency")}</span><p class="soft small">${t("home_currency_text")}</p>
      <${Choice} name=${t("home_currency")} value=${homeCurrency} options=${currencies} onChoose=${choose} />
    </div>
    <p class="buttons"><${SignOut} /></p>
  <//>`;
}
