import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { SharedBucket } from '../src/payments/admission.js';
import { MAX_HEADER_BYTES } from '../src/payments/challenge.js';
import type { Payment } from '../src/payments/examine.js';
import type { Settlement, Verdict } from '../src/payments/facilitator.js';
import { requirementsOf } from '../src/payments/offer.js';
import type { Answer, Outcome } from '../src/payments/outcome.js';
import {
  ACCEPTED,
  answer,
  asSent,
  bodyOf,
  eachInANewWorld,
  expectPending,
  expectRefused,
  expectUnavailable,
  failed,
  faulty,
  FEE_PAYER,
  Gate,
  ID,
  MINT_INFO,
  MINUTE,
  operation,
  paid,
  RECIPE,
  SIGNATURE,
  SUMMARIZE,
  TERMS,
  world,
} from './support/charge-world.js';
import { craftPayment, DEVNET, DEVNET_V1, v1Header, v2Header, withIdentifier } from './support/craft.js';
import { until } from './support/faults.js';

describe('charge: promise 1, one payment buys one answer', () => {
  eachInANewWorld();

  it('200 copies at once, as v1 and v2, with garbage in the fee payer’s slot: one settle, one run, 200 equal answers', async () => {
    const crafted = craftPayment(RECIPE);
    const copies = Array.from({ length: 200 }, (_, n) => {
      const bytes = Buffer.from(crafted.bytes);
      bytes.fill(n, 1, 65);
      const transaction = bytes.toString('base64');
      return world.examined(n % 2 ? v1Header(DEVNET_V1, transaction) : v2Header(ACCEPTED, transaction));
    });
    const outcomes = await Promise.all(copies.map(copy => world.redeem(copy)));
    expect(world.runs).to.equal(1);
    expect(world.facilitator).to.include({ verifies: 1, settles: 1 });
    expect(new Set(outcomes.map(bodyOf))).to.deep.equal(new Set(['{"summary":"run 1"}']));
    outcomes.forEach((outcome, n) => {
      const { receipt } = outcome as Outcome & { kind: 'answer' };
      expect(receipt).to.deep.equal({
        success: true,
        payer: crafted.payer.publicKey.toBase58(),
        transaction: SIGNATURE,
        network: n % 2 ? DEVNET_V1 : DEVNET,
        amount: '10000',
      });
    });
  });

  it('two servers on one ledger: one run, one settle', async () => {
    const other = world.newCharge();
    const payment = world.payment();
    const outcomes = await Promise.all([world.redeem(payment), other.redeem(world.call(payment))]);
    expect(world.runs).to.equal(1);
    expect(world.facilitator.settles).to.equal(1);
    expect(outcomes.map(bodyOf)).to.deep.equal(['{"summary":"run 1"}', '{"summary":"run 1"}']);
  });

  it('sent while its run goes on for another body or operation: refused, and the run is not disturbed', async () => {
    const gate = new Gate();
    const payment = world.payment();
    const first = world.redeem(payment, { work: () => gate.wait(answer('{"summary":"slow"}')) });
    await gate.reached;
    expectRefused(await world.redeem(payment, { text: 'another' }), /with another body/, false);
    expectRefused(await world.redeem(payment, { operation: MINT_INFO }), /of summarize/, false);
    gate.open();
    expect(bodyOf(await first)).to.equal('{"summary":"slow"}');
    expect(world.facilitator.settles).to.equal(1);
  });

  it('at most 512 callers wait for one run', async () => {
    const gate = new Gate();
    const payment = world.payment();
    const work = (): Promise<Answer> => gate.wait(answer('{}'));
    const calls = Array.from({ length: 520 }, () => world.redeem(payment, { work }));
    await gate.reached;
    gate.open();
    const kinds = (await Promise.all(calls)).map(({ kind }) => kind);
    expect(kinds.filter(kind => kind === 'answer')).to.have.length(512);
    expect(kinds.filter(kind => kind === 'unavailable')).to.have.length(8);
  });
});

