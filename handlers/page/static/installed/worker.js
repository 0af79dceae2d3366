/** Shows whatever is pushed to this browser, and opens what it is about. It keeps nothing and answers no request. */
const here = self.registration.scope;

self.addEventListener("push", (event) => event.waitUntil(show(event.data)));
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data));
});

/** A push that cannot be read is shown, too: browsers end subscriptions of those that show nothing. */
async function show(data) {
  let said;
  try {
    said = data.json();
  } catch {
    said = {};
  }
  const { title = "Banking Data Service", text = "", tag = "", link = here, lang = "", isSilent = false } = said ?? {};
  const icon = new URL("app-icon.png", here).href;
  await self.registration.showNotification(title, { body: text, tag, lang, icon, data: link, silent: isSilent, renotify: Boolean(tag) && !isSilent });
}

/** The window that shows this address already, or a new one; nothing of another place is opened. */
async function open(link) {
  const { href } = new URL(link, here);
  const address = href.startsWith(here) ? href : here;
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const shown = windows.find(({ url }) => url === address);
  await (shown ? shown.focus() : self.clients.openWindow(address));
}
