import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { expect } from 'chai';
import { jwtVerify } from 'jose';
import { readConfig } from '../../src/config.js';
import { ConfigFault } from '../../src/config/setting-reader.js';
import { cdpAuthorization } from '../../src/facilitators/cdp-token.js';
import { httpFacilitator, type Credentials } from '../../src/facilitators/http-facilitator.js';
import { DEVNET } from '../support/craft.js';
import { facilitatorRequest, FakeHttpFacilitator } from '../support/http-facilitator.js';

const FEE_PAYER = 'F'.repeat(44);
const SECRET = 'sk-very-secret-0123';
const REQUEST = facilitatorRequest(FEE_PAYER);

describe('credentials of a facilitator', () => {
  let fake: FakeHttpFacilitator;
  let host: string;

  beforeEach(async () => {
    fake = new FakeHttpFacilitator();
    ({ host } = new URL(await fake.open()));
    // Behaves like a service that repeats the request in its error.
    fake.reply = (request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const { authorization } = request.headers;
      response.end(JSON.stringify({ isValid: false, invalidReason: `no: ${authorization}`, kinds: [] }));
    };
  });
  afterEach(() => fake.close());

  /** Makes every kind of request once. @returns all strings that these requests produced */
  async function askAll(credentials: Credentials): Promise<string> {
    const facilitator = httpFacilitator(`http://${host}/platform/x402/`, undefined, credentials);
    const said = [
      await facilitator.supported(DEVNET).catch((error: unknown) => (error as Error).message),
      await facilitator.verify(REQUEST),
      await facilitator.settle(REQUEST),
    ];
    await facilitator.close();
    return JSON.stringify(said);
  }

  it('are sent as a plain header with every request, and never shown', async () => {
    const said = await askAll({ headers: { authorization: `Bearer ${SECRET}` } });
    expect(fake.seen.map(({ headers }) => headers.authorization)).to.deep.equal(
      Array.from({ length: 3 }, () => `Bearer ${SECRET}`),
    );
    expect(said).to.include('no: Bearer …').and.not.include(SECRET);
  });

  const ed25519 = generateKeyPairSync('ed25519');
  const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = ed25519.privateKey.export({ format: 'jwk' });
  const raw = Buffer.concat([Buffer.from(jwk.d!, 'base64url'), Buffer.from(jwk.x!, 'base64url')]);
  const keys: [string, string, string, KeyObject][] = [
    ['Ed25519', 'EdDSA', raw.toString('base64'), ed25519.publicKey],
    ['PEM', 'ES256', p256.privateKey.export({ format: 'pem', type: 'sec1' }).toString(), p256.publicKey],
    [
      'PEM on one line',
      'ES256',
      p256.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString().replaceAll('\n', '\\n'),
      p256.publicKey,
    ],
  ];
  for (const [kind, alg, secret, publicKey] of keys) {
    it(`for Coinbase (${kind}) are a newly signed token for each request, and none is shown`, async () => {
      const said = await askAll({ authorize: cdpAuthorization({ id: 'key-1', secret }) });
      const tokens = fake.seen.map(({ headers }) => String(headers.authorization).replace(/^Bearer /, ''));
      const nonces = new Set<unknown>();
      for (const [n, path] of ['/supported', '/verify', '/settle'].entries()) {
        const { payload, protectedHeader } = await jwtVerify(tokens[n]!, publicKey, {
          issuer: 'cdp',
          subject: 'key-1',
        });
        expect(payload['uris']).to.deep.equal([`${fake.seen[n]!.method} ${host}/platform/x402${path}`]);
        expect(payload.exp! - payload.nbf!).to.equal(120);
        expect(protectedHeader).to.include({ alg, kid: 'key-1', typ: 'JWT' });
        nonces.add(protectedHeader['nonce']);
      }
      expect(nonces.size).to.equal(3);
      for (const token of tokens) expect(said).to.not.include(token);
      expect(said).to.include('…');
    });
  }

  it('are refused, and not shown, if the secret is of another kind', () => {
    const other = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey;
    for (const secret of [SECRET, other.export({ format: 'pem', type: 'sec1' }).toString()])
      expect(() => cdpAuthorization({ id: 'k', secret }))
        .to.throw(TypeError, /neither an Ed25519 secret/)
        .with.property('message')
        .that.does.not.include(secret);
  });

  describe('in the configuration', () => {
    const GIVEN = {
      PAY_TO: '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4',
      SOLANA_RPC_URL: 'http://rpc',
      FACILITATOR_URL: 'https://a/x402,https://api.cdp.coinbase.com/platform/v2/x402',
      CDP_API_KEY_ID: 'id',
      CDP_API_KEY_SECRET: 'secret',
    };

    it("belong to the facilitator with the same number, and Coinbase's to its host", () => {
      const config = readConfig({
        ...GIVEN,
        FACILITATOR_1_HEADER: 'X-Api-Key: a:b c',
        FACILITATOR_1_RATE: '50',
      });
      expect(config.facilitators).to.deep.equal([
        { kind: 'http', url: 'https://a/x402', header: { name: 'x-api-key', value: 'a:b c' }, rate: 50 },
        {
          kind: 'http',
          url: 'https://api.cdp.coinbase.com/platform/v2/x402',
          cdp: { id: 'id', secret: 'secret' },
        },
      ]);
    });

    const faulty: [string, Record<string, string>, RegExp][] = [
      ['an invalid header', { FACILITATOR_1_HEADER: SECRET }, /FACILITATOR_1_HEADER: must be a header/],
      ['a rate of nothing', { FACILITATOR_2_RATE: '0' }, /FACILITATOR_2_RATE: '0' is not a whole number/],
      [
        'a number without an entry',
        { FACILITATOR_3_RATE: '5' },
        /FACILITATOR_3_RATE: FACILITATOR_URL has no/,
      ],
      ['Coinbase without its key', { CDP_API_KEY_SECRET: '' }, /CDP_API_KEY_ID and CDP_API_KEY_SECRET: must/],
    ];
    for (const [name, change, message] of faulty) {
      it(`${name} is an error that shows no secret`, () => {
        expect(() => readConfig({ ...GIVEN, ...change }))
          .to.throw(ConfigFault, message)
          .with.property('message')
          .that.does.not.include(SECRET);
      });
    }
  });
});
