// Starts Swagger UI on the contract this server serves; a file of its own, because the page allows no inline script.
// "Authorize" registers this page as an OAuth client (RFC 7591), once per tab, so that a person only has to sign in.
"use strict";
(async () => {
  const redirect = new URL("docs/oauth2-redirect.html", location.href).href;
  const scopes = ["read:accounts", "read:transactions", "read:cashflow"];

  const registeredClient = async () => {
    const known = sessionStorage.getItem("client_id");
    if (known) return known;
    const answer = await fetch("oauth/register", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        client_name: "Interface documentation",
        redirect_uris: [redirect],
        grant_types: ["authorization_code", "refresh_token"],
        token_endpoint_auth_method: "none",
      }),
    });
    if (!answer.ok) return ""; // registration may be closed: the person can still type the id of a client
    const { client_id: clientId } = await answer.json();
    sessionStorage.setItem("client_id", clientId);
    return clientId;
  };

  const signIn = () => ({
    statePlugins: {
      auth: {
        wrapActions: {
          showDefinitions: (show) => async (definitions) => {
            if (definitions) {
              const clientId = await registeredClient().catch(() => "");
              ui.initOAuth({ clientId, scopes, usePkceWithAuthorizationCodeGrant: true });
            }
            return show(definitions);
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
    validatorUrl: null, // no other host is asked
  });
})();