describe('charge: promise 2, a refused, invalid or failed call is never charged', () => {
  eachInANewWorld();

  for (const status of [400, 502, 503] as const) {
    it(`work that ends with ${status}: not settled, and the same payment can run again`, async () => {
      const payment = world.payment();
      const outcome = await world.redeem(payment, { work: async () => failed(status) });
      expect(outcome).to.have.nested.property('answer.status', status);
      expect(outcome).to.not.have.property('receipt');
      expect(world.facilitator.settles).to.equal(0);
      expect(bodyOf(await world.redeem(payment))).to.equal('{"summary":"run 1"}');
      expect(world.facilitator.settles).to.equal(1);
    });
  }

  it('after a failed run the payment may buy another call', async () => {
    const payment = world.payment();
    await world.redeem(payment, { work: async () => failed(502) });
    expect(bodyOf(await world.redeem(payment, { text: 'another' }))).to.equal('{"summary":"run 1"}');
  });

  it('a payment gets at most three runs of its work, then a new message must be signed', async () => {
    const payment = world.payment();
    let runs = 0;
    const work = async (): Promise<Answer> => {
      runs += 1;
      return failed(502);
    };
    for (let run = 0; run < 3; run++) await world.redeem(payment, { work });
    expectRefused(await world.redeem(payment, { work }), /failed 3 times and nothing was charged/, false);
    expect(runs).to.equal(3);
    expect(world.facilitator.settles).to.equal(0);
  });

  it('work that ignores its signal: 502 at the deadline, not settled', async () => {
    world.charge = world.newCharge({ workDeadlineMs: 50 });
    let signal: AbortSignal | undefined;
    const outcome = await world.redeem(world.payment(), {
      work: given => {
        signal = given;
        return new Promise<Answer>(() => {});
      },
    });
    expect(outcome).to.have.nested.property('answer.status', 502);
    expect(bodyOf(outcome)).to.match(/took longer than 0.05 s. You were not charged/);
    expect(signal?.aborted).to.equal(true);
    expect(world.facilitator.settles).to.equal(0);
  });

  it('the time a slow verify takes is not taken from the work', async () => {
    world.charge = world.newCharge({ workDeadlineMs: 150 });
    world.facilitator.onVerify = async () => {
      await new Promise(resolve => setTimeout(resolve, 250));
      return { kind: 'valid' };
    };
    expect(bodyOf(await world.redeem(world.payment()))).to.equal('{"summary":"run 1"}');
  });

  it('work that throws, against its contract: 502, not settled, for known payers, too', async () => {
    const payer = await world.knownPayer();
    for (const payment of [world.payment(), world.payment({ payer })]) {
      const outcome = await world.redeem(payment, { work: () => Promise.reject(new Error('bug')) });
      expect(outcome).to.have.nested.property('answer.status', 502);
    }
    world.facilitator.onVerify = () => ({ kind: 'refused', reason: 'insufficient_funds' });
    const work = (): Promise<Answer> => Promise.reject(new Error('nobody looks at this'));
    expect((await world.redeem(world.payment({ payer }), { work })).kind).to.equal('refused');
    expect(world.facilitator.settles).to.equal(0);
  });

  it('refused by verify: 402, the row is gone, and it can be tried again', async () => {
    const payment = world.payment();
    world.facilitator.onVerify = () => ({ kind: 'refused', reason: 'insufficient_funds' });
    expectRefused(await world.redeem(payment), /funds: the payer has too little USDC/, true);
    expect(await world.stateOf(payment)).to.equal(undefined);
    expect(world.runs).to.equal(0);
    world.facilitator.onVerify = () => ({ kind: 'valid' });
    expect((await world.redeem(payment)).kind).to.equal('answer');
  });

  for (const [name, onVerify] of Object.entries({
    unreachable: (): Verdict => ({ kind: 'unavailable', detail: 'down' }),
    'broken, so that it throws': (): Verdict => {
      throw new Error('bug');
    },
  })) {
    it(`a facilitator that is ${name} at verify: 503, payment untouched however often it is sent, known payer or not`, async () => {
      const payer = await world.knownPayer();
      const payments = [world.payment(), world.payment({ payer })];
      world.facilitator.onVerify = onVerify;
      for (let time = 0; time < 5; time++) {
        for (const payment of payments) expectUnavailable(await world.redeem(payment), /not charged/);
      }
      expect(world.runs).to.be.at.most(1);
      world.facilitator.onVerify = () => ({ kind: 'valid' });
      for (const payment of payments) expect((await world.redeem(payment)).kind).to.equal('answer');
      expect(world.facilitator.settles).to.equal(2);
    });
  }
});

