// Runs before the first paint: a chosen theme must not flash in the colours of the device. The pages that the server renders
// know what was chosen by cookies (handlers/oauth/languages.py).
const follow = () => {
  try {
    for (const name of ["theme", "language"]) {
      const kept = localStorage.getItem(name);
      document.cookie = `bds_${name}=${kept ?? ""}; path=/; max-age=${kept ? 31_536_000 : 0}; samesite=lax`;
      if (name === "theme" && kept) document.documentElement.dataset.theme = kept;
      else if (name === "theme") delete document.documentElement.dataset.theme;
    }
  } catch {
    // a browser that lets nobody keep anything: the colours and the language of the device it is
  }
};
addEventListener("choice", follow);
follow();
