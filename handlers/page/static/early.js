// Runs before the first paint: a chosen theme must not flash in the colours of the device.
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // a browser that lets nobody keep anything: the colours of the device it is
}
