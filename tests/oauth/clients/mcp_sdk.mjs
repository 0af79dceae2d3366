import http from 'node:http'
import { auth, refreshAuthorization, extractWWWAuthenticateParams } from '@modelcontextprotocol/sdk/client/auth.js'

const BASE = 'http://127.0.0.1:8000'
const server = http.createServer().listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const redirectUri = `http://127.0.0.1:${server.address().port}/callback`
let comesBack

const provider = {
  redirectUrl: redirectUri,
  clientMetadata: {
    client_name: 'MCP TypeScript SDK',
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  clientInformation: () => provider.client,
  saveClientInformation: (client) => (provider.client = client),
  tokens: () => provider.saved,
  saveTokens: (tokens) => (provider.saved = tokens),
  saveCodeVerifier: (verifier) => (provider.verifier = verifier),
  codeVerifier: () => provider.verifier,
  redirectToAuthorization: (url) => {
    comesBack = new Promise((resolve) =>
      server.once('request', (request, response) => {
        response.setHeader('Connection', 'close').end('ok')
        resolve(new URL(request.url, redirectUri).searchParams)
      }),
    )
    console.log('Open', url.href)
  },
}

const get = (path) =>
  fetch(`${BASE}/api/v1/${path}`, {
    headers: provider.saved ? { Authorization: `Bearer ${provider.saved.access_token}` } : {},
  })

async function connect(challenged) {
  const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(challenged)
  provider.saved = undefined
  await auth(provider, { serverUrl: `${BASE}/api/v1`, resourceMetadataUrl, scope })
  const answer = await comesBack
  const iss = answer.get('iss') ?? undefined
  await auth(provider, { serverUrl: `${BASE}/api/v1`, resourceMetadataUrl, scope, authorizationCode: answer.get('code'), iss })
}

await connect(await get('accounts'))
console.log('accounts', (await get('accounts')).status)
const before = provider.saved
provider.saved = await refreshAuthorization(BASE, {
  metadata: await (await fetch(`${BASE}/.well-known/oauth-authorization-server`)).json(),
  clientInformation: provider.client,
  refreshToken: before.refresh_token,
  resource: new URL(`${BASE}/api/v1`),
})
console.log('refreshed', provider.saved.refresh_token !== before.refresh_token)
await connect(await get('cashflow'))
console.log('stepped up', (await get('cashflow')).status)
server.close()
