import { expect } from 'chai';
import type { Payment } from '../../src/ledger/store.js';
import { nextStep, nextStepForIdentifier, moneyNote, type RequestedCall } from '../../src/sale/next-step.js';

const NOW = 1_800_000_000_000;
const HASH = 'a'.repeat(64);
const ASKED: RequestedCall = {
  operation: 'summarize',
  requestHash: HASH,
  identifier: null,
  another: 'a memo',
};
const IDENTIFIER = 'order-0000000000001';

function row(change: Partial<Payment> = {}): Payment {
  return {
    id: '1'.repeat(64),
    operation: 'summarize',
    requestHash: HASH,
    request: null,
    payer: 'payer',
    amount: 10_000n,
    network: 'solana:x',
    method: 'x402-v2',
    evidence: '',
    identifier: null,
    flow: 'authorization',
    state: 'claimed',
    claim: 1,
    owner: 'server',
    leaseUntil: 0,
    callerUntil: 0,
    leased: false,
    attended: false,
    callers: 1,
    writtenTo: null,
    runs: 1,
    asks: 0,
    after: 1,
    position: 1,
    settlement: null,
    reason: null,
    aliasOf: null,
    createdAt: NOW,
    settlingAt: null,
    settledAt: null,
    decidedAt: null,
    writtenAt: null,
    auditedAt: null,
    answerExpiresAt: null,
    repaid: 0n,
    repaying: 0n,
    repaidBy: null,
    requestId: null,
    ...change,
  };
}

/** The result of a decision, in one line. */
function verdictOf(judgement: ReturnType<typeof nextStep>): string {
  if (judgement.kind === 'sell') return judgement.kind;
  if (judgement.kind !== 'over') return `${judgement.kind}${judgement.proven ? ', proven' : ''}`;
  const { outcome } = judgement;
  if (outcome.kind === 'failed') return `${outcome.answer.status} ${outcome.answer.body.toString()}`;
  return `${outcome.kind}: ${outcome.error}`;
}

const kept = { answerExpiresAt: NOW + 1 };
/** Each state in the ledger, and what it means for the same call. */
const STATES: [string, Partial<Payment>, RegExp][] = [
  ['claimed, and its worker is gone', { state: 'claimed' }, /^sell$/],
  ['claimed and worked on', { state: 'claimed', leased: true }, /^wait$/],
  ['settling and worked on', { state: 'settling', leased: true }, /^wait$/],
  ['settling, outcome unknown', { state: 'settling' }, /^ask$/],
  ['owed for its work, worked on', { state: 'owed', leased: true }, /^wait$/],
  ['owed for its work', { state: 'owed' }, /^redo$/],
  ['owed as an order', { state: 'owed', flow: 'upfront' }, /^order$/],
  ['owed as an order, worked on', { state: 'owed', flow: 'upfront', leased: true }, /^order$/],
  ['delivered', { state: 'delivered', ...kept }, /^answer$/],
  ['delivered, answer expired', { state: 'delivered', answerExpiresAt: NOW }, /^refused: .*no longer kept/],
  ['delivered, answer pruned', { state: 'delivered' }, /^refused: .*no longer kept/],
  [
    'released',
    { state: 'released', reason: 'no funds' },
    /^refused: .*refused when it was settled \(no funds\)/,
  ],
  ['refunded', { state: 'refunded', reason: 'sorry' }, /^502 .*refunded \(sorry\)/],
];

describe('what a payment buys, by what the ledger knows about it', () => {
  it("a payment that the ledger does not know buys at today's offer", () => {
    expect(nextStep({ row: undefined, target: undefined }, ASKED, NOW)).to.deep.equal({ kind: 'sell' });
  });

  for (const [name, change, verdict] of STATES) {
    it(`${name}: for the same call, the payment gets what its state implies`, () => {
      expect(verdictOf(nextStep({ row: row(change), target: undefined }, ASKED, NOW))).to.match(verdict);
    });

    it(`${name}: for another body or operation, the payment is refused unless nothing was sold`, () => {
      for (const other of [{ requestHash: 'b'.repeat(64) }, { operation: 'solMintInfo' }]) {
        const judged = verdictOf(
          nextStep({ row: row(change), target: undefined }, { ...ASKED, ...other }, NOW),
        );
        expect(judged).to.match(
          verdict.test('sell') ? /^sell$/ : /^refused: the same transaction was sent for another call/,
        );
      }
    });

    it(`${name}: a payment that was sent with a payment-identifier is redeemed only with it`, () => {
      const withId = { row: row({ ...change, identifier: IDENTIFIER }), target: undefined };
      const refused = verdict.test('sell') ? /^sell$/ : /^refused: .*payment-identifier/;
      expect(verdictOf(nextStep(withId, ASKED, NOW))).to.match(refused);
      expect(verdictOf(nextStep(withId, { ...ASKED, identifier: 'another-identifier' }, NOW))).to.match(
        refused,
      );
      expect(verdictOf(nextStep(withId, { ...ASKED, identifier: IDENTIFIER }, NOW))).to.match(verdict);
    });

    if (!verdict.test('sell')) {
      it(`${name}: an alias of the payment has the same result, and the sender must be the payer`, () => {
        const target = row({ ...change, id: '2'.repeat(64) });
        const judged = nextStep({ row: row({ aliasOf: target.id }), target }, ASKED, NOW);
        expect(verdictOf(judged).replace(', proven', '')).to.match(verdict);
        if ('proven' in judged) expect(judged).to.include({ proven: true, row: target });
      });
    }
  }

  it('an alias never buys the call itself, and an alias whose target is gone is refused', () => {
    const judged = nextStep({ row: row({ aliasOf: '2'.repeat(64) }), target: undefined }, ASKED, NOW);
    expect(verdictOf(judged)).to.match(/^refused: .*no longer kept/);
  });
});

describe('what a payment buys if its payment-identifier was used before', () => {
  const used = row({ state: 'delivered', identifier: IDENTIFIER, ...kept });
  const asked = { ...ASKED, identifier: IDENTIFIER };

  it('for the same call, it redeems the earlier sale, and the new signer must be the payer', () => {
    expect(verdictOf(nextStepForIdentifier(used, asked, NOW))).to.equal('answer, proven');
  });

  it('for another call, or once the answer is gone, it gets a 400, uncharged', () => {
    expect(verdictOf(nextStepForIdentifier(used, { ...asked, requestHash: 'b'.repeat(64) }, NOW))).to.match(
      /^invalid: .*another call. You were not charged/,
    );
    expect(verdictOf(nextStepForIdentifier(used, asked, NOW + 1))).to.match(
      /^invalid: .*no longer kept. You were not charged/,
    );
  });
});

describe('what the answer to an invalid body says about the money', () => {
  it('it says “not charged” only if the ledger does', () => {
    for (const uncharged of [undefined, row(), row({ leased: true }), row({ state: 'released' })])
      expect(moneyNote(uncharged)).to.match(/^You were not charged/);
    const charged: Partial<Payment>[] = [
      { state: 'settling' },
      { state: 'owed' },
      { state: 'delivered', ...kept },
      { state: 'refunded' },
      { aliasOf: '2'.repeat(64) },
    ];
    for (const change of charged) expect(moneyNote(row(change))).not.to.match(/not charged/i);
  });
});
