import http from 'node:http'
import * as client from 'openid-client'

const BASE = 'http://127.0.0.1:8000'
const server = http.createServer().listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const redirectUri = `http://127.0.0.1:${server.address().port}/callback`
const comesBack = () =>
  new Promise((resolve) =>
    server.once('request', (request, response) => {
      response.setHeader('Connection', 'close').end('ok')
      resolve(new URL(request.url, redirectUri))
    }),
  )

const config = await client.dynamicClientRegistration(
  new URL(BASE),
  { client_name: 'openid-client', redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' },
  client.None(),
  { algorithm: 'oauth2', execute: [client.allowInsecureRequests] },
)

async function connect(scope) {
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const expectedState = client.randomState()
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope,
    state: expectedState,
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
  })
  const answer = comesBack()
  console.log('Open', url.href)
  return client.authorizationCodeGrant(config, await answer, { pkceCodeVerifier, expectedState })
}

const get = async (token, path) =>
  (await client.fetchProtectedResource(config, token, new URL(`${BASE}/api/v1/${path}`), 'GET')).status

const tokens = await connect('read:accounts')
console.log('accounts', await get(tokens.access_token, 'accounts'))
const next = await client.refreshTokenGrant(config, tokens.refresh_token)
console.log('refreshed', next.refresh_token !== tokens.refresh_token)
const wider = await connect('read:accounts read:cashflow')
console.log('stepped up', await get(wider.access_token, 'cashflow'))
await client.tokenRevocation(config, wider.refresh_token)
server.close()