describe('charge: promise 3, the same payment again gets the same answer', () => {
  eachInANewWorld();

  const bytes = Buffer.from([0, 255, 1, 254, 13, 10, 0]);

  it('byte for byte for 10 minutes, uncharged, then it is no longer kept', async () => {
    const payment = world.payment();
    const work = async (): Promise<Answer> => answer(bytes);
    const first = await world.redeem(payment, { work });
    world.now += 10 * MINUTE - 5_000;
    const again = await world.redeem(payment, { work });
    expect(asSent(again)).to.deep.equal(asSent(first));
    expect((again as Outcome & { kind: 'answer' }).answer.body.equals(bytes)).to.equal(true);
    world.now += 5_001;
    world.desk.setView({ blockhash: FEE_PAYER, slot: 2000, height: 1900 });
    expectRefused(await world.redeem(payment), /no longer kept/, false);
    await world.ledger.prune();
    expectRefused(await world.redeem(payment), /no longer kept/, false);
    expect(world.facilitator).to.include({ verifies: 1, settles: 1 });
  });

  it('is saved before the facilitator is asked for the money', async () => {
    const payment = world.payment();
    let atSettle: unknown;
    world.facilitator.onSettle = async () => {
      atSettle = [
        await world.stateOf(payment),
        (await world.ledger.answer(payment.checked.id))?.body.toString(),
      ];
      return { kind: 'settled', signature: SIGNATURE };
    };
    await world.redeem(payment);
    expect(atSettle).to.deep.equal(['settling', '{"summary":"run 1"}']);
  });

  it('after a restart, too, and as v1 if it was paid as v2', async () => {
    const { transaction } = craftPayment(RECIPE);
    const first = await world.redeem(world.examined(v2Header(ACCEPTED, transaction)));
    await world.restart();
    const again = await world.redeem(world.examined(v1Header(DEVNET_V1, transaction)));
    expect(bodyOf(again)).to.equal(bodyOf(first));
    expect(again).to.have.nested.property('receipt.network', DEVNET_V1);
  });

  it('for 24 hours with a payment-identifier and less than 256 KB', async () => {
    const small = world.payment({ identifier: ID });
    const large = world.payment({ identifier: `${ID}2` });
    await world.redeem(small);
    await world.redeem(large, { work: async () => answer(Buffer.alloc(256 * 1024)) });
    world.now += 24 * 60 * MINUTE - 5_000;
    expect(bodyOf(await world.redeem(small))).to.equal('{"summary":"run 1"}');
    world.desk.setView({ blockhash: FEE_PAYER, slot: 2000, height: 1900 });
    expectRefused(await world.redeem(large), /no longer kept/, false);
    world.now += 5_001;
    world.desk.setView({ blockhash: FEE_PAYER, slot: 2000, height: 1900 });
    expectRefused(await world.redeem(small), /no longer kept/, false);
  });

  it('with another body or operation: refused, without a fresh blockhash', async () => {
    const payment = world.payment();
    await world.redeem(payment);
    expectRefused(await world.redeem(payment, { text: 'another' }), /with another body/, false);
    expectRefused(
      await world.redeem(payment, { operation: MINT_INFO }),
      /of summarize: sign a new one/,
      false,
    );
    expect(world.runs).to.equal(1);
  });
});

