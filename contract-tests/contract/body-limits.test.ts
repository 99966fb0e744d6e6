import type { Json } from '../../src/contract/json.js';
import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { bodyLimit } from '../../src/contract/body-limit.js';
import { loadContract } from '../../src/contract/parse-contract.js';
import { craftPayment, v2Header } from '../support/craft.js';
import { challengeOf, openWorld, post, type Answer, type World } from '../support/world.js';
import { priceOf } from '../support/sold.js';

const contract = loadContract(new URL('../../../openapi.yaml', import.meta.url));

describe('the size limit of a body', function () {
  this.timeout(60_000);
  let world: World;
  before(async () => {
    world = await openWorld();
  });
  after(() => world.close());

  /** Sends a payment from a wallet that holds nothing. */
  const sendUnfunded = async (path: string, body: object): Promise<Answer> => {
    const challenge = challengeOf(await post(world.url + path, {}));
    const offer = challenge.accepts[0] as {
      amount: string;
      payTo: string;
      extra: { feePayer: string; recentBlockhash: string };
    };
    const { transaction } = craftPayment({
      payer: Keypair.generate(),
      amount: BigInt(offer.amount),
      payTo: offer.payTo,
      feePayer: offer.extra.feePayer,
      blockhash: offer.extra.recentBlockhash,
    });
    return post(world.url + path, body, { 'PAYMENT-SIGNATURE': v2Header(offer, transaction) });
  };

  it('is below 100 KB for every operation except summarize, which allows 2 MB', () => {
    const limits = Object.fromEntries(
      contract.paid.flatMap(({ id, request }) => (request ? [[id, request.maxBytes]] : [])),
    );
    expect(limits['summarize']).to.equal(2 * 1024 * 1024);
    delete limits['summarize'];
    for (const [id, bytes] of Object.entries(limits)) expect(bytes, id).to.be.within(16_384, 100_000);
  });

  it('allows the longest values that a schema accepts, even if every character is escaped', () => {
    for (const { id, request } of contract.paid) {
      if (!request) continue;
      const fields = Object.entries(request.plain['properties'] as Record<string, Json>).map(
        ([name, { type, maxLength }]) =>
          `"${name}":${type === 'string' ? `"${'\\ud83d\\udcb8'.repeat(Number(maxLength))}"` : '50'}`,
      );
      expect(`{${fields.join()}}`.length, id).to.be.below(request.maxBytes);
    }
  });

  it('is 2 MB where the schema sets no limit', () => {
    const text = { type: 'string' };
    expect(bodyLimit({}, { type: 'object', properties: { text } })).to.equal(2 * 1024 * 1024);
    expect(bodyLimit({}, {})).to.equal(2 * 1024 * 1024);
  });

  it('is computed immediately even if each of thirty schemas refers twice to the next one', () => {
    const pair = (next: number): Json => {
      const $ref = `#/components/schemas/Level${next}`;
      return { type: 'object', properties: { a: { $ref }, b: { $ref } } };
    };
    const levels = Array.from({ length: 30 }, (_, level) => [`Level${level}`, pair(level + 1)] as const);
    const schemas = { ...Object.fromEntries(levels), Level30: { type: 'integer' } };
    expect(bodyLimit({ components: { schemas } }, pair(0))).to.equal(2 * 1024 * 1024);
  });

  it('rejects an unfunded brandFeedback call of 2 MB with 400, before the ledger or the facilitator is called', async () => {
    const asked = world.facilitator.count('/verify');
    const long = 'x'.repeat(2_000_000);
    for (const [body, error] of [
      [{ brand: 'Harbour', question: long }, /larger than \d\d KB\. You were not charged/],
      [{ brand: 'Harbour', question: 'Good?', padding: long }, /larger than \d\d KB/],
      [{ brand: 'Harbour', question: 'x'.repeat(2_001) }, /question must have at most 2000 characters/],
      [{ brand: 'x'.repeat(201), question: 'Good?' }, /brand must have at most 200 characters/],
    ] as const) {
      const answer = await sendUnfunded('/brand-feedback', body);
      expect(answer.status, answer.body.toString()).to.equal(400);
      expect(String(answer.json()['error'])).to.match(error);
    }
    expect(world.facilitator.count('/verify')).to.equal(asked);
    expect((await sendUnfunded('/brand-feedback', { brand: 'Harbour', question: 'Good?' })).status).to.equal(
      402,
    );
    expect(world.facilitator.count('/verify')).to.equal(asked + 1);
  });

  it('also applies to a chunked body that declares no length', async () => {
    const challenge = challengeOf(await post(`${world.url}/brand-feedback`, {}));
    const offer = challenge.accepts[0] as {
      payTo: string;
      extra: { feePayer: string; recentBlockhash: string };
    };
    const { transaction } = craftPayment({
      amount: priceOf('brandFeedback'),
      payTo: offer.payTo,
      feePayer: offer.extra.feePayer,
      blockhash: offer.extra.recentBlockhash,
    });
    const chunks = Array.from({ length: 20 }, () => Buffer.alloc(10_000, 32));
    const response = await fetch(`${world.url}/brand-feedback`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'PAYMENT-SIGNATURE': v2Header(offer, transaction) },
      body: ReadableStream.from(chunks),
      duplex: 'half',
    });
    expect(response.status).to.equal(400);
    expect(await response.text()).to.match(/larger than \d\d KB/);
  });
});
