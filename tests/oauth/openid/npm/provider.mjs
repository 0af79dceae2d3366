// The certified oidc-provider with one client, whose login and consent are answered without a page: the person is the
// `login` of the environment, and whoever asks for `prompt=login` is signed in anew.
import Provider from "oidc-provider";

const [port, redirectUri, kind] = process.argv.slice(2);
const isPublic = kind === "public";
const issuer = `http://127.0.0.1:${port}`;
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "bankdata",
      ...(isPublic ? {} : { client_secret: "a secret: with/every+sign%" }),
      token_endpoint_auth_method: isPublic ? "none" : kind,
      redirect_uris: [redirectUri],
      post_logout_redirect_uris: [redirectUri.replace("/oidc/callback", "/login")],
      backchannel_logout_uri: redirectUri.replace("/callback", "/logout"),
      backchannel_logout_session_required: true,
    },
  ],
  pkce: { required: () => true },
  claims: { openid: ["sub"], profile: ["preferred_username"], groups: ["groups"] },
  scopes: ["openid", "profile", "groups"],
  features: { backchannelLogout: { enabled: true }, devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: true } },
  fetch: (url, options) => fetch(url, { ...options, dispatcher: undefined }),
  findAccount: (_ctx, id) => ({
    accountId: id,
    claims: () => ({ sub: id, preferred_username: "eva", groups: ["family"] }),
  }),
  interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
  cookies: { keys: ["for tests"] },
  jwks: undefined,
});
provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith("/interaction/")) return next();
  const details = await provider.interactionDetails(ctx.req, ctx.res);
  let result;
  if (details.prompt.name === "login") {
    result = { login: { accountId: "eva-7" } };
  } else {
    const grant = new provider.Grant({ accountId: details.session.accountId, clientId: "bankdata" });
    grant.addOIDCScope("openid profile groups");
    result = { consent: { grantId: await grant.save() } };
  }
  await provider.interactionFinished(ctx.req, ctx.res, result, { mergeWithLastSubmission: true });
});
provider.listen(Number(port), "127.0.0.1", () => process.stdout.write("ready\n"));