describe('charge: promise 4, an unknown settlement is never a 402', () => {
  eachInANewWorld();

  const doubts: Record<string, () => Settlement | Promise<Settlement>> = {
    duplicate_settlement: () => ({ kind: 'unknown', reason: 'duplicate_settlement', signature: '' }),
    transaction_failed: () => ({
      kind: 'unknown',
      reason: 'invalid_exact_svm_transaction_failed',
      signature: '',
    }),
    settlement_pending: () => ({ kind: 'unknown', reason: 'settlement_pending', signature: SIGNATURE }),
    'status 502': () => ({ kind: 'unknown', reason: 'status 502', signature: '' }),
    'a timeout': () => ({
      kind: 'unknown',
      reason: 'The operation was aborted due to timeout',
      signature: '',
    }),
    'a facilitator that throws': () => Promise.reject(new Error('bug')),
  };
  for (const [name, onSettle] of Object.entries(doubts)) {
    it(`${name}: 503 with a receipt, on every resend, across a restart, asked once`, async () => {
      const payment = world.payment();
      world.facilitator.onSettle = onSettle;
      expectPending(await world.redeem(payment));
      world.facilitator.onSettle = () => ({ kind: 'refused', reason: 'insufficient_funds' });
      expectPending(await world.redeem(payment));
      await world.restart();
      expectPending(await world.redeem(payment));
      world.now += 30 * MINUTE;
      expectPending(await world.redeem(payment));
      expect(await world.stateOf(payment)).to.equal('settling');
      expect(world.facilitator.settles).to.equal(1);
      expect(world.runs).to.equal(1);
    });
  }

  it('names the signature where the facilitator gave one', async () => {
    world.facilitator.onSettle = () => ({
      kind: 'unknown',
      reason: 'settlement_pending',
      signature: SIGNATURE,
    });
    expect(await world.redeem(world.payment())).to.have.nested.property('receipt.transaction', SIGNATURE);
  });

  it('a refusal that the ledger can not record is still in doubt', async () => {
    const payment = world.payment();
    world.facilitator.onSettle = () => ({ kind: 'refused', reason: 'insufficient_funds' });
    world.charge = world.newCharge({ ledger: faulty('release') });
    expectPending(await world.redeem(payment));
    expect(await world.stateOf(payment)).to.equal('settling');
  });

  it('a refusal that arrives after somebody else took the payment over is still in doubt', async () => {
    const payment = world.payment();
    world.facilitator.onSettle = async () => {
      world.now += 10 * MINUTE;
      expect(await world.ledger.adopt(payment.checked.id, MINUTE)).to.have.property('state', 'settling');
      return { kind: 'refused', reason: 'insufficient_funds' };
    };
    expectPending(await world.redeem(payment));
    expect(await world.stateOf(payment)).to.equal('settling');
  });

  it('refused for a listed reason on the first ask: 402 with a receipt, released, never claimed again', async () => {
    const payer = await world.knownPayer();
    const payment = world.payment({ payer });
    world.facilitator.onSettle = () => ({ kind: 'refused', reason: 'insufficient_funds' });
    const outcome = await world.redeem(payment);
    // A new signature over the same message would be the same payment, so no blockhash is handed out.
    expectRefused(outcome, /funds/, false);
    expect(outcome).to.have.nested.property('receipt.errorReason', 'insufficient_funds');
    expect(await world.stateOf(payment)).to.equal('released');
    expect(await world.ledger.payerKnown(payer.publicKey.toBase58())).to.equal(false);
    world.facilitator.onSettle = () => ({ kind: 'settled', signature: SIGNATURE });
    expectRefused(
      await world.redeem(payment),
      /was refused when it was settled \(insufficient_funds\)/,
      false,
    );
    expect(world.facilitator.settles).to.equal(1);
    expect(world.runs).to.equal(1);
  });
});

