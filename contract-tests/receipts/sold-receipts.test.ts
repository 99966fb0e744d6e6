import { expect } from 'chai';
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../src/contract/fingerprint.js';
import type { Json } from '../../src/contract/json.js';
import { MAX_HEADER_BYTES } from '../../src/methods/header-bytes.js';
import { receiptsIn } from '../../src/receipts/find-receipts.js';
import { publishedKey } from '../../src/receipts/resolve-did.js';
import { contradictions, verifyReceipt, type Verified } from '../../src/receipts/verify-receipt.js';
import { anotherText, callTool, paid, payloadOf } from '../support/mcp-call.js';
import { call, openWorld, post, receiptOf, signFor, type Answer, type World } from '../support/world.js';

const sha256 = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex');

describe('a sale is answered with signed receipts', () => {
  let world: World;
  let network: string;
  before(async function () {
    this.timeout(60_000);
    world = await openWorld();
    network = world.sandbox.info.network;
  });
  after(() => world.close());

  const headersOf = ({ headers }: Answer): string =>
    [...headers].map(([name, value]) => `${name}: ${value}`).join('\r\n');

  /** Verifies the receipts as a buyer does, with the keys that the server publishes. */
  const verified = async (text: string): Promise<[receipt: Verified, answer: Verified]> => {
    const all = await Promise.all(
      receiptsIn(text).map(each => verifyReceipt(each, kid => publishedKey(kid, true))),
    );
    expect(all.map(({ kind }) => kind)).to.have.members(['receipt', 'answer receipt']);
    const of = (kind: Verified['kind']): Verified => all.find(each => each.kind === kind)!;
    return [of('receipt'), of('answer receipt')];
  };

  for (const version of [2, 1] as const)
    it(`over HTTP, x402 v${version}, that name the payer, the URL, the request and the answer`, async () => {
      const asked = anotherText();
      const signed = await signFor(world, '/v1/summarize', version);
      const before = Math.floor(Date.now() / 1000);
      const bought = await post(`${world.url}/v1/summarize`, asked, signed);
      expect(bought.status).to.equal(200);
      const [receipt, answer] = await verified(headersOf(bought));
      const resourceUrl = `${world.url}/v1/summarize`;
      const payer = world.sandbox.info.buyer;
      const { issuedAt, ...fields } = receipt.payload;
      expect(fields).to.deep.equal({ version: 1, network, resourceUrl, payer });
      expect(issuedAt).to.be.within(before, before + 60);
      expect({ ...answer.payload, issuedAt: 0 }).to.deep.equal({
        ...{ version: 1, network, resourceUrl, payer, issuedAt: 0 },
        operation: 'summarize',
        amount: '10000',
        transaction: receiptOf(bought).transaction,
        requestSha256: sha256(`summarize\n${canonicalJson(asked)}`),
        answerStatus: 200,
        answerSha256: sha256(bought.body),
      });
      expect(contradictions(answer, { answer: bought.body, request: asked })).to.deep.equal([]);
      expect(contradictions(answer, { answer: Buffer.from('another') })).to.have.length(1);
      expect(contradictions(answer, { request: anotherText() })).to.have.length(1);
      expect(Buffer.byteLength(headersOf(bought))).to.be.lessThan(MAX_HEADER_BYTES);
    });

  it('over MCP, and again when the answer is fetched or the payment is sent again, over HTTP or MCP', async () => {
    const asked = anotherText();
    const signed = await signFor(world, '/v1/summarize');
    const bought = await callTool(world.url, 'summarize', asked, paid(payloadOf(signed)));
    const [, answer] = await verified(JSON.stringify(bought._meta));
    const text = Buffer.from(bought.content[0]?.text ?? '');
    expect(contradictions(answer, { answer: text, request: asked })).to.deep.equal([]);
    const { key, url } = bought._meta?.['coinslot/pick-up'] as { key: string; url: string };
    const fetched = await call(url);
    const again = await post(`${world.url}/v1/summarize`, asked, signed);
    const pickedUp = await callTool(world.url, 'pick_up', { key });
    for (const text of [headersOf(fetched), headersOf(again), JSON.stringify(pickedUp._meta)]) {
      const [, { payload }] = await verified(text);
      expect({ ...payload, issuedAt: 0 }).to.deep.equal({ ...answer.payload, issuedAt: 0 });
    }
  });

  it('but refusals, and answers that are not sold, have none', async () => {
    const signed = await signFor(world, '/v1/summarize');
    const unsold = [
      await post(`${world.url}/v1/summarize`, {}),
      await post(`${world.url}/v1/summarize`, { text: 1 }, signed),
      await post(`${world.url}/v1/summarize`, anotherText(), { 'PAYMENT-SIGNATURE': 'e30=' }),
    ];
    expect(unsold.map(({ status }) => status)).to.deep.equal([402, 400, 402]);
    for (const answer of unsold) expect(receiptsIn(headersOf(answer))).to.deep.equal([]);
  });

  it('whose headers and public key may be read by pages of other origins', async () => {
    const bought = await post(
      `${world.url}/v1/summarize`,
      anotherText(),
      await signFor(world, '/v1/summarize'),
    );
    expect(bought.headers.get('access-control-expose-headers')).to.include('Answer-Receipt');
    const { status, headers, json } = await call(`${world.url}/.well-known/did.json`);
    expect(status).to.equal(200);
    expect(headers.get('access-control-allow-origin')).to.equal('*');
    const did = `did:web:${new URL(world.url).host.replace(':', '%3A')}`;
    const { id, verificationMethod, assertionMethod } = json() as Json & { verificationMethod: Json[] };
    expect(id).to.equal(did);
    expect(verificationMethod.map(method => method.id)).to.deep.equal(assertionMethod);
    expect(JSON.stringify(verificationMethod)).to.not.match(/"d":/);
  });
});
