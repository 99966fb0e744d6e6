import { expect } from 'chai';
import {
  FacilitatorFault,
  FacilitatorUnreachable,
  type Facilitator,
} from '../../src/facilitators/facilitator.js';
import type { SettleResult } from '../../src/rails/rail.js';
import { httpFacilitator } from '../../src/facilitators/http-facilitator.js';
import { DEVNET } from '../support/craft.js';
import { facilitatorRequest, FakeHttpFacilitator } from '../support/http-facilitator.js';

const SIGNATURE = '5'.repeat(88);
const FEE_PAYER = 'F'.repeat(44);
const ASK = facilitatorRequest(FEE_PAYER);
const DEADLINES = { supportedMs: 300, verifyMs: 300, settleMs: 300 };

describe('facilitator over HTTP', () => {
  let fake: FakeHttpFacilitator;
  let url: string;
  let facilitator: Facilitator;

  beforeEach(async () => {
    fake = new FakeHttpFacilitator();
    url = await fake.open();
    facilitator = httpFacilitator(url, DEADLINES);
  });

  afterEach(async () => {
    await facilitator.close();
    fake.close();
  });

  const faults: [string, () => void][] = [
    ['answers HTML', () => fake.says(200, '<html>Bad gateway</html>')],
    ['answers nothing', () => fake.says(200, '')],
    ['answers null', () => fake.says(200, 'null')],
    ['answers a number', () => fake.says(200, '1')],
    ['answers a list', () => fake.says(200, [{ success: true, isValid: true, transaction: SIGNATURE }])],
    ['answers another object', () => fake.says(200, { hello: 'world' })],
    [
      'answers with texts instead of booleans',
      () => fake.says(200, { success: 'true', isValid: 'true', transaction: SIGNATURE }),
    ],
    ['answers 500', () => fake.says(500, { error: 'oops' })],
    [
      'answers 500 with a success',
      () => fake.says(500, { success: true, isValid: true, transaction: SIGNATURE }),
    ],
    [
      'answers 503 with a refusal',
      () =>
        fake.says(503, {
          success: false,
          isValid: false,
          invalidReason: 'insufficient_funds',
          errorReason: 'insufficient_funds',
        }),
    ],
    ['answers 429', () => fake.says(429, { isValid: false, errorReason: 'slow down' })],
    ['answers 404', () => fake.says(404, { error: 'not found' })],
    [
      'redirects',
      () =>
        (fake.reply = (_request, response) => response.writeHead(307, { location: '/elsewhere' }).end('{}')),
    ],
    ['hangs up before it answers', () => (fake.reply = request => request.socket.destroy())],
    [
      'hangs up in the middle of its answer',
      () =>
        (fake.reply = (request, response) => {
          response.writeHead(200, { 'content-length': '1000' });
          response.write('{"success":true,"isValid":true,');
          setTimeout(() => request.socket.destroy(), 10);
        }),
    ],
    ['never answers', () => (fake.reply = () => {})],
    [
      'sends its answer byte by byte without end',
      () =>
        (fake.reply = (request, response) => {
          response.writeHead(200);
          const timer = setInterval(() => response.write(' '), 20);
          request.socket.once('close', () => clearInterval(timer));
        }),
    ],
    [
      'sends more than the size limit',
      () =>
        (fake.reply = (_request, response) => {
          response.writeHead(200);
          response.end(
            JSON.stringify({
              success: true,
              isValid: true,
              transaction: SIGNATURE,
              more: 'x'.repeat(300_000),
            }),
          );
        }),
    ],
  ];

  describe('settle: what is not certain is unknown', () => {
    for (const [name, prepare] of faults) {
      it(`when the facilitator ${name}, and it gets exactly one request`, async () => {
        prepare();
        const settlement = await facilitator.settle(ASK);
        expect(settlement.kind).to.equal('unknown');
        expect(fake.seen.map(({ url: path }) => path)).to.deep.equal(['/settle']);
      });
    }

    it('a request is never repeated when a kept connection dies', async () => {
      fake.says(200, { success: true, transaction: SIGNATURE });
      expect((await facilitator.settle(ASK)).kind).to.equal('settled');
      fake.reply = request => request.socket.destroy();
      expect((await facilitator.settle(ASK)).kind).to.equal('unknown');
      await new Promise(resolve => setTimeout(resolve, 50));
      expect(fake.seen).to.have.length(2);
    });

    it('when nothing listens at its address', async () => {
      fake.close();
      expect((await facilitator.settle(ASK)).kind).to.equal('unknown');
    });

    const doubtful: [string, number, object][] = [
      ['success without a signature', 200, { success: true, transaction: '' }],
      ['success with an invalid signature', 200, { success: true, transaction: 'x'.repeat(10_000) }],
      [
        'a signature with success false',
        200,
        { success: false, errorReason: 'insufficient_funds', transaction: SIGNATURE },
      ],
      [
        'something that is no signature with success false',
        200,
        { success: false, errorReason: 'insufficient_funds', transaction: 'sent' },
      ],
      ['duplicate_settlement', 200, { success: false, errorReason: 'duplicate_settlement', transaction: '' }],
      [
        'transaction_failed',
        200,
        { success: false, errorReason: 'invalid_exact_svm_transaction_failed', transaction: '' },
      ],
      [
        'settlement_pending',
        200,
        { success: false, errorReason: 'settlement_pending', transaction: SIGNATURE },
      ],
      ['an unknown reason', 200, { success: false, errorReason: 'because', transaction: '' }],
      ['no reason', 200, { success: false, transaction: '' }],
      [
        'a listed reason with 400',
        400,
        { success: false, errorReason: 'insufficient_funds', transaction: '' },
      ],
      ['a listed reason without success', 200, { errorReason: 'insufficient_funds', transaction: '' }],
    ];
    for (const [name, status, body] of doubtful) {
      it(`on ${name}`, async () => {
        fake.says(status, body);
        const settlement = await facilitator.settle(ASK);
        expect(settlement.kind).to.equal('unknown');
        const signed = 'transaction' in body && body.transaction === SIGNATURE;
        expect((settlement as SettleResult & { kind: 'unknown' }).signature).to.equal(
          signed ? SIGNATURE : '',
        );
      });
    }

    it("the facilitator's message is shortened and stripped of control characters", async () => {
      fake.says(200, { success: false, errorReason: `a\r\nSet-Cookie: x\u0000é${'y'.repeat(5000)}` });
      const settlement = await facilitator.settle(ASK);
      expect((settlement as SettleResult & { kind: 'unknown' }).reason).to.match(/^[\x20-\x7e]{1,300}$/);
    });
  });

  describe('settle: what is certain', () => {
    for (const [what, errorReason] of [
      ['a failed simulation', 'invalid_exact_svm_transaction_simulation_failed'],
      ['an empty wallet', 'insufficient_funds'],
    ]) {
      it(`${what} is a refusal before signing, but a landed transfer may cause it, too`, async () => {
        fake.says(200, { success: false, errorReason, transaction: '' });
        expect(await facilitator.settle(ASK)).to.deep.equal({
          kind: 'refused',
          reason: errorReason,
          mayHaveLanded: true,
        });
      });
    }

    it('counts as settled on success with a signature', async () => {
      fake.says(200, { success: true, transaction: SIGNATURE, network: DEVNET, payer: 'p' });
      expect(await facilitator.settle(ASK)).to.deep.equal({ kind: 'settled', signature: SIGNATURE });
    });

    for (const reason of [
      'invalid_exact_svm_payload_amount_mismatch',
      'invalid_exact_svm_payload_signature_invalid',
    ]) {
      it(`counts as refused on ${reason}`, async () => {
        fake.says(200, { success: false, errorReason: reason, transaction: '', network: DEVNET });
        expect(await facilitator.settle(ASK)).to.deep.equal({ kind: 'refused', reason });
      });
    }

    it('sends our own offer in x402 v2, under the path of its URL', async () => {
      await facilitator.close();
      facilitator = httpFacilitator(`${url}/x402/`, DEADLINES);
      fake.says(200, { success: true, transaction: SIGNATURE });
      await facilitator.settle(ASK);
      const payment = { x402Version: 2, payload: { transaction: 'AAAA' }, accepted: ASK.requirements };
      expect(fake.seen.map(({ headers: _, ...sent }) => sent)).to.deep.equal([
        {
          url: '/x402/settle',
          method: 'POST',
          body: { x402Version: 2, paymentPayload: payment, paymentRequirements: ASK.requirements },
        },
      ]);
    });
  });

  describe('verify', () => {
    for (const [name, prepare] of faults) {
      it(`is unavailable when the facilitator ${name}`, async () => {
        prepare();
        expect((await facilitator.verify(ASK)).kind).to.equal('unavailable');
        expect(fake.seen).to.have.length(1);
      });
    }

    it('is valid on status 200 only', async () => {
      fake.says(200, { isValid: true, payer: 'p' });
      expect(await facilitator.verify(ASK)).to.deep.equal({ kind: 'valid' });
      fake.says(402, { isValid: true });
      expect((await facilitator.verify(ASK)).kind).to.equal('unavailable');
    });

    for (const status of [200, 400, 402, 412]) {
      it(`is refused with isValid false and ${status}`, async () => {
        fake.says(status, { isValid: false, invalidReason: 'insufficient_funds', invalidMessage: 'has\n0' });
        expect(await facilitator.verify(ASK)).to.deep.equal({
          kind: 'refused',
          reason: 'insufficient_funds: has 0',
        });
      });
    }

    it('is also refused if no readable reason is given', async () => {
      fake.says(200, { isValid: false, invalidReason: { no: 'text' } });
      expect(await facilitator.verify(ASK)).to.deep.equal({
        kind: 'refused',
        reason: 'refused without a reason',
      });
    });
  });

  describe('supported', () => {
    const ours = { x402Version: 2, scheme: 'exact', network: DEVNET, extra: { feePayer: FEE_PAYER } };
    const rejection = async (): Promise<Error> => {
      try {
        await facilitator.supported(DEVNET);
      } catch (error) {
        return error as Error;
      }
      throw new Error('expected a rejection');
    };

    it('finds our kind among others', async () => {
      const kinds = [
        null,
        'exact',
        { ...ours, x402Version: 1, network: 'solana-devnet', extra: { feePayer: 'A'.repeat(44) } },
        { ...ours, network: 'eip155:8453' },
        { ...ours, scheme: 'upto', extra: { feePayer: 'B'.repeat(44) } },
        { ...ours, network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', extra: { feePayer: 'C'.repeat(44) } },
        ours,
      ];
      fake.says(200, { kinds, extensions: [], signers: {} });
      expect(await facilitator.supported(DEVNET)).to.deep.equal({ feePayer: FEE_PAYER, signers: [] });
    });

    it('lists all its fee payers', async () => {
      const [one, two] = ['2'.repeat(44), '3'.repeat(44)];
      const signers = { 'solana:*': [one, 7, 'no address', two], 'eip155:*': ['0x00'], 'solana:x': 'none' };
      fake.says(200, { kinds: [ours], signers });
      expect((await facilitator.supported(DEVNET)).signers).to.deep.equal([one, two]);
    });

    it('takes the kind that names a fee payer', async () => {
      fake.says(200, { kinds: [{ ...ours, extra: undefined }, { ...ours, extra: null }, ours] });
      expect(await facilitator.supported(DEVNET)).to.deep.equal({ feePayer: FEE_PAYER, signers: [] });
    });

    const useless: [string, unknown, RegExp][] = [
      ['only v1', { kinds: [{ ...ours, x402Version: 1 }] }, /does not support x402 v2.*set FACILITATOR_URL/],
      ['another network', { kinds: [{ ...ours, network: 'solana:other' }] }, /does not support/],
      ['no kinds', { kinds: [] }, /does not support/],
      ['kinds of a wrong type', { kinds: 'all' }, /does not support/],
      ['no fee payer', { kinds: [{ ...ours, extra: {} }] }, /names no fee payer/],
      [
        'a fee payer that is no address',
        { kinds: [{ ...ours, extra: { feePayer: 'me' } }] },
        /names no fee payer/,
      ],
    ];
    for (const [name, body, message] of useless) {
      it(`reports a configuration error on ${name}`, async () => {
        fake.says(200, body);
        const error = await rejection();
        expect(error).to.be.instanceOf(FacilitatorFault);
        expect(error.message).to.match(message);
      });
    }

    for (const [name, prepare] of [
      ['500', () => fake.says(500, { kinds: [ours] })],
      ['404', () => fake.says(404, {})],
      ['HTML', () => fake.says(200, '<html>')],
      ['silence', () => (fake.reply = () => {})],
      ['nobody', () => fake.close()],
    ] as [string, () => void][]) {
      it(`counts as unreachable on ${name}`, async () => {
        prepare();
        expect(await rejection()).to.be.instanceOf(FacilitatorUnreachable);
      });
    }
  });

  describe('what an answer says about the facilitator itself:', () => {
    const troubles: [string, () => void, object][] = [
      ['429 asks to wait', () => fake.says(429, {}), { rest: true }],
      ['500 may be about the payment', () => fake.says(500, {}), { rest: false, answered: true }],
      ['so may what is not JSON', () => fake.says(200, '<html>'), { rest: false, answered: true }],
      ['502 is no answer of its own', () => fake.says(502, 'Bad gateway'), { rest: false }],
      ['no answer is a failure', () => (fake.reply = request => request.socket.destroy()), { rest: false }],
      [
        'Retry-After says how long to wait',
        () =>
          (fake.reply = (_request, response) => response.writeHead(503, { 'retry-after': '7' }).end('{}')),
        { rest: true, seconds: 7 },
      ],
      [
        'a wait has a bound',
        () =>
          (fake.reply = (_request, response) => response.writeHead(429, { 'retry-after': '9999' }).end('')),
        { rest: true, seconds: 120 },
      ],
    ];
    for (const [name, prepare, trouble] of troubles) {
      it(name, async () => {
        prepare();
        expect(await facilitator.verify(ASK)).to.deep.include({ kind: 'unavailable', trouble });
        expect(await facilitator.settle(ASK)).to.deep.include({ kind: 'unknown', trouble });
        const error: unknown = await facilitator.supported(DEVNET).catch((caught: unknown) => caught);
        expect(error).to.be.instanceOf(FacilitatorUnreachable).and.to.deep.include({ trouble });
      });
    }

    it("a facilitator that can't be connected to is paused", async () => {
      fake.close();
      expect(await facilitator.verify(ASK)).to.deep.include({ trouble: { rest: true } });
    });

    it('an answer about the payment says nothing about the facilitator', async () => {
      fake.says(200, { success: false, errorReason: 'duplicate_settlement', transaction: '' });
      expect(await facilitator.settle(ASK)).to.not.have.property('trouble');
    });
  });
});