describe('charge: promise 8, nobody runs work on money that is not there', () => {
  eachInANewWorld();

  it('an unknown payer: verify comes first', async () => {
    const gate = new Gate();
    world.facilitator.onVerify = () => gate.wait({ kind: 'valid' });
    const outcome = world.redeem(world.payment());
    await gate.reached;
    await new Promise(resolve => setTimeout(resolve, 20));
    expect(world.runs).to.equal(0);
    gate.open();
    expect((await outcome).kind).to.equal('answer');
    expect(world.runs).to.equal(1);
  });

  it('a known payer: the work runs beside verify, and is stopped when verify says no', async () => {
    const payer = await world.knownPayer();
    const [verifying, working] = [new Gate(), new Gate()];
    world.facilitator.onVerify = () => verifying.wait({ kind: 'refused', reason: 'no' });
    let signal: AbortSignal | undefined;
    const outcome = world.redeem(world.payment({ payer }), {
      work: given => {
        signal = given;
        return working.wait(answer('{}'));
      },
    });
    await Promise.all([verifying.reached, working.reached]);
    verifying.open();
    expectRefused(await outcome, /refused by the facilitator: no/, true);
    expect(signal?.aborted).to.equal(true);
    working.open();
    expect(world.facilitator.settles).to.equal(0);
  });

  it('a payer that was refused is unknown again', async () => {
    const payer = await world.knownPayer();
    world.facilitator.onVerify = () => ({ kind: 'refused', reason: 'no' });
    await world.redeem(world.payment({ payer }));
    world.runs = 0;
    await world.redeem(world.payment({ payer }));
    expect(world.runs).to.equal(0);
  });

  it('too many unknown payers: 503, no facilitator call, payment untouched; known payers are not held up', async () => {
    const payer = await world.knownPayer();
    world.charge = world.newCharge({ unknownPayers: { rate: 0, burst: 2 } });
    for (let n = 0; n < 2; n++) expect((await world.redeem(world.payment())).kind).to.equal('answer');
    const payment = world.payment();
    expectUnavailable(await world.redeem(payment), /Too many new payers/);
    expect(world.facilitator.verifies).to.equal(2);
    expect(await world.stateOf(payment)).to.equal(undefined);
    expect((await world.redeem(world.payment({ payer }))).kind).to.equal('answer');
  });

  it('work of a new payer is not begun on a blockhash that dies before it is done: 402, not charged, free, and left to no wait', async () => {
    const known = await world.knownPayer();
    world.charge = world.newCharge({ blocksLeft: async () => 49 });
    const payer = Keypair.generate();
    const payment = world.payment({ payer });
    expectRefused(
      await world.redeem(payment),
      /^the blockhash is too old to outlive the work\. You were not charged; sign again/,
      true,
    );
    expect(world.runs).to.equal(0);
    expect(world.facilitator.settles).to.equal(0);
    const row = await world.ledger.find(payment.checked.id);
    expect(row).to.include({ state: 'claimed', runs: 0, leased: false, attended: false });
    expect((await world.redeem(world.payment({ payer: known }), { text: 'b' })).kind).to.equal('answer');
    const began = performance.now();
    world.charge = world.newCharge({ blocksLeft: async () => 50 });
    expect((await world.redeem(world.payment({ payer }))).kind, 'signed anew').to.equal('answer');
    expect(performance.now() - began).to.be.lessThan(1_000);
    expect((await world.ledger.find(payment.checked.id))?.aliasOf, 'a late copy').to.not.equal(null);
    world.charge = world.newCharge({ blocksLeft: async () => undefined });
    expect((await world.redeem(world.payment())).kind, 'age unknown').to.equal('answer');
  });

  it('a payer’s unsettled payments are capped in number', async () => {
    world.charge = world.newCharge({ maxUnsettledPerPayer: 3 });
    const payer = Keypair.generate();
    const gate = new Gate();
    const work = (): Promise<Answer> => gate.wait(answer('{}'));
    const outcomes = Array.from({ length: 5 }, () => world.redeem(world.payment({ payer }), { work }));
    const other = await world.redeem(world.payment());
    expect(other.kind).to.equal('answer');
    gate.open();
    const kinds = (await Promise.all(outcomes)).map(({ kind }) => kind);
    expect(kinds.filter(kind => kind === 'answer')).to.have.length(3);
    const late = world.payment({ payer });
    expect((await world.redeem(late)).kind, 'room again').to.equal('answer');
  });

  it('a payer’s unsettled payments are capped in money', async () => {
    const dear = { ...SUMMARIZE, price: { ...SUMMARIZE.price, atomic: 60_000_000n } };
    const payer = Keypair.generate();
    const gate = new Gate();
    const payment = (): Payment =>
      world.examined(
        v2Header(
          requirementsOf(dear, TERMS, FEE_PAYER),
          craftPayment({ ...RECIPE, payer, amount: 60_000_000n }).transaction,
        ),
        dear,
      );
    const first = world.redeem(payment(), { operation: dear, work: () => gate.wait(answer('{}')) });
    await gate.reached;
    const second = payment();
    expectUnavailable(await world.redeem(second, { operation: dear }), /Too much in unsettled payments/);
    expect(await world.stateOf(second)).to.equal(undefined);
    gate.open();
    expect((await first).kind).to.equal('answer');
  });
});

describe('charge: promise 10, once the money moved the answer goes out', () => {
  eachInANewWorld();

  it('the ledger fails after the settlement: the answer goes out, and the doubt is logged', async () => {
    const payment = world.payment();
    world.charge = world.newCharge({ ledger: faulty('deliver') });
    const outcome = await world.redeem(payment);
    expect(bodyOf(outcome)).to.equal('{"summary":"run 1"}');
    expect(outcome).to.have.nested.property('receipt.transaction', SIGNATURE);
    expect(world.logged).to.include('the ledger could not record a settlement');
    expect(await world.stateOf(payment)).to.equal('settling');
  });

  for (const method of ['claim', 'settle'] as const) {
    it(`the ledger fails at ${method}: 503, nothing settled, and the payment can be sent again`, async () => {
      const payment = world.payment();
      world.charge = world.newCharge({ ledger: faulty(method) });
      expectUnavailable(await world.redeem(payment), /could not be processed/);
      expect(world.facilitator.settles).to.equal(0);
      world.charge = world.newCharge();
      expect((await world.redeem(payment)).kind).to.equal('answer');
    });
  }

  it('a claim that was lost to another server is not settled', async () => {
    const payment = world.payment();
    const outcome = await world.redeem(payment, {
      work: async () => {
        world.now += 10 * MINUTE;
        const { checked } = payment;
        await world.ledger.claim({
          id: checked.id,
          operation: SUMMARIZE.id,
          requestHash: world.call(payment).requestHash,
          payer: checked.payer,
          amount: 10_000n,
          network: DEVNET,
          x402Version: 2,
          transaction: checked.transaction,
          flow: 'authorization',
          slot: 1,
          height: 1,
          leaseMs: 60_000,
          limits: { maxUnsettledPerPayer: 9, maxUnsettledAmountPerPayer: 10n ** 9n, maxRuns: 3 },
        });
        return answer('{}');
      },
      holdMs: 10 * MINUTE + 200,
    });
    expectUnavailable(outcome, /being worked on/);
    expect(world.facilitator.settles).to.equal(0);
  });
});

