// Asks the browser for a passkey, or for the signature of one, and sends what it answers with the form around it. Also
// sends the secret of a link from behind the # of the address, and takes it out of there.
"use strict";

for (const form of document.querySelectorAll("form[data-from-address]")) {
  const secret = location.hash.slice(1);
  if (secret) {
    history.replaceState(null, "", location.pathname);
    form.elements.secret.value = secret;
    form.submit();
  }
}

const bytes = (text) =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));

const text = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

const described = (list) => list.map((each) => ({ ...each, id: bytes(each.id) }));

async function answer(options) {
  const publicKey = { ...options, challenge: bytes(options.challenge) };
  const isNew = "user" in options;
  if (isNew) {
    publicKey.user = { ...options.user, id: bytes(options.user.id) };
    publicKey.excludeCredentials = described(options.excludeCredentials);
  } else {
    publicKey.allowCredentials = described(options.allowCredentials);
  }
  const made = isNew
    ? await navigator.credentials.create({ publicKey })
    : await navigator.credentials.get({ publicKey });
  const names = isNew ? ["clientDataJSON", "attestationObject"] : ["clientDataJSON", "authenticatorData", "signature"];
  if (made.response.userHandle) names.push("userHandle");
  const response = Object.fromEntries(names.map((name) => [name, text(made.response[name])]));
  return { id: made.id, rawId: text(made.rawId), type: made.type, response };
}

for (const form of document.querySelectorAll("form[data-options]")) {
  const button = form.querySelector("button");
  const failed = form.querySelector("[role=alert]");
  if (!window.PublicKeyCredential) {
    form.querySelector("[data-unsupported]").hidden = false;
    continue;
  }
  button.hidden = false;
  button.focus();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    failed.hidden = true;
    try {
      form.elements.passkey.value = JSON.stringify(await answer(JSON.parse(form.dataset.options)));
      form.submit();
    } catch {
      failed.hidden = false;
      button.disabled = false;
    }
  });
}
