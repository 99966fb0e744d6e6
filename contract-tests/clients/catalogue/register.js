import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import {
  parseSIWxHeader,
  SOLANA_MAINNET,
  validateSIWxMessage,
  verifySIWxSignature,
} from '@x402/extensions/sign-in-with-x';

// A registry like x402scan's: it registers an origin for anyone whose signature the official package's verifier accepts.
const REGISTER = '/api/x402/registry/register-origin';
const { root = '', KEYPAIR = '', COINSLOT_URL = '' } = process.env;
const nonces = new Set();
const registered = [];
const refused = [];

function challenge(origin) {
  const nonce = randomBytes(16).toString('hex');
  nonces.add(nonce);
  const now = Date.now();
  const info = {
    domain: new URL(origin).host,
    uri: origin + REGISTER,
    version: '1',
    statement: 'Sign in to register an origin',
    nonce,
    issuedAt: new Date(now).toISOString(),
    expirationTime: new Date(now + 300_000).toISOString(),
    resources: [origin + REGISTER],
  };
  const supportedChains = [
    { chainId: 'eip155:8453', type: 'eip191' },
    { chainId: SOLANA_MAINNET, type: 'ed25519' },
  ];
  return { x402Version: 2, accepts: [], extensions: { 'sign-in-with-x': { info, supportedChains } } };
}

/** Why a header is refused; undefined if it is accepted. */
async function faultOf(header, origin) {
  const said = parseSIWxHeader(header);
  const checkNonce = nonce => nonces.delete(nonce);
  const fresh = await validateSIWxMessage(said, new URL(origin), { checkNonce });
  if (!fresh.isValid) return fresh.invalidReason;
  const signed = await verifySIWxSignature(said);
  return signed.isValid ? undefined : signed.invalidReason;
}

let tamper = header => header;
const server = createServer(async (request, response) => {
  const origin = `http://127.0.0.1:${server.address().port}`;
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const answer = (status, body) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  };
  if (request.method !== 'POST' || request.url !== REGISTER) return answer(404, { error: 'not found' });
  const header = request.headers['sign-in-with-x'];
  if (!header) return answer(402, challenge(origin));
  const fault = await faultOf(tamper(header), origin);
  if (fault) {
    refused.push(fault);
    return answer(401, { error: fault });
  }
  const { origin: shop } = JSON.parse(Buffer.concat(chunks).toString());
  const { paths } = await (await fetch(`${shop}/openapi.json`)).json();
  const paid = Object.values(paths)
    .flatMap(Object.values)
    .filter(each => each['x-payment-info']);
  registered.push(shop);
  return answer(200, {
    success: true,
    registered: paid.length,
    failed: 0,
    total: paid.length,
    source: 'openapi',
  });
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${server.address().port}`;

/** What the command reports about x402scan. */
function register() {
  const program = join(root, 'dist/src/cli/main.js');
  const words = ['list', COINSLOT_URL, '--register', '--keypair', KEYPAIR, '--x402scan', url, '--json'];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [program, ...words], { timeout: 60_000 }, (error, stdout, stderr) => {
      const lines = stdout.split('\n').filter(Boolean);
      const said = lines.map(line => JSON.parse(line)).find(({ directory }) => directory === 'x402scan');
      if (said) resolve(said);
      else reject(new Error(`${stderr}${stdout}${error}`));
    });
  });
}

try {
  const taken = await register();
  assert.equal(taken.state, 'listed', JSON.stringify(taken));
  assert.deepEqual(registered, [new URL(COINSLOT_URL).origin]);

  // The verifier must reject a text that differs by one letter from the one that was signed.
  tamper = header => {
    const said = JSON.parse(Buffer.from(header, 'base64').toString());
    const other = { ...said, statement: 'Sign in to register my origin' };
    return Buffer.from(JSON.stringify(other)).toString('base64');
  };
  const denied = await register();
  assert.equal(denied.state, 'not listed');
  assert.match(denied.found, /401: invalid_siwx_signature/);
  assert.deepEqual(refused, ['invalid_siwx_signature']);
} finally {
  server.closeAllConnections();
  server.close();
}