describe('charge: promise 11, payment-identifier', () => {
  eachInANewWorld();

  it('the same id, call and payer with a new signature: the stored answer, uncharged', async () => {
    const payer = Keypair.generate();
    const first = await world.redeem(world.payment({ payer, identifier: ID }));
    const again = await world.redeem(world.payment({ payer, identifier: ID }));
    expect(asSent(again)).to.deep.equal(asSent(first));
    expect(world.facilitator).to.include({ verifies: 1, settles: 1 });
  });

  it('the same id with another body: 400, uncharged', async () => {
    const payer = Keypair.generate();
    await world.redeem(world.payment({ payer, identifier: ID }));
    const outcome = await world.redeem(world.payment({ payer, identifier: ID }), { text: 'another' });
    expect(outcome).to.include({ kind: 'conflict' });
    expect(world.facilitator.settles).to.equal(1);
  });

  it('the same id while the first is being worked on waits for it; while its settlement is in doubt: 503 with a receipt', async () => {
    const payer = Keypair.generate();
    const gate = new Gate();
    const first = world.redeem(world.payment({ payer, identifier: ID }), {
      work: () => gate.wait(answer('{}')),
    });
    await gate.reached;
    const second = world.redeem(world.payment({ payer, identifier: ID }));
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    gate.open();
    expectPending(await first);
    expectPending(await second);
    expectPending(await world.redeem(world.payment({ payer, identifier: ID })));
    expect(world.facilitator.settles).to.equal(1);
  });

  it('the same id when its answer is no longer kept: told to use a new one, uncharged', async () => {
    const payer = Keypair.generate();
    await world.redeem(world.payment({ payer, identifier: ID }));
    world.now += 25 * 60 * MINUTE;
    world.desk.setView({ blockhash: FEE_PAYER, slot: 2000, height: 1900 });
    const outcome = await world.redeem(world.payment({ payer, identifier: ID }));
    expect(outcome).to.include({ kind: 'conflict' });
    expect(outcome)
      .to.have.property('error')
      .match(/no longer kept.*new id/);
    expect(world.facilitator.settles).to.equal(1);
  });

  it('ids are per payer', async () => {
    await world.redeem(world.payment({ identifier: ID }));
    expect(bodyOf(await world.redeem(world.payment({ identifier: ID })))).to.equal('{"summary":"run 2"}');
    expect(world.facilitator.settles).to.equal(2);
  });

  it('another id is always a new sale', async () => {
    const payer = Keypair.generate();
    await world.redeem(world.payment({ payer, identifier: ID }));
    await world.redeem(world.payment({ payer, identifier: `${ID}2` }));
    expect(world.facilitator.settles).to.equal(2);
  });

  it('a payment with an id is redeemed only with that same id, during its run and after', async () => {
    const { transaction } = craftPayment(RECIPE);
    const withId = world.examined(v2Header(ACCEPTED, transaction, withIdentifier(ID)));
    const thieves = [
      world.examined(v2Header(ACCEPTED, transaction)),
      world.examined(v1Header(DEVNET_V1, transaction)),
      world.examined(v2Header(ACCEPTED, transaction, withIdentifier(`${ID}2`))),
    ];
    const gate = new Gate();
    const first = world.redeem(withId, { work: () => gate.wait(answer('{}')) });
    await gate.reached;
    for (const thief of thieves) expectRefused(await world.redeem(thief), /only with that same id/, false);
    gate.open();
    await first;
    for (const thief of thieves) expectRefused(await world.redeem(thief), /only with that same id/, false);
    expect((await world.redeem(withId)).kind).to.equal('answer');
  });
});

