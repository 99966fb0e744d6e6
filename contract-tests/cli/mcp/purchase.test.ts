import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Fate } from '../../../src/cli/mcp/fate.js';
import { Buyer } from '../../../src/cli/mcp/purchase.js';
import { Purse } from '../../../src/cli/mcp/purse.js';
import type { Reply } from '../../../src/cli/mcp/shop-connection.js';
import type { ToolResult } from '../../../src/cli/mcp/tool-result.js';
import { DEVNET, DEVNET_USDC, DEVNET_V1 } from '../../support/craft.js';
import { aPayment } from '../../support/wallet-payment.js';

type Json = Record<string, unknown>;
type Sent = { tool: string; meta: Json };

const PAYER = 'payer';
const offer = (more: Json = {}): Json => ({
  scheme: 'exact',
  network: DEVNET,
  asset: DEVNET_USDC,
  amount: '10000',
  payTo: 'seller',
  extra: { feePayer: 'facilitator' },
  ...more,
});
const required = (...accepts: Json[]): Json & { accepts: Json[] } => ({
  x402Version: 2,
  error: 'pay',
  accepts,
});
const result = (more: Json): Reply => ({ kind: 'result', result: { content: [], ...more } });
const price = (...accepts: Json[]): Reply =>
  result({ isError: true, structuredContent: required(...accepts) });
const sold = (more: Json = {}): Reply => result({ content: [{ type: 'text', text: 'answer' }], ...more });
const receipt = (success: boolean): Json => ({
  'x402/payment-response': { success, transaction: 'signature' },
});

