import { expect } from 'chai';
import { servePaidCall, type ArrivedCall, type PaidCallParts } from '../../src/http/paid-calls.js';
import { SourceLimits, TOO_MANY_CALLS } from '../../src/http/source-limits.js';
import { UNOBSERVED, type Event } from '../../src/observe/observer.js';
import type { PaymentCheck } from '../../src/sale/check-payment.js';
import {
  facilitatorDown,
  failedToProcess,
  failure,
  inProgress,
  overLimit,
  refused,
  unavailable,
  type Outcome,
} from '../../src/sale/outcome.js';
import { RELEASED } from '../support/sold.js';

const USDC_0_01 = { atomic: 10_000n };
const FAR = '203.0.113.7';
const BUDGET = 1_000;
const THROTTLED = { kind: 'throttled', error: TOO_MANY_CALLS, retryAfterSeconds: 1 };
const PAYMENT = { version: 2, identifier: null, checked: { id: 'id', payer: 'payer' } };

/** The results of consecutive payment checks: first those in `checks`, one after the other, then always `check`. */
type Answers = { check: object; checks?: object[]; outcome?: Outcome; known?: boolean; operation?: object };

/** A shop whose charge returns given results, and a source that calls it while no time passes. */
function limitedBy({ check, outcome, known = false, ...more }: Answers) {
  const { checks = [], operation = RELEASED.paid[0] } = more;
  const asked = { known: 0, processed: 0, turnedAway: 0 };
  const limits = new SourceLimits({ trustedProxies: 0 }, () => 0);
  const charge = {
    checkPayment: async () => (checks.shift() ?? check) as PaymentCheck,
    atOfferedPrice: async () => undefined,
    isKnown: async () => {
      asked.known += 1;
      return known;
    },
    turnAway: async (_payment: unknown, why: string, seconds: number) => {
      asked.turnedAway += 1;
      return unavailable(why, seconds);
    },
    process: async () => {
      asked.processed += 1;
      return outcome;
    },
  };
  const told: string[] = [];
  const observer = { ...UNOBSERVED, tell: ({ kind }: Event) => void told.push(kind) };
  const log = { error() {} };
  const parts = { charge, limits, observer, handlers: {}, log, closing: new AbortController().signal };
  const call = {
    route: {},
    operation,
    carrier: { headers: {} },
    transport: 'mcp',
    requestId: 'r',
    traceHeaders: {},
    source: FAR,
    read: async () => ({ ok: true, asked: { params: {}, query: {}, body: {} } }),
    gone: new AbortController().signal,
    holdMs: 0,
  };
  const serve = () => servePaidCall(parts as unknown as PaidCallParts, call as unknown as ArrivedCall);
  return { limits, asked, serve, told };
}