describe('charge: callers that go away', () => {
  eachInANewWorld();

  it('every caller gone before settling: work aborted, not settled, the next try works', async () => {
    const payment = world.payment();
    const callers = [new AbortController(), new AbortController()];
    const gate = new Gate();
    let signal: AbortSignal | undefined;
    const work = (given: AbortSignal): Promise<Answer> => {
      signal = given;
      return gate.wait(answer('{}'));
    };
    const outcomes = callers.map(({ signal: gone }) => world.redeem(payment, { work, gone }));
    await gate.reached;
    callers[0]?.abort();
    expect(signal?.aborted, 'one is still there').to.equal(false);
    callers[1]?.abort();
    await until('the work is told to stop', () => signal?.aborted === true);
    // Sent again before the first run has ended.
    const next = world.redeem(payment);
    await Promise.all(outcomes);
    gate.open();
    expect(bodyOf(await next)).to.equal('{"summary":"run 1"}');
    expect(world.facilitator.settles).to.equal(1);
  });

  it('one of many gone: no effect on the others', async () => {
    const payment = world.payment();
    const gone = new AbortController();
    const gate = new Gate();
    const leaver = world.redeem(payment, { work: () => gate.wait(answer('{"n":1}')), gone: gone.signal });
    await gate.reached;
    const others = [1, 2, 3].map(() => world.redeem(payment));
    gone.abort();
    gate.open();
    for (const outcome of await Promise.all(others)) expect(bodyOf(outcome)).to.equal('{"n":1}');
    await leaver;
    expect(world.runs).to.equal(0);
    expect(world.facilitator.settles).to.equal(1);
  });

  it('gone before the work began: no work, and no run is counted', async () => {
    const payment = world.payment();
    for (let time = 0; time < 5; time++) {
      const gone = new AbortController();
      const gate = new Gate();
      world.facilitator.onVerify = () => gate.wait({ kind: 'valid' });
      const outcome = world.redeem(payment, { gone: gone.signal });
      await gate.reached;
      gone.abort();
      gate.open();
      await outcome;
    }
    await world.redeem(payment, { gone: AbortSignal.abort() });
    expect(world.runs).to.equal(0);
    expect(world.facilitator).to.include({ verifies: 5, settles: 0 });
    world.facilitator.onVerify = () => ({ kind: 'valid' });
    expect((await world.redeem(payment)).kind).to.equal('answer');
  });

  it('a known payer, gone after the work and before verify has ended: not settled, the next try works', async () => {
    const payment = world.payment({ payer: await world.knownPayer() });
    const gone = new AbortController();
    const gate = new Gate();
    world.facilitator.onVerify = () => gate.wait({ kind: 'valid' });
    const first = world.redeem(payment, { gone: gone.signal });
    await gate.reached;
    await new Promise(resolve => setTimeout(resolve, 20));
    expect(world.runs).to.equal(1);
    gone.abort();
    gate.open();
    await first;
    expect(world.facilitator.settles).to.equal(0);
    expect(bodyOf(await world.redeem(payment))).to.equal('{"summary":"run 2"}');
    expect(world.facilitator.settles).to.equal(1);
  });

  it('at most 512 wait for a run that everybody else has left', async () => {
    const payment = world.payment();
    const gone = new AbortController();
    const gate = new Gate();
    world.facilitator.onSettle = () => gate.wait({ kind: 'settled', signature: SIGNATURE });
    const first = world.redeem(payment, { gone: gone.signal });
    await gate.reached;
    gone.abort();
    const calls = Array.from({ length: 520 }, () => world.redeem(payment));
    const early: string[] = [];
    for (const call of calls) void call.then(({ kind }) => early.push(kind));
    const pause = (): Promise<void> => new Promise(resolve => setTimeout(resolve, 20));
    for (let n = 0; n < 250 && early.length < 8; n++) await pause();
    await pause();
    expect(early).to.deep.equal(Array.from({ length: 8 }, () => 'unavailable'));
    gate.open();
    await first;
    const kinds = (await Promise.all(calls)).map(({ kind }) => kind);
    expect(kinds.filter(kind => kind === 'answer')).to.have.length(512);
    expect(world.facilitator.settles).to.equal(1);
  });

  it('gone while the money moves: settled all the same, and the answer waits', async () => {
    const payment = world.payment();
    const gone = new AbortController();
    const gate = new Gate();
    world.facilitator.onSettle = () => gate.wait({ kind: 'settled', signature: SIGNATURE });
    const first = world.redeem(payment, { gone: gone.signal });
    await gate.reached;
    gone.abort();
    const again = world.redeem(payment);
    gate.open();
    await first;
    expect(bodyOf(await again)).to.equal('{"summary":"run 1"}');
    expect(world.facilitator.settles).to.equal(1);
    await world.charge.idle();
  });
});

