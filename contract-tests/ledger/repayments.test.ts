import { expect } from 'chai';
import { openLedgerReader } from '../../src/ledger/store.js';
import type { Repayment } from '../../src/ledger/store.js';
import { claimed, delivered, payment, settles } from '../support/ledgers.js';
import { closeLater, eachWithANewLedger, ledger, open, place, time } from '../support/ledger-suite.js';
import { aRefund, onEachEngine } from '../support/ledger-places.js';
import type { LedgerPlace } from '../support/ledger-places.js';

onEachEngine('a ledger with refunds', promises);

const PAID = 10_000n;
const SIGNED = { evidence: 'signed bytes', signature: 'what was signed', position: 1_150 };
const LANDED = { signature: SIGNED.signature, slot: 2_000, at: 1_800_000_000_500, source: 'Hot111' };

function promises(make: () => Promise<LedgerPlace>): void {
  eachWithANewLedger(make);

  async function owed(): Promise<{ id: string; claim: number }> {
    const request = payment({ flow: 'upfront' });
    const claim = await claimed(ledger, request);
    await settles(ledger, request.id, claim);
    await ledger.owe(request.id, claim, { settlement: 'sig' });
    return { id: request.id, claim };
  }

  async function sold(): Promise<string> {
    const request = payment();
    await delivered(ledger, request);
    return request.id;
  }

  async function started(id: string, amount: bigint, way: 'key' | 'wallet' = 'key'): Promise<Repayment> {
    const result = await ledger.startRepayment({ payment: id, amount, way, after: 1_000 });
    if (result.kind !== 'started') throw new Error(`expected a start, got ${result.kind}`);
    return result.repayment;
  }

  it('reserves at most what was paid, however many operators start at once', async () => {
    const other = await openLedgerReader({ url: place.url, now: () => time.now });
    closeLater(other);
    const id = await sold();
    const operators = [ledger, other, ledger, other, ledger, other];
    const results = await Promise.all(
      operators.map(each => each.startRepayment({ payment: id, amount: PAID, way: 'key', after: 1 })),
    );
    expect(results.map(({ kind }) => kind).toSorted()).to.deep.equal([
      'started',
      ...Array.from({ length: 5 }, () => 'under way'),
    ]);
    expect(await ledger.find(id)).to.include({ repaying: PAID, repaid: 0n, state: 'delivered' });
    expect(await ledger.repaymentsOf(id)).to.have.length(1);
  });

  it('repays in parts, up to the amount and never more', async () => {
    const id = await sold();
    for (const [amount, signature] of [
      [4_000n, 'one'],
      [5_000n, 'two'],
    ] as const) {
      const { id: refund } = await started(id, amount);
      await ledger.writeDownRepayment(refund, { ...SIGNED, signature });
      expect(await ledger.landRepayment(refund, { ...LANDED, signature })).to.equal('done');
    }
    const more = await ledger.startRepayment({ payment: id, amount: 1_001n, way: 'key', after: 1 });
    expect(more).to.deep.equal({ kind: 'too much', left: 1_000n });
    const nothing = await ledger.startRepayment({ payment: id, amount: 0n, way: 'key', after: 1 });
    expect(nothing.kind).to.equal('too much');
    expect(await ledger.find(id)).to.include({
      repaid: 9_000n,
      repaying: 0n,
      repaidBy: 'two',
      state: 'delivered',
    });
  });

  it('sends only one transaction: a second signer gets the one that was stored first', async () => {
    const { id } = await started(await sold(), PAID);
    const both = await Promise.all(
      ['mine', 'yours'].map(signature => ledger.writeDownRepayment(id, { ...SIGNED, signature })),
    );
    const [first, second] = both.map(each => each?.signature);
    expect(first).to.be.oneOf(['mine', 'yours']);
    expect(second).to.equal(first);
  });

  it('keeps an amount reserved until the signed transaction is proven never to land', async () => {
    const id = await sold();
    const { id: refund } = await started(id, PAID);
    await ledger.writeDownRepayment(refund, SIGNED);
    expect(await ledger.cancelRepayment(refund, 'by the operator'), 'cancelled').to.equal(false);
    expect(await ledger.failRepayment(refund, 'another one', 'it is dead'), 'another proof').to.equal(false);
    const early = await ledger.startRepayment({ payment: id, amount: PAID, way: 'key', after: 1 });
    expect(early).to.deep.include({ kind: 'under way' });
    expect(await ledger.failRepayment(refund, SIGNED.signature, 'it never landed')).to.equal(true);
    expect(await ledger.find(id)).to.include({ repaying: 0n, repaid: 0n });
    expect((await started(id, PAID)).id).not.to.equal(refund);
  });

  it('counts a transfer once, even if it lands after its refund was given up', async () => {
    const id = await sold();
    const { id: refund } = await started(id, 3_000n, 'wallet');
    expect(await ledger.cancelRepayment(refund, 'by the operator')).to.equal(true);
    const outcomes = [];
    for (const signature of ['late', 'late', 'another'])
      outcomes.push(await ledger.landRepayment(refund, { ...LANDED, signature }));
    expect(outcomes).to.deep.equal(['done', 'done', 'twice']);
    expect(await ledger.find(id)).to.include({ repaid: 3_000n, repaying: 0n });
  });

  it('accepts no transfer for two refunds, whether of one payment or of two', async () => {
    const refunds = [await started(await sold(), PAID), await started(await sold(), PAID)];
    const outcomes = await Promise.all(refunds.map(({ id }) => ledger.landRepayment(id, LANDED)));
    expect(outcomes.toSorted()).to.deep.equal(['done', 'used']);
    expect(await ledger.refund(await sold(), aRefund({ signature: LANDED.signature }))).to.equal('used');
  });

  it('stops work on an owed answer while its whole payment is being refunded', async () => {
    const { id, claim } = await owed();
    const { id: refund } = await started(id, PAID);
    expect(await ledger.extendLease(id, claim, 1_000), 'its worker').to.equal(false);
    expect(await ledger.adopt(id, 1_000), 'another worker').to.equal(undefined);
    await ledger.cancelRepayment(refund, 'by the operator');
    expect((await ledger.adopt(id, 1_000))?.id, 'after it was cancelled').to.equal(id);
  });

  it('continues work on an owed answer while part of its payment is being refunded', async () => {
    const { id, claim } = await owed();
    const { id: refund } = await started(id, 1n);
    expect(await ledger.extendLease(id, claim, 0)).to.equal(true);
    expect((await ledger.adopt(id, 1_000))?.id).to.equal(id);
    await ledger.landRepayment(refund, LANDED);
    expect(await ledger.find(id)).to.include({ state: 'owed', repaid: 1n });
  });

  it('marks an owed payment as refunded when the last part has landed, in a way that earlier versions can read', async () => {
    const { id } = await owed();
    const { id: refund } = await started(id, PAID);
    await ledger.landRepayment(refund, LANDED);
    expect(await ledger.find(id)).to.include({ state: 'refunded', repaid: PAID, repaidBy: LANDED.signature });
    const { signature, slot, at } = LANDED;
    expect(await ledger.refundOf(id)).to.deep.equal({ signature, amount: PAID, slot, refundedAt: at });
  });

  it('starts nothing for a payment whose money has not moved', async () => {
    const request = payment();
    await claimed(ledger, request);
    const start = { amount: 1n, way: 'key', after: 1 } as const;
    expect(await ledger.startRepayment({ ...start, payment: request.id })).to.deep.equal({
      kind: 'not paid',
      state: 'claimed',
    });
    expect(await ledger.startRepayment({ ...start, payment: 'f'.repeat(64) })).to.deep.equal({
      kind: 'not paid',
      state: undefined,
    });
  });

  it('subtracts refunds in its reports', async () => {
    const id = await sold();
    const { id: refund } = await started(id, 2_500n);
    await ledger.landRepayment(refund, LANDED);
    const [day] = await ledger.turnover();
    expect(day).to.include({ amount: PAID, repaid: 2_500n });
    expect((await ledger.newestSales(1))[0]).to.include({ amount: PAID, repaid: 2_500n });
  });

  it('lists pending refunds for another server', async () => {
    const first = await started(await sold(), 1n);
    time.now += 1;
    const second = await started(await sold(), 2n, 'wallet');
    await ledger.landRepayment((await started(await sold(), 3n)).id, LANDED);
    const listed = await ledger.openRepayments();
    expect(listed.map(({ id }) => id)).to.have.members([first.id, second.id]);
    expect((await ledger.openRepayments(listed[0])).map(({ id }) => id)).to.deep.equal([listed[1]?.id]);
  });

  it('finds a payment by any id, signature or payer that a buyer may quote', async () => {
    const request = payment({ identifier: 'order-0000000000001' });
    await delivered(ledger, request);
    const { id: refund } = await started(request.id, 1n);
    await ledger.landRepayment(refund, LANDED);
    const { id: owedId } = await owed();
    await ledger.refund(owedId, aRefund({ signature: 'an old refund' }));
    const idsOf = async (text: string): Promise<string[]> =>
      (await ledger.paymentsNamed(text)).map(({ id }) => id);
    for (const text of [
      request.id,
      request.id.slice(0, 8),
      request.id.toUpperCase(),
      'order-0000000000001',
      refund,
      `refund:${refund}`,
      LANDED.signature,
    ])
      expect(await idsOf(text), text).to.deep.equal([request.id]);
    expect(await idsOf('an old refund')).to.deep.equal([owedId]);
    for (const text of ['sig', request.payer])
      expect(await idsOf(text), text).to.have.members([request.id, owedId]);
    expect(await ledger.paymentsNamed(request.payer, 1)).to.have.length(1);
    for (const text of ['', 'nobody', request.id.slice(0, 7)])
      expect(await idsOf(text), text).to.deep.equal([]);
  });

  it('keeps its refunds when it is opened again', async () => {
    const { id } = await started(await sold(), 7n);
    await ledger.close();
    expect(await (await open()).repayment(id)).to.include({ amount: 7n, state: 'sending' });
  });
}