describe('a purchase of the wallet', () => {
  let folder: string;
  let purse: Purse;
  let sent: Sent[];
  let signed: number;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'coinslot-buyer-'));
    purse = new Purse(folder);
    sent = [];
    signed = 0;
  });
  afterEach(() => {
    purse.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A buyer at a shop that replies in this order. */
  function buyerAt(replies: Reply[], fate: Fate = { kind: 'open', why: 'it is young' }): Buyer {
    return new Buyer({
      shop: {
        endpoint: 'https://shop.example/mcp',
        call: async (tool, _args, meta) => {
          sent.push({ tool, meta });
          return replies.shift() ?? { kind: 'lost', error: 'nothing more' };
        },
      },
      purse,
      signer: {
        address: PAYER,
        sign: async () => ({ ...aPayment(), id: `payment ${(signed += 1)}`, payment: { number: signed } }),
      },
      fates: { of: async () => fate },
      limits: { maxPrice: 50_000n, budget: 100_000n },
      timeoutMs: 3_500,
    });
  }
  const call = (buyer: Buyer, args: Json = {}): Promise<ToolResult> =>
    buyer.call({ tool: 'quote', args, signal: new AbortController().signal, onProgress: () => {} });
  const textOf = (got: ToolResult): string => String(got.content.at(-1)?.['text']);
  const paymentIn = ({ meta }: Sent): unknown => meta['x402/payment'];

  for (const [where, challenge, payment] of [
    ['in the structured content', price(offer()), { number: 1 }],
    [
      'as text only',
      result({ isError: true, content: [{ type: 'text', text: JSON.stringify(required(offer())) }] }),
      { number: 1 },
    ],
    [
      'as a JSON-RPC error',
      { kind: 'challenge', challenge: { required: required(offer()), base64: false } },
      { number: 1 },
    ],
    [
      'in _meta only, by a shop that reads base64',
      result({ isError: true, _meta: { 'x402/error': required(offer()) } }),
      Buffer.from('{"number":1}').toString('base64'),
    ],
  ] as [string, Reply, unknown][])
    it(`pays a price that is told ${where}`, async () => {
      const got = await call(buyerAt([challenge, sold({ _meta: receipt(true) })]));
      expect(textOf(got)).to.equal(
        'Paid 0.01 USDC (transaction signature). 0.09 of 0.10 USDC are left today.',
      );
      expect(sent.map(paymentIn)).to.deep.equal([undefined, payment]);
      expect(sent[1]?.meta['x402.payment']).to.equal(Buffer.from('{"number":1}').toString('base64'));
      expect(purse.pending()).to.deep.equal([]);
    });

  it('takes the cheapest of the offers that it knows, in v1, too', async () => {
    const v1 = {
      ...required(offer({ network: DEVNET_V1, maxAmountRequired: '20000', amount: undefined })),
      x402Version: 1,
    };
    await call(buyerAt([result({ isError: true, structuredContent: v1 }), sold()]), { a: 1 });
    expect(purse.left(100_000n)).to.equal(80_000n);
    const offers = [
      offer({ amount: '30000' }),
      offer({ amount: '5000' }),
      offer({ network: 'eip155:8453', amount: '1' }),
    ];
    await call(buyerAt([price(...offers), sold()]), { a: 2 });
    expect(purse.left(100_000n)).to.equal(75_000n);
  });

  it('signs nothing for another token, network or scheme, a price that is no amount, or if the payer is to pay the fee', async () => {
    const wrong = [
      { asset: 'another' },
      { network: 'solana:another' },
      { scheme: 'upto' },
      { amount: '1e4' },
      { amount: '-1' },
      { amount: 10_000 },
      { extra: { feePayer: PAYER } },
    ];
    for (const each of wrong) {
      const got = await call(buyerAt([price(offer(each))]));
      expect(textOf(got), JSON.stringify(each)).to.match(/^The shop can't be paid:.*Nothing was paid/);
    }
    expect(signed).to.equal(0);
  });

  it('a refused payment that is dead is released, and another one signed, in the same call', async () => {
    const got = await call(buyerAt([price(offer()), price(offer()), sold()], { kind: 'dead' }));
    expect(got.isError).to.equal(undefined);
    expect(sent.map(paymentIn)).to.deep.equal([undefined, { number: 1 }, { number: 2 }]);
    expect(purse.left(100_000n)).to.equal(90_000n);
    expect(purse.lines(9).map(({ event }) => event)).to.deep.equal([
      'signed',
      'refused',
      'released',
      'signed',
      'answered',
    ]);
  });

  it('an error that the shop was paid for is its answer; one that it was not paid for leaves the payment', async () => {
    const failed = { isError: true, content: [{ type: 'text', text: 'no such quote' }] };
    const got = await call(buyerAt([price(offer()), result({ ...failed, _meta: receipt(true) })]));
    expect([got.isError, purse.pending().length]).to.deep.equal([true, 0]);
    const unpaid = await call(buyerAt([price(offer()), result(failed)]));
    expect(textOf(unpaid)).to.match(/The call failed: no such quote. The payment of 0.01 USDC is kept/);
    expect(purse.pending()).to.have.lengthOf(1);
  });

  it('a call that is paid and in progress is fetched by its key, without the payment', async () => {
    const waiting = {
      isError: true,
      structuredContent: { status: 503, retryAfterSeconds: 60, error: 'Paid, and in progress.' },
      _meta: { ...receipt(true), 'coinslot/pick-up': { key: 'the key' } },
    };
    const early = await call(buyerAt([price(offer()), result(waiting)]));
    expect(early.structuredContent).to.include({ status: 503, retryAfterSeconds: 60 });
    expect(purse.pending()[0]).to.include({ pickUp: 'the key', landed: 'signature' });
    const got = await call(buyerAt([sold()]));
    expect(textOf(got)).to.match(/^Paid 0.01 USDC \(transaction signature\)/);
    expect(sent.at(-1)).to.deep.equal({ tool: 'pick_up', meta: {} });
    expect(purse.pending()).to.deep.equal([]);
  });

  it('a key that opens nothing: the payment itself is sent', async () => {
    const waiting = {
      isError: true,
      structuredContent: { status: 503 },
      _meta: { 'coinslot/pick-up': { key: 'k' } },
    };
    await call(buyerAt([price(offer()), result(waiting)]));
    await call(buyerAt([result({ isError: true }), sold()]));
    expect(sent.slice(-2).map(paymentIn)).to.deep.equal([undefined, { number: 1 }]);
    expect(signed).to.equal(1);
  });
});
