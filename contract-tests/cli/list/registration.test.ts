import { expect } from 'chai';
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { base58 } from '@scure/base';
import type { Json } from '../../../src/contract/json.js';
import type { Standing } from '../../../src/cli/list/directory.js';
import { listShop } from '../../../src/cli/list/list-shop.js';
import { signIn } from '../../../src/cli/list/sign-in-with-x.js';
import { textToSign } from '../../../src/sign-in/sign-in-text.js';
import { fakeShop, standIn, type Answer, type Call, type StandIn } from './stand-ins.js';

const MAINNET = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const ASKED = 'https://api.example.com/v1/register';

/** 64 bytes: seed and public key. */
function keyOf(seed?: Uint8Array): Uint8Array {
  const { d = '', x = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  return seed ?? Uint8Array.from([...Buffer.from(d, 'base64url'), ...Buffer.from(x, 'base64url')]);
}

const INFO = {
  domain: 'api.example.com',
  uri: 'https://api.example.com/v1/answers',
  version: '1',
  statement: 'List answers paid for by this wallet',
  nonce: 'a1b2c3d4e5f67890a1b2c3d4e5f67890',
  issuedAt: '2026-11-23T10:30:00.000Z',
  expirationTime: '2026-11-23T10:35:00.000Z',
  resources: ['https://api.example.com/v1/answers'],
};
const extension = (info: object = INFO, chains: object[] = [{ chainId: MAINNET, type: 'ed25519' }]) => ({
  info,
  supportedChains: chains,
});

describe('Signing in with a Solana key pair', () => {
  it('signs the same text as other implementations, byte for byte', () => {
    const seed = Buffer.alloc(32, 0x42);
    const publicKey = Buffer.from('2152f8d19b791d24453242e15f2eab6cb7cffa7b6a5ed30097960e069881db12', 'hex');
    const header = signIn(extension(), Uint8Array.from([...seed, ...publicKey]), ASKED);
    const said = JSON.parse(Buffer.from(header, 'base64').toString()) as Json;
    expect(said).to.deep.include({
      address: '3F5qRPtKg8GhGNnbd3qCj6nVJxWsGxq7pvH84okYLAqf',
      chainId: MAINNET,
      type: 'ed25519',
      signature: 'Cq9AsFjzpkKAthMFA7kaew51sNQkNH3bzzz35VR84V34uFfG4kokj9NXGAmBc8FKZKwWy6y1FUG5DCMWVsduEcm',
    });
  });

  const refused: [string, unknown, string][] = [
    [
      'another host',
      extension({ ...INFO, domain: 'evil.example' }),
      'for evil.example, not for api.example.com',
    ],
    ['a URI elsewhere', extension({ ...INFO, uri: 'https://evil.example/' }), 'which is not at http'],
    [
      'a line that was not meant',
      extension({ ...INFO, statement: 'Hello\nURI: https://x' }),
      "statement that can't",
    ],
    ['no nonce', extension({ ...INFO, nonce: undefined }), 'without nonce'],
    ['a text without end', extension({ ...INFO, statement: 'x'.repeat(2_000) }), "statement that can't"],
    ['other chains', extension(INFO, [{ chainId: 'eip155:8453' }]), 'only those of eip155:8453'],
    ['nothing', undefined, 'does not say what to sign'],
  ];
  for (const [what, asks, says] of refused)
    it(`is refused if the request is ${what}`, () => {
      expect(() => signIn(asks, keyOf(), ASKED)).to.throw(says);
    });
});

describe('coinslot list --register', () => {
  const open: StandIn[] = [];
  afterEach(() => {
    for (const each of open.splice(0)) each.close();
  });

  const challenge = (base: string): Answer => ({
    status: 402,
    body: {
      x402Version: 2,
      accepts: [],
      extensions: {
        'sign-in-with-x': extension({
          domain: new URL(base).host,
          uri: `${base}/api/x402/registry/register-origin`,
          version: '1',
          nonce: '0123456789abcdef',
          issuedAt: new Date().toISOString(),
        }),
      },
    },
  });

  /** Registers a shop at a registry like x402scan's, which says what to sign; `signed` answers the signed request. */
  async function registerAt(signed: (call: Call, said: Json) => Answer): Promise<{
    standing: Standing | undefined;
    failed: boolean;
    calls: Call[];
    shop: string;
  }> {
    const shop = await fakeShop();
    const registry = await standIn((call, base) => {
      if (call.path !== '/api/x402/registry/register-origin') return { status: 404 };
      const header = call.headers['sign-in-with-x'];
      if (typeof header !== 'string') return challenge(base);
      return signed(call, JSON.parse(Buffer.from(header, 'base64').toString()) as Json);
    });
    open.push(shop, registry);
    const { url } = registry;
    const directories = { coinbase: url, payai: url, x402scan: url, mcpRegistry: url };
    const { standings, failed } = await listShop({
      url: shop.url,
      directories,
      offline: false,
      secretKey: keyOf(),
    });
    const calls = registry.calls.filter(({ method }) => method === 'POST' && !url.endsWith('/validate'));
    const standing = standings.find(({ directory }) => directory === 'x402scan');
    return { standing, failed, calls: calls.filter(({ path }) => path.includes('register')), shop: shop.url };
  }

  it('sends a first request without a signature, and then registers the origin with a signed one', async () => {
    let proven = false;
    const { standing, calls, shop } = await registerAt((_call, said) => {
      const { address, signature, ...info } = said as { address: string; signature: string };
      const x = Buffer.from(base58.decode(address)).toString('base64url');
      const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
      const text = Buffer.from(textToSign(info, address));
      proven = verify(null, text, key, base58.decode(signature));
      return { body: { success: true, registered: 1, failed: 0, total: 1, source: 'openapi' } };
    });
    expect(proven).to.equal(true);
    expect(calls).to.have.length(2);
    expect(calls.map(({ body }) => JSON.parse(body) as object)).to.deep.equal([
      { origin: shop },
      { origin: shop },
    ]);
    expect(standing).to.deep.include({ state: 'listed', found: 'it registered all 1 operations' });
  });

  const refusals: [string, Answer, string][] = [
    [
      'nothing could be registered',
      {
        status: 422,
        body: {
          success: false,
          error: { type: 'no_valid_resources', message: 'No valid paid x402 resources' },
          result: {
            registered: 0,
            failedDetails: [{ url: 'https://shop.example/weather', error: 'no input schema' }],
          },
        },
      },
      'no input schema',
    ],
    [
      'the signature is not taken',
      { status: 401, body: { error: 'invalid_siwx_signature' } },
      'invalid_siwx_signature',
    ],
    ['it fails', { status: 500, headers: { 'content-type': 'text/html' }, body: '<h1>' }, 'it answered 500'],
    ['it asks for a signature again', { status: 402, body: {} }, 'it answered 402'],
  ];
  for (const [what, answer, says] of refusals)
    it(`reports a failure and its reason if ${what}`, async () => {
      const { standing, failed, calls } = await registerAt(() => answer);
      expect(`${standing?.found} ${standing?.next.join(' ')}`).to.contain(says);
      expect(standing?.state).to.equal('not listed');
      expect(failed).to.equal(true);
      expect(calls).to.have.length(2);
    });
});
