// From the address alone to every tool: node every_tool.mjs ADDRESS GENERATION MODE; prints what a person has to open.
import http from 'node:http'

const [address, generation, mode] = process.argv.slice(2)
const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
  generation === '2' ? await import('@modelcontextprotocol/client') : await oneX()

async function oneX() {
  return {
    ...(await import('@modelcontextprotocol/sdk/client/index.js')),
    ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')),
    ...(await import('@modelcontextprotocol/sdk/client/auth.js')),
  }
}

const server = http.createServer().listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const redirectUrl = `http://127.0.0.1:${server.address().port}/callback`
let comesBack

const authProvider = {
  redirectUrl,
  clientMetadata: {
    client_name: `TypeScript SDK ${generation}`,
    redirect_uris: [redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  clientInformation: () => authProvider.client,
  saveClientInformation: (client) => (authProvider.client = client),
  tokens: () => authProvider.saved,
  saveTokens: (tokens) => (authProvider.saved = tokens),
  saveCodeVerifier: (verifier) => (authProvider.verifier = verifier),
  codeVerifier: () => authProvider.verifier,
  redirectToAuthorization: (url) => {
    comesBack = new Promise((resolve) =>
      server.once('request', (request, response) => {
        response.setHeader('Connection', 'close').end('ok')
        resolve(new URL(request.url, redirectUrl).searchParams)
      }),
    )
    console.log('Open', url.href)
  },
}

const open = () => [
  new Client({ name: 'every_tool', version: '1' }, mode === 'auto' ? { versionNegotiation: { mode } } : {}),
  new StreamableHTTPClientTransport(new URL(address), { authProvider }),
]

let [client, transport] = open()
try {
  await client.connect(transport)
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error
  const answer = await comesBack
  await transport.finishAuth(answer.get('code'), answer.get('iss') ?? undefined)
  ;[client, transport] = open()
  await client.connect(transport)
}
console.log('version', client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion)
const { prompts } = await client.listPrompts()
for (const { name } of prompts) {
  const { messages } = await client.getPrompt({ name, arguments: {} })
  console.log('prompt', name, messages[0].content.text.length > 100 ? 'answered' : 'empty')
}
const { tools } = await client.listTools()
const rows = await client.callTool({ name: 'search_transactions', arguments: {} })
const given = {
  explain_figure: { kind: 'month', key: '2026-10' },
  get_transaction: { id: rows.structuredContent.transactions[0].ref },
  refresh_bank_data: { waitSeconds: 1 },
}
for (const { name } of tools) {
  const { isError, content } = await client.callTool({ name, arguments: given[name] ?? {} })
  console.log('tool', name, isError ? content[0].text : 'answered')
}
await client.close()
server.close()
