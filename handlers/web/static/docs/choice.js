// Before the first paint: the colours and the language that a person has chosen on the page, which keeps them in this browser.
"use strict";
(() => {
  const kept = (name) => {
    try {
      return localStorage.getItem(name);
    } catch {
      return null; // a browser that lets nobody keep anything
    }
  };
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = kept("theme");
  if (theme) root.dataset.theme = theme;
  const follow = () => root.classList.toggle("dark-mode", theme ? theme === "dark" : dark.matches);
  dark.addEventListener("change", follow);
  follow();
  const spoken = kept("language") ?? navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => tag === "en" || tag === "de");
  addEventListener("DOMContentLoaded", () => {
    if (spoken !== "de") return;
    const said = document.createElement("p");
    said.lang = "de";
    said.textContent = "Die Beschreibung der Schnittstelle gibt es nur auf Englisch.";
    document.querySelector(".masthead").append(said);
  });
})();
