import { expect } from 'chai';
import { MPP_HEADER_BYTES, shopMethods } from '../../../src/methods/shop-methods.js';
import { TERMS } from '../../support/charge-world.js';
import { mcp } from '../../support/mcp-call.js';
import { TestUpstream, UpstreamShop } from '../../support/upstream-shop.js';

const SECRETS = ['the secret of a shop whose tools are paid'] as const;
const META = 'io.modelcontextprotocol';
const PAYS = { experimental: { payment: { methods: { solana: { intents: ['charge'] } } } } };
type Json = Record<string, unknown>;

describe('mpp: paid tools', () => {
  let upstream: TestUpstream;
  let shop: UpstreamShop;

  before(async () => {
    upstream = await TestUpstream.open();
    const operations = [{ id: 'one', path: '/one', upstream: { url: `${upstream.url}/one` } }];
    const terms = { ...TERMS, otherMethodsBytes: MPP_HEADER_BYTES };
    shop = await UpstreamShop.open(
      operations,
      {},
      {
        methods: shopMethods(terms, { mpp: { secrets: SECRETS }, network: 'devnet' }),
      },
    );
  });
  after(async () => {
    await shop.close();
    upstream.close();
  });

  /** In 2025-11-25, the code of MPP's own error (-32042) has another meaning, and the library of 2026-07-28 refuses to send it. */
  it('return their price as a result with the challenge in its metadata, even to clients that declare that they pay by MPP', async () => {
    const current = {
      [`${META}/protocolVersion`]: '2026-07-28',
      [`${META}/clientInfo`]: { name: 'a test', version: '1' },
      [`${META}/clientCapabilities`]: PAYS,
    };
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'one' };
    const call = { name: 'one', arguments: {} };
    const answers = [
      await mcp(shop.url, 'tools/call', { ...call, _meta: current }, headers),
      await mcp(shop.url, 'tools/call', call),
    ];
    for (const { message } of answers) {
      expect(message.error).to.equal(undefined);
      const { structuredContent, _meta: meta } = message.result as { structuredContent: Json; _meta: Json };
      expect(structuredContent['x402Version']).to.equal(2);
      const [challenge] = meta['org.paymentauth/challenges'] as [{ request: Json }];
      expect(challenge.request).to.include({ amount: '10000', recipient: TERMS.payTo });
    }
  });

  it("are unchanged over HTTP: the x402 challenge is complete, and MPP's is added whole if it fits", async () => {
    const { headers } = await shop.call('/one', {});
    expect(headers.get('payment-required')).not.to.equal(null);
    expect(headers.get('www-authenticate')).to.match(/^Payment .*opaque="[\w-]+"$/);
    const long = 'https://shop.example/'.padEnd(1_600, 'a');
    const crowded = shopMethods(
      { ...TERMS, publicUrl: long, otherMethodsBytes: MPP_HEADER_BYTES },
      { mpp: { secrets: SECRETS }, network: 'devnet' },
    );
    const [operation] = shop.contract.paid;
    const whole = crowded.challenges(crowded.first, operation!, { feePayer: TERMS.payTo });
    expect(Object.keys(whole.headers)).to.deep.equal(['PAYMENT-REQUIRED']);
    expect(() =>
      JSON.parse(Buffer.from(whole.headers['PAYMENT-REQUIRED'] ?? '', 'base64').toString()),
    ).not.to.throw();
  });
});