describe('charge: offers', () => {
  eachInANewWorld();

  it('a fee payer that is no longer offered: refused, but what was delivered is handed out', async () => {
    const [sold, unsold] = [world.payment(), world.payment()];
    await world.redeem(sold);
    world.desk.setFeePayer(Keypair.generate().publicKey.toBase58());
    expect((await world.redeem(world.payment())).kind, 'for five minutes it still counts').to.equal('answer');
    world.now += 5 * MINUTE + 1;
    world.desk.setView({ blockhash: FEE_PAYER, slot: 2000, height: 1900 });
    expectRefused(await world.redeem(unsold), /fee payer .* was not offered/, true);
    expect(bodyOf(await world.redeem(sold))).to.equal('{"summary":"run 1"}');
  });

  it('a fee payer that is no longer offered while another server works on the payment: its answer, never 402', async () => {
    const gate = new Gate();
    const payment = world.payment();
    const first = world.redeem(payment, { work: () => gate.wait(answer('{}')) });
    await gate.reached;
    const desk = world.newDesk(Keypair.generate().publicKey.toBase58());
    const other = world.newCharge({ desk });
    const second = other.redeem(world.call(payment));
    gate.open();
    expect(bodyOf(await second)).to.equal(bodyOf(await first));
    desk.close();
  });

  it('a fee payer that was never offered is refused', async () => {
    const { transaction } = craftPayment({ ...RECIPE, feePayer: Keypair.generate().publicKey.toBase58() });
    expectRefused(
      await world.redeem(world.examined(v2Header(ACCEPTED, transaction))),
      /was not offered/,
      true,
    );
    expect(world.facilitator.verifies).to.equal(0);
  });

  it('no view of the chain: 503, but what was delivered is handed out', async () => {
    const sold = world.payment();
    await world.redeem(sold);
    world.now += MINUTE + 1;
    expectUnavailable(await world.redeem(world.payment()), /chain can't be reached/);
    expect(bodyOf(await world.redeem(sold))).to.equal('{"summary":"run 1"}');
    expect(world.facilitator.verifies).to.equal(1);
  });

  it('examine asks nobody, and says what does not match', () => {
    const { transaction } = craftPayment(RECIPE);
    const errorOf = (header: string, of = SUMMARIZE): string => {
      const result = world.charge.examine({ 'payment-signature': header }, of);
      return 'error' in result ? result.error : result.kind;
    };
    expect(world.charge.examine({}, SUMMARIZE).kind).to.equal('unpaid');
    expect(errorOf('!')).to.match(/not base64/);
    for (const [change, error] of [
      [{ amount: '9999' }, /amount: accepted 9999, the price is 10000/],
      [{ amount: undefined }, /amount: accepted undefined/],
      [{ amount: '010000' }, /amount/],
      [{ asset: TERMS.payTo }, /asset: accepted/],
      [{ payTo: FEE_PAYER }, /payTo: accepted/],
      [{ network: 'solana:other' }, /network: 'solana:other' is not offered/],
      [{ scheme: 'upto' }, /scheme: 'upto' is not offered/],
      [{ extra: { paymentFlow: 'upfront' } }, /paymentFlow: accepted upfront, must be authorization/],
    ] as [object, RegExp][]) {
      expect(errorOf(v2Header({ ...ACCEPTED, ...change }, transaction))).to.match(error);
    }
    expect(errorOf(v1Header('base', transaction))).to.match(/network: 'base' is not offered/);
    expect(errorOf(v1Header(DEVNET_V1, transaction), operation('brandFeedback'))).to.match(
      /pays 10000, must be exactly 500000/,
    );
    expect(
      errorOf(
        v2Header(
          { ...ACCEPTED, network: DEVNET_V1, amount: undefined, maxAmountRequired: '10000' },
          transaction,
        ),
      ),
    ).to.equal('payment');
    expect(world.facilitator).to.include({ verifies: 0, settles: 0 });
  });

  it('a refusal that quotes the buyer still fits into a header', () => {
    const { transaction } = craftPayment(RECIPE);
    for (const network of ['\u0001'.repeat(256), '\u{1f600}'.repeat(120), '"\\'.repeat(128)]) {
      const result = world.charge.examine(
        { 'x-payment': v2Header({ ...ACCEPTED, network }, transaction) },
        SUMMARIZE,
      );
      if (result.kind !== 'refused') throw new Error(result.kind);
      for (const one of paid) {
        expect(world.desk.refusal(one, 2, result.error, true).header.length).to.be.at.most(MAX_HEADER_BYTES);
      }
    }
  });

  it('a clock that is set back does not empty a bucket', () => {
    let now = 1_000_000;
    const bucket = new SharedBucket({ rate: 1, burst: 3, now: () => now });
    now -= 900_000;
    expect(['a', 'b', 'c', 'd'].map(source => bucket.take(source))).to.deep.equal([true, true, true, false]);
    now += 2_000;
    expect(['e', 'f', 'g'].map(source => bucket.take(source))).to.deep.equal([true, true, false]);
  });
});
