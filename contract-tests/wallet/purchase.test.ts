import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { AnswerFiles } from '../../src/wallet/answer-files.js';
import { PaidTools } from '../../src/wallet/paid-tools.js';
import type { ShopReply as Reply } from '../../src/wallet/shop-connection.js';
import type { ToolResult } from '../../src/wallet/tool-result.js';
import type { Fate } from '../../src/wallet/fate.js';
import { Purse, type PendingPayment } from '../../src/wallet/purse.js';
import { DEVNET, DEVNET_USDC, DEVNET_V1 } from '../support/craft.js';
import { aPayment } from '../support/wallet-payment.js';

type Json = Record<string, unknown>;
type Sent = { tool: string; meta: Json };

const PAYER = 'payer';
const MINUTE = 60_000;
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
  /** The answers that the shop keeps, by URL, as base64. */
  const kept = new Map<string, string>();
  /** The age of the payments that the test signs. */
  let age: number;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'coinslot-buyer-'));
    age = 0;
    purse = new Purse(folder, () => Date.now() - age);
    sent = [];
    signed = 0;
  });
  afterEach(() => {
    purse.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A buyer at a shop that gives these replies in order. */
  function buyerAt(
    replies: Reply[],
    fate: Fate | ((of: PendingPayment) => Fate) = { kind: 'open', why: 'it is young' },
  ): PaidTools {
    return new PaidTools({
      shop: {
        endpoint: 'https://shop.example/mcp',
        call: async (tool, _args, meta) => {
          sent.push({ tool, meta });
          return replies.shift() ?? { kind: 'lost', error: 'nothing more' };
        },
        read: async uri => {
          const blob = kept.get(uri);
          if (blob === undefined) throw new Error('nothing is kept');
          return { contents: [{ uri, mimeType: 'audio/wav', blob }] };
        },
      },
      purse,
      files: new AnswerFiles(join(folder, 'answers')),
      signer: {
        address: PAYER,
        sign: async () => ({ ...aPayment(), id: `payment ${(signed += 1)}`, payment: { number: signed } }),
      },
      fates: {
        of: async payment => (typeof fate === 'function' ? fate(payment) : fate),
        chainClock: async () => ({ slot: 7, time: 1_000 }),
      },
      limits: { maxPrice: 50_000n, budget: 100_000n },
      timeoutMs: 3_500,
    });
  }
  const call = (buyer: PaidTools, args: Json = {}): Promise<ToolResult> =>
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
    it(`pays a price that is given ${where}`, async () => {
      const got = await call(buyerAt([challenge, sold({ _meta: receipt(true) })]));
      expect(textOf(got)).to.equal(
        'Paid 0.01 USDC (transaction signature). 0.09 of 0.10 USDC are left today.',
      );
      expect(sent.map(paymentIn)).to.deep.equal([undefined, payment]);
      expect(sent[1]?.meta['x402.payment']).to.equal(Buffer.from('{"number":1}').toString('base64'));
      expect(purse.pending()).to.deep.equal([]);
    });

  it('keeps the link that it gets in place of a long answer', async () => {
    const uri = 'https://shop.example/answers/the-key';
    const link = { type: 'resource_link', uri, name: 'answer', mimeType: 'audio/wav', size: 3_000_000 };
    const got = await call(buyerAt([price(offer()), sold({ content: [link], _meta: receipt(true) })]));
    expect(got.content[0]).to.deep.equal(link);
    expect(purse.lines(1)[0]).to.include({ event: 'answered', transaction: 'signature', link: uri });
    const line = { url: uri, name: 'answer.wav', mimeType: 'audio/wav', size: 4 };
    const told = { structuredContent: line, _meta: { ...receipt(true), 'coinslot/pick-up': { url: uri } } };
    kept.set(uri, Buffer.from('RIFF').toString('base64'));
    const saved = await call(buyerAt([price(offer()), sold(told)]), { a: 2 });
    const { file } = saved.structuredContent as { file: string };
    expect(readFileSync(file, 'latin1')).to.equal('RIFF');
    expect(String(saved.content[0]?.['text'])).to.equal(
      `The answer is in the file ${file} (audio/wav, 4 bytes).`,
    );
    expect(purse.lines(1)[0]).to.include({ event: 'answered', link: uri });
    const long = { ...link, uri: `${uri}${'a'.repeat(1_000)}` };
    await call(buyerAt([price(offer()), sold({ content: [long] })]), { a: 1 });
    expect(purse.lines(1)[0]).to.include({ event: 'answered' }).and.not.to.have.property('link');
  });

  it('bytes from any shop are saved to files before the payment is closed, and never given to a model', async () => {
    const data = Buffer.from('RIFF').toString('base64');
    const audio = { type: 'audio', data, mimeType: 'audio/wav' };
    const file = { type: 'resource', resource: { uri: 'a:b', blob: data, mimeType: 'application/pdf' } };
    const note = { type: 'text', text: 'a note' };
    const got = await call(buyerAt([price(offer()), sold({ content: [audio, note, file] })]));
    expect(JSON.stringify(got)).not.to.include(data);
    const [first, second, third] = got.content.map(({ text }) => String(text));
    expect(second).to.equal('a note');
    const names = [first, third].map(text => /(\S+) \(/.exec(text ?? '')?.[1] ?? '');
    expect(names.map(name => name.replace(/^.*\./, ''))).to.deep.equal(['wav', 'pdf']);
    for (const name of names) expect(readFileSync(name, 'latin1')).to.equal('RIFF');
    // A file takes the folder's place, so that nothing can be saved.
    rmSync(join(folder, 'answers'), { recursive: true });
    writeFileSync(join(folder, 'answers'), '');
    const failed = await call(buyerAt([price(offer()), sold({ content: [audio] })]), { a: 1 }).catch(String);
    expect(failed).to.match(/EEXIST|ENOTDIR/);
    expect(purse.pending()).to.have.length(1);
    rmSync(join(folder, 'answers'));
    await call(buyerAt([sold({ content: [audio] })]), { a: 1 });
    expect(purse.pending()).to.have.length(0);
    expect(signed).to.equal(2);
  });

  it('the folder for files has a limit: the oldest files are deleted, and two files saved at the same moment have different names', () => {
    const files = new AnswerFiles(join(folder, 'few'), { files: 2, bytes: 10 });
    const save = (size: number): string => files.save('../a tool', 'audio/wav', Buffer.alloc(size)).file;
    const [one, two] = [save(1), save(1)];
    expect(one).not.to.equal(two);
    expect(one).to.match(/few\/___a_tool-[^/]*\.wav$/);
    for (const [index, file] of [one, two].entries()) utimesSync(file, index, index);
    const three = save(1);
    expect(readdirSync(files.folder).map(name => join(files.folder, name))).to.have.members([two, three]);
    const large = save(10);
    expect(readdirSync(files.folder).map(name => join(files.folder, name))).to.deep.equal([large]);
  });

  it('takes the cheapest offer that it supports, also in x402 v1', async () => {
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

  it('signs nothing for another token, network or scheme, for an invalid price, or if the payer would have to pay the fee', async () => {
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

  it('a refused payment that can no longer be settled is released, and another is signed in the same call', async () => {
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

  it("the chain's time when a payment was signed is stored with it", async () => {
    await call(buyerAt([price(offer())]));
    expect(purse.pending()[0]?.signedOnChain).to.deep.equal({ slot: 7, time: 1_000 });
  });

  it("a charged error is the call's answer; after an uncharged one, the payment is kept", async () => {
    const failed = { isError: true, content: [{ type: 'text', text: 'no such quote' }] };
    const got = await call(buyerAt([price(offer()), result({ ...failed, _meta: receipt(true) })]));
    expect([got.isError, purse.pending().length]).to.deep.equal([true, 0]);
    const unpaid = await call(buyerAt([price(offer()), result(failed)]));
    expect(textOf(unpaid)).to.match(/The call failed: no such quote. The payment of 0.01 USDC is kept/);
    expect(purse.pending()).to.have.lengthOf(1);
  });

  it('the answer of a call that is paid and in progress is fetched by its key, without the payment', async () => {
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

  it('a payment that the shop refunded is closed and stays counted; the next call is a new purchase', async () => {
    const refunded = result({
      isError: true,
      content: [{ type: 'text', text: 'This payment was refunded (transaction R): sign a new one' }],
      structuredContent: { status: 502 },
      _meta: { 'x402/payment-response': { success: false, errorReason: 'refunded', transaction: 'T' } },
    });
    const waiting = result({
      isError: true,
      structuredContent: { status: 503, retryAfterSeconds: 60 },
      _meta: { ...receipt(true), 'coinslot/pick-up': { key: 'k' } },
    });
    for (const [events, replies] of [
      [
        ['signed', 'refunded'],
        [price(offer()), refunded],
      ],
      [
        ['signed', 'landed', 'refunded'],
        [price(offer()), waiting, refunded],
      ],
    ] as [string[], Reply[]][]) {
      const [buyer, before] = [buyerAt(replies), purse.left(100_000n)];
      if (replies.includes(waiting)) await call(buyer);
      const closed = await call(buyer);
      expect(textOf(closed)).to.match(
        /says that it refunded the payment of 0\.01 USDC: This payment was refunded \(transaction R\).*is a new purchase/,
      );
      expect(purse.pending()).to.deep.equal([]);
      expect(before - purse.left(100_000n)).to.equal(10_000n);
      expect(purse.lines(9).map(({ event }) => event)).to.deep.equal(events);
      const next = await call(buyerAt([price(offer()), sold()]));
      expect(textOf(next)).to.match(/^Paid 0\.01 USDC/);
      rmSync(join(folder, 'statement.jsonl'));
    }
    expect(signed).to.equal(4);
  });

  it('the payment itself is sent if its key is refused', async () => {
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

  describe('a payment that the shop refuses although it was settled', () => {
    const landed: Fate = { kind: 'landed', signature: 'its signature' };
    const gone = result({
      isError: true,
      structuredContent: { ...required(offer()), error: 'its answer is no longer kept' },
    });
    const cut = result({ isError: true, structuredContent: { status: 503, retryAfterSeconds: 60 } });
    const events = (): string[] => purse.lines(9).map(({ event }) => event);

    it('is kept for a quarter of an hour, during which the shop may still find it', async () => {
      age = 14 * MINUTE;
      const got = await call(buyerAt([price(offer()), gone], landed));
      expect(textOf(got)).to.match(
        /though it was settled as its signature.*is kept: call quote with the same/,
      );
      expect(purse.pending()).to.have.lengthOf(1);
    });

    it('is closed after a quarter of an hour: it is reported once and stays counted, and the next call is a new purchase', async () => {
      age = 16 * MINUTE;
      await call(buyerAt([price(offer()), cut]));
      const buyer = buyerAt([gone, price(offer()), sold()], landed);
      const closed = await call(buyer);
      expect(closed.isError).to.equal(true);
      expect(textOf(closed)).to.match(
        /payment of 0\.01 USDC was signed for it at 20.*says: its answer is no longer kept\. It was settled as its signature and is spent\..*Nothing else was paid.*Tell the user.*new purchase/,
      );
      expect(closed._meta?.['coinslot/wallet']).to.include({
        paid: '0.01',
        transaction: 'its signature',
        left: '0.09',
      });
      expect(signed, 'no other payment is signed in the same call').to.equal(1);
      expect(events()).to.deep.equal(['signed', 'refused', 'landed', 'unanswered']);
      const next = await call(buyer);
      expect(textOf(next)).to.match(/^Paid 0\.01 USDC.*0\.08 of 0\.10/);
      expect(sent.map(paymentIn).slice(-2)).to.deep.equal([undefined, { number: 2 }]);
    });

    it('is closed after a day and stays counted if the chain does not show whether it was settled', async () => {
      age = 23 * 60 * MINUTE;
      await call(buyerAt([price(offer()), cut]));
      expect(textOf(await call(buyerAt([gone])))).to.match(
        /A new payment is signed only once this one can no longer be settled: it is young/,
      );
      purse.release('payment 1');
      age = 25 * 60 * MINUTE;
      await call(buyerAt([price(offer()), cut]));
      expect(textOf(await call(buyerAt([gone])))).to.match(
        /Whether it was settled can't be seen \(it is young\), so it counts as spent/,
      );
      expect(purse.pending()).to.deep.equal([]);
    });

    it('is closed if the call fails for a day, unless the shop says that it owes the answer', async () => {
      age = 25 * 60 * MINUTE;
      const failed = { isError: true, content: [{ type: 'text', text: 'This payment was refunded' }] };
      const owed = result({ ...failed, structuredContent: { status: 502 }, _meta: receipt(true) });
      const kept = await call(buyerAt([price(offer()), owed], landed));
      expect(textOf(kept)).to.match(/is kept: call quote with the same arguments/);
      const closed = await call(buyerAt([result(failed)], landed));
      expect(textOf(closed)).to.match(/This payment was refunded\. It was settled as .* and is spent/);
      expect(purse.pending()).to.deep.equal([]);
    });
  });

  it('a challenge that is too long to be stored is not paid', async () => {
    const long = offer({ extra: { feePayer: 'facilitator', note: 'x'.repeat(65 * 1024) } });
    const got = await call(buyerAt([price(long)]));
    expect(textOf(got)).to.match(
      /its challenge is 66 KB; this wallet takes at most 64 KB\. Nothing was paid/,
    );
    expect([signed, purse.pending()]).to.deep.equal([0, []]);
  });

  it('sweeps check every open payment in turn, even in restarted wallets', async () => {
    const looked: string[] = [];
    const names = [1, 2, 3, 4, 5, 6, 7].map(number => `open ${number}`);
    for (const id of names) purse.add(aPayment({ id, call: id, amount: '1' }), 100n);
    for (let sweep = 0; sweep < 3; sweep++) {
      const buyer = buyerAt([], ({ id }) => {
        looked.push(id);
        return { kind: 'open', why: 'the chain is silent' };
      });
      await buyer.sweep();
    }
    expect(new Set(looked)).to.deep.equal(new Set(names));
  });

  it("a sweep gives up payments older than a month, so that they can't fill the wallet", async () => {
    age = 31 * 24 * 60 * MINUTE;
    purse.add(aPayment({ id: 'old', call: 'old', amount: '1' }), 100n);
    age = 29 * 24 * 60 * MINUTE;
    purse.add(aPayment({ id: 'newer', call: 'newer', amount: '1' }), 100n);
    await buyerAt([]).sweep();
    expect(purse.pending().map(({ id }) => id)).to.deep.equal(['newer']);
    expect(purse.lines(1)[0]).to.include({ event: 'unanswered', payment: 'old' });
  });
});
