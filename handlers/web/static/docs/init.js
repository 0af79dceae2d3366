// Starts Swagger UI on the contract this server serves; a file of its own, because the page allows no inline script.
// "Authorize" needs no registration: the page is a client of its own at the public address of the service.
"use strict";
(async () => {
  const redirect = new URL("docs/oauth2-redirect.html", location.href).href;
  const scopes = ["read:accounts", "read:transactions", "read:cashflow"];
  const CLIENT = "bankdata-documentation"; // auth/apps/clients.py
  const KEPT = "authorized";

  const answered = async (address, request) => {
    const answer = await fetch(address, request);
    if (!answer.ok) throw new Error(`${address} answered ${answer.status}`);
    return answer.json();
  };

  // Through a tunnel, say, the page has an address that its client does not have: it registers there (RFC 7591) and is
  // marked as not verified, like every app that anyone could be.
  const clientId = async () => {
    const { resource } = await answered(".well-known/oauth-protected-resource");
    if (new URL("../docs/oauth2-redirect.html", resource).href === redirect) return CLIENT;
    const known = sessionStorage.getItem("client_id");
    if (known) return known;
    const { client_id: registered } = await answered("oauth/register", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        client_name: "Interface documentation",
        redirect_uris: [redirect],
        grant_types: ["authorization_code", "refresh_token"],
        token_endpoint_auth_method: "none",
      }),
    });
    sessionStorage.setItem("client_id", registered);
    return registered;
  };

  // Tokens live as long as the tab: Swagger UI's own persistAuthorization would leave them in localStorage, on the disk
  // of whatever machine this is.
  const keep = (system) => sessionStorage.setItem(KEPT, JSON.stringify(system.authSelectors.authorized()));

  const signIn = () => ({
    wrapComponents: {
      // Clients are public: there is no secret to type, and no password manager shall offer one
      InitializedInput: (Input, { React }) => (given) =>
        given["data-name"] === "clientSecret" ? null : React.createElement(Input, given),
    },
    statePlugins: {
      auth: {
        wrapActions: {
          showDefinitions: (show) => async (definitions) => {
            if (definitions) {
              // registration may be closed: the person can still type the id of a client
              ui.initOAuth({
                clientId: await clientId().catch(() => ""),
                scopes,
                usePkceWithAuthorizationCodeGrant: true,
              });
            }
            return show(definitions);
          },
          persistAuthorizationIfNeeded: (_persist, system) => () => keep(system),
          logout: (forget, system) => (names) => {
            for (const name of names) {
              const signedIn = system.authSelectors.authorized().get(name)?.toJS();
              const token = signedIn?.token?.refresh_token; // of the whole grant (RFC 7009)
              const body = new URLSearchParams({ token: token ?? "", client_id: signedIn?.clientId ?? "" });
              if (token) fetch("oauth/revoke", { method: "POST", body, keepalive: true }).catch(() => {});
            }
            return forget(names);
          },
        },
      },
    },
  });

  // The contract names its addresses from the root of the service, which a proxy may serve under a path of its own.
  const below = (address) => new URL(`.${address}`, location.href).href;
  const contract = await fetch("api/openapi.json").then((answer) => answer.json()).catch(() => null);
  if (contract === null) {
    document.getElementById("interface").textContent = "The description cannot be loaded. Is the service still running?";
    return;
  }
  for (const server of contract.servers) server.url = below(server.url);
  for (const scheme of Object.values(contract.components.securitySchemes)) {
    for (const flow of Object.values(scheme.flows ?? {})) {
      for (const name of ["authorizationUrl", "tokenUrl", "refreshUrl"]) {
        if (flow[name]) flow[name] = below(flow[name]);
      }
    }
  }

  const ui = SwaggerUIBundle({
    spec: contract,
    dom_id: "#interface",
    deepLinking: true,
    displayRequestDuration: true,
    oauth2RedirectUrl: redirect,
    plugins: [signIn],
    onComplete: () => {
      const kept = sessionStorage.getItem(KEPT);
      if (kept) ui.authActions.restoreAuthorization({ authorized: JSON.parse(kept) });
    },
    validatorUrl: null, // no other host is asked
  });
})();