describe("how much a call counts against its source's limit", () => {
  it('each unpaid call that no fast path answers, such as one over MCP, counts as one, and is refused above the limit', async () => {
    const { serve } = limitedBy({ check: { kind: 'unpaid' } });
    for (let n = 0; n < BUDGET; n += 1) expect((await serve()).kind).to.equal('unpaid');
    expect(await serve()).to.deep.equal(THROTTLED);
  });

  for (const [what, check] of [
    ['that cannot be read', { kind: 'refused', version: 2, error: 'not base64' }],
    ['for another offer', { kind: 'mismatch', error: 'amount', payment: PAYMENT }],
  ] as const)
    it(`a payment ${what} counts as ten, and is refused once the limit is used up`, async () => {
      const { serve, asked } = limitedBy({ check });
      for (let n = 0; n < BUDGET / 10; n += 1) expect((await serve()).kind).to.equal('rejected');
      for (let n = 0; n < 3; n += 1) expect(await serve()).to.deep.equal(THROTTLED);
      expect([asked.processed, asked.turnedAway]).to.deep.equal([0, 0]);
    });

  for (const [what, check] of [
    ['cannot be seen', { kind: 'unavailable', error: 'not seen', retryAfterSeconds: 2, made: true }],
    ['bought nothing', { kind: 'refused', error: 'it pays too little', made: true }],
    ['pays for another offer', { kind: 'mismatch', error: 'amount', payment: { ...PAYMENT, moved: true } }],
    [
      'may be on the chain',
      { kind: 'mismatch', error: 'amount', payment: { ...PAYMENT, checked: { selfPaid: true } } },
    ],
  ] as const)
    it(`a buyer who made, or may have made, a transfer that ${what} is never told that nothing was charged`, async () => {
      const { limits, serve } = limitedBy({ check });
      for (let n = 0; n < BUDGET; n += 1) limits.failed(FAR);
      const result = await serve();
      expect(result.kind === 'throttled' && result.error).to.match(
        /Do not pay again: send the same credential/,
      );
    });

  it("a transfer that was found, but can't be looked up again once the price of the call is known, gets a 503", async () => {
    const pricing = { needsBody: true, least: USDC_0_01, most: USDC_0_01, quote: () => USDC_0_01 };
    const unseen = { kind: 'unavailable', error: 'Too many transfers', retryAfterSeconds: 2, made: true };
    const { serve } = limitedBy({
      checks: [{ kind: 'payment', payment: { ...PAYMENT, moved: true } }],
      check: unseen,
      operation: { ...RELEASED.paid[0], pricing },
    });
    const result = await serve();
    expect(result.kind).to.equal('unpriced');
    expect(result.kind === 'unpriced' && result.answer).to.deep.include({ status: 503 });
  });

  it('a transfer for a call whose price is unknown is not reported as “not charged”', async () => {
    const pricing = { needsBody: true, quote: () => Promise.reject(new Error('no price')) };
    const { serve } = limitedBy({
      check: { kind: 'payment', payment: { ...PAYMENT, moved: true } },
      operation: { ...RELEASED.paid[0], pricing },
    });
    const result = await serve();
    expect(result.kind === 'unpriced' && result.answer.body.toString()).to.match(
      /transfer has moved the money, but has bought nothing yet/,
    );
  });

  it('a payment that the ledger knows is served, however far its source is over the limit', async () => {
    const outcome = inProgress();
    for (const kind of ['payment', 'mismatch']) {
      const { limits, serve } = limitedBy({
        check: { kind, error: 'amount', payment: PAYMENT },
        outcome,
        known: true,
      });
      for (let n = 0; n < BUDGET; n += 1) limits.failed(FAR);
      expect(await serve(), kind).to.deep.include({ kind: 'charged', outcome });
    }
  });

  it('a new payment from a source that is over its limit is refused without being processed', async () => {
    const { limits, asked, serve, told } = limitedBy({ check: { kind: 'payment', payment: PAYMENT } });
    for (let n = 0; n < BUDGET; n += 1) limits.failed(FAR);
    expect((await serve()).kind).to.equal('charged');
    expect(asked).to.deep.equal({ known: 1, processed: 0, turnedAway: 1 });
    expect(told, 'one line for each call would fill the log').to.deep.equal([]);
  });

  const faults: [string, Outcome, boolean][] = [
    ['a refused payment', refused('funds: the payer has too little USDC'), true],
    ['an invalid body', { kind: 'invalid', error: 'text is missing' }, true],
    ['an input that cannot be served', { kind: 'failed', answer: failure(400, 'no such mint') }, true],
    ['a facilitator that is down', facilitatorDown({ name: 'f', retryAfterSeconds: 5 }), false],
    [
      'a facilitator that is down beside another',
      facilitatorDown({ name: 'f', retryAfterSeconds: 5, instead: 'sign a new one' }),
      false,
    ],
    ['a charge that failed', failedToProcess(), false],
    ['work that failed too often', overLimit('runs'), false],
    ['a full store of answers', overLimit('answers'), false],
    ['a backend that failed', { kind: 'failed', answer: failure(502, 'The backend failed') }, false],
    ['a busy backend', { kind: 'failed', answer: failure(503, 'Busy') }, false],
  ];
  for (const [what, outcome, counts] of faults)
    it(`${what} ${counts ? 'counts' : 'does not count'} as its source's failure`, async () => {
      const { limits, serve } = limitedBy({ check: { kind: 'payment', payment: PAYMENT }, outcome });
      for (let n = 0; n < BUDGET / 10; n += 1) await serve();
      expect(limits.wait(FAR)).to.equal(counts ? 1 : 0);
    });
});
