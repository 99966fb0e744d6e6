import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { servedContract } from '../../../src/documents/discovery.js';
import { llmsTexts } from '../../../src/documents/llms-text.js';
import { Methods } from '../../../src/methods/methods.js';
import { mppMethod } from '../../../src/methods/mpp/mpp.js';
import { shopMethods } from '../../../src/methods/shop-methods.js';
import { ChallengeIds } from '../../../src/methods/mpp/challenge-ids.js';
import { checkPayment, type PaymentCheck } from '../../../src/sale/check-payment.js';
import { TransactionChecker } from '../../../src/rails/solana/transaction.js';
import { MadePayments } from '../../../src/sale/made-payments.js';
import { FEE_PAYER, MINT_INFO, SUMMARIZE, TERMS } from '../../support/charge-world.js';
import { BRAND } from '../../support/test-chain.js';
import { RELEASED } from '../../support/sold.js';
import type { Recipe } from '../../support/craft.js';
import { base64url, mppPayment, readChallenge, type ReadChallenge } from '../../support/mpp-payment.js';

const SECRET = 'a secret of this test, and of no shop at all';
const OWN = { asset: TERMS.asset, payTo: TERMS.payTo, network: 'devnet' as const, realm: '127.0.0.1:8402' };
const HINTS = { sponsor: FEE_PAYER, recentBlockhash: Keypair.generate().publicKey.toBase58() };
const DAY_MS = 86_400_000;
const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

describe('mpp: credentials', () => {
  let now = Date.now();
  const method = mppMethod(OWN, { secrets: [SECRET], now: () => now });
  const methods = new Methods([...shopMethods(TERMS).all, method]);
  const checker = new TransactionChecker();
  const { asset, payTo } = TERMS;
  const rail = {
    check: (evidence: string, amount: bigint, answered?: Readonly<Record<string, string>>) =>
      checker.check(evidence, { asset, payTo, amount }, answered),
  };

  const challengeFor = (
    operation = SUMMARIZE,
    hints: Readonly<Record<string, string>> = HINTS,
    by = method,
  ): ReadChallenge => readChallenge(by.challenge(operation, hints).headers['WWW-Authenticate'] ?? '');
  const judge = (authorization: string, operation = SUMMARIZE): Promise<PaymentCheck> =>
    checkPayment(methods, rail, { headers: { authorization } }, operation);
  const pay = (bend: Recipe = {}, asked = challengeFor()): string =>
    mppPayment(asked, Keypair.generate(), bend).authorization;
  const wire = (
    authorization: string,
  ): { challenge: Record<string, string>; payload: Record<string, string> } =>
    JSON.parse(Buffer.from(authorization.split(' ')[1] ?? '', 'base64url').toString());
  /** The same credential with another challenge or payload. */
  const changed = (
    authorization: string,
    change: object,
    what: 'challenge' | 'payload' = 'challenge',
  ): string => {
    const sent = wire(authorization);
    return `Payment ${base64url({ ...sent, [what]: { ...sent[what], ...change } })}`;
  };

  beforeEach(() => {
    now = Date.now();
  });

  it('that answer a challenge of this server are accepted, whoever pays the fee', async () => {
    expect((await judge(pay())).kind).to.equal('payment');
    const { recentBlockhash } = HINTS;
    expect((await judge(pay({}, challengeFor(SUMMARIZE, { recentBlockhash })))).kind).to.equal('payment');
    const inOrder = await judge(pay({ instructions: usual => usual }));
    expect(inOrder.kind, 'with the limit before the price').to.equal('payment');
  });

  it('each answer a different challenge, because no two challenges are alike', () => {
    const [one, two] = [challengeFor(), challengeFor()];
    expect(one.wire['id']).not.to.equal(two.wire['id']);
    expect(one.request.externalId).not.to.equal(two.request.externalId);
  });

  const REFUSED: Record<string, [() => Promise<PaymentCheck>, RegExp]> = {
    'that answer the challenge of another operation with the same price': [
      () => judge(pay({}, challengeFor(MINT_INFO))),
      /is not for summarize/,
    ],
    'at another price than that of the call': [
      () => judge(pay(), { ...SUMMARIZE, price: { ...SUMMARIZE.price, atomic: 20_000n } }),
      /amount is 10000, the price is 0\.02 USDC/,
    ],
    'that have expired': [
      async () => {
        const authorization = pay();
        now += DAY_MS;
        return judge(authorization);
      },
      /expired at/,
    ],
    'with another expiry': [
      () => judge(changed(pay(), { expires: '2099-01-01T00:00:00Z' })),
      /not made by this server, or was changed/,
    ],
    'without an expiry': [() => judge(changed(pay(), { expires: undefined })), /was changed/],
    'with another realm': [() => judge(changed(pay(), { realm: 'other.example' })), /was changed/],
    'with another request': [
      () => judge(changed(pay(), { request: base64url({ ...challengeFor().request, amount: '1' }) })),
      /was changed/,
    ],
    'of another shop with the same secret': [
      () => {
        const other = mppMethod({ ...OWN, realm: 'other.example' }, { secrets: [SECRET] });
        return judge(pay({}, challengeFor(SUMMARIZE, HINTS, other)));
      },
      /realm other\.example is not 127/,
    ],
    'of a server with another secret': [
      () => {
        const other = mppMethod(OWN, { secrets: ['x'.repeat(40)] });
        return judge(pay({}, challengeFor(SUMMARIZE, HINTS, other)));
      },
      /not made by this server/,
    ],
    'to a former receiver': [
      () => {
        const other = mppMethod({ ...OWN, payTo: FEE_PAYER }, { secrets: [SECRET] });
        return judge(pay({ payTo: TERMS.payTo }, challengeFor(SUMMARIZE, HINTS, other)));
      },
      /its receiver or token is not/,
    ],
    'of an intent that is not offered': [
      () => {
        const asked = challengeFor();
        const slots = { ...asked.wire, intent: 'session' } as unknown as Parameters<ChallengeIds['of']>[0];
        const id = new ChallengeIds([SECRET]).of(slots);
        return judge(changed(pay({}, asked), { intent: 'session', id }));
      },
      /solana session is not offered/,
    ],
    'with another memo than the externalId': [
      () => judge(pay({ memo: 'other' })),
      /memo must be the externalId/,
    ],
    'without a memo': [() => judge(pay({ memo: null })), /memo must be the externalId/],
    'with another fee payer than the challenge names': [
      () => judge(pay({ feePayer: Keypair.generate().publicKey.toBase58() })),
      /fee payer is .* must be/,
    ],
    'that pay less': [() => judge(pay({ amount: 9_999n })), /pays 0\.009999 USDC/],
  };
  for (const [name, [judged, why]] of Object.entries(REFUSED)) {
    it(`${name} buy nothing, unless the ledger knows the payment`, async () => {
      const check = await judged();
      expect(check.kind).to.equal('mismatch');
      expect((check as { error: string }).error).to.match(why);
    });
  }

  /** The entries of pay-kit's harness/vectors/charge-rejects.json that apply to a single transfer. */
  const VECTORS: Record<string, [Recipe, RegExp]> = {
    'compute price over the cap': [{ computePrice: 5_000_001n }, /compute unit price is too high/],
    'a compute limit of 250 000': [{ computeLimit: 250_000 }, /250000, at most 200000/],
    'wrong decimals': [{ decimals: 9 }, /decimals are 9, but must be 6/],
    'the fee payer is the authority': [{ authority: Keypair.generate().publicKey }, /signature|signer/],
    'an unsigned transaction': [{ signature: 'none' }, /signature is missing/],
  };
  for (const [name, [bend, why]] of Object.entries(VECTORS)) {
    it(`are refused as in the published vector: ${name}`, async () => {
      const check = await judge(pay(bend));
      expect([check.kind, (check as { error?: string }).error]).to.satisfy(
        ([kind, error]: [string, string]) => kind === 'refused' && why.test(error),
        JSON.stringify(check),
      );
    });
  }

  it('are refused as in the published vector: splits that take the whole amount', async () => {
    const asked = challengeFor();
    const splits = [{ recipient: FEE_PAYER, amount: asked.request.amount }];
    const methodDetails = { ...asked.request.methodDetails, splits };
    const check = await judge(
      changed(pay({}, asked), { request: base64url({ ...asked.request, methodDetails }) }),
    );
    expect([check.kind, (check as { error?: string }).error]).to.satisfy(
      ([kind, error]: [string, string]) => kind === 'mismatch' && /was changed/.test(error),
    );
  });

  it('that are unreadable are refused with the reason', async () => {
    const deep = JSON.parse(`${'{"a":'.repeat(65)}1${'}'.repeat(65)}`) as object;
    const { request } = challengeFor(SUMMARIZE);
    const MALFORMED: Record<string, RegExp> = {
      Payment: /not valid for the scheme Payment/,
      'Payment !!!': /not valid for the scheme Payment/,
      'Payment e30': /must have required property 'challenge'/,
      [changed(pay(), { request: 'e30' })]: /request in the challenge is not a charge request/,
      [changed(pay(), { request: { ...request, deep } })]: /nested too deeply/,
      [changed(pay(), { opaque: deep })]: /nested too deeply/,
      [changed(pay(), { type: 'bundle' }, 'payload')]: /type bundle is not accepted/,
      [changed(pay(), { type: 'signature', signature: '5'.repeat(88) }, 'payload')]:
        /type signature is not accepted/,
      [changed(pay(), { transaction: undefined }, 'payload')]: /signed transaction in base64/,
      [changed(pay(), { transaction: 'AAAA' }, 'payload')]: /cannot be decoded/,
    };
    for (const [header, why] of Object.entries(MALFORMED)) {
      const check = await judge(header);
      expect(check.kind, header).to.equal('refused');
      expect((check as { error: string }).error).to.match(why);
    }
  });

  it('of type signature cause no request to the chain if they answer no live challenge of this server, or a challenge for which the server pays the fee', async () => {
    let looks = 0;
    const ledger = { settledBy: async () => undefined };
    const find = async (): Promise<{ kind: 'not-seen' }> => {
      looks += 1;
      return { kind: 'not-seen' };
    };
    const made = new MadePayments({ ledger, rail: { find }, log: SILENT, timing: { rest: 0 } });
    const judgeMade = (authorization: string, operation = BRAND): Promise<PaymentCheck> =>
      checkPayment(methods, rail, { headers: { authorization } }, operation, (credential, about) =>
        made.find(credential, about, 'a source'),
      );
    const SELF = { recentBlockhash: HINTS.recentBlockhash };
    const signed = (asked = challengeFor(BRAND, SELF)): string =>
      changed(pay({}, asked), { type: 'signature', signature: '5'.repeat(88) }, 'payload');
    const old = signed();
    const REFUSED_TYPES: [string, RegExp, PaymentCheck][] = [
      ['sponsored', /not accepted where the server pays/, await judgeMade(signed(challengeFor(BRAND)))],
      ['no signature', /in base58/, await judgeMade(changed(old, { signature: 'no' }, 'payload'))],
      ['changed', /was changed/, await judgeMade(changed(old, { expires: '2099-01-01T00:00:00Z' }))],
      ['other operation', /is not for/, await judgeMade(signed(challengeFor(SUMMARIZE, SELF)))],
    ];
    now += DAY_MS;
    REFUSED_TYPES.push(['expired', /expired at .* has bought nothing/, await judgeMade(old)]);
    for (const [name, why, check] of REFUSED_TYPES) {
      expect(check.kind, name).to.equal('refused');
      expect((check as { error: string }).error, name).to.match(why);
    }
    expect(looks).to.equal(0);
    expect((await judgeMade(signed())).kind, 'a live one').to.equal('unavailable');
    expect(looks).to.be.greaterThan(0);
  });

  it('of other schemes are ignored: the call is unpaid', async () => {
    for (const header of ['Bearer abc', 'Basic cGF5bWVudA==', 'Payments x', ''])
      expect((await judge(header)).kind, header).to.equal('unpaid');
  });

  it('are read with the scheme in any case, padded or not, next to another scheme, and with the opaque value that old clients send', async () => {
    const authorization = pay();
    const sent = wire(authorization);
    const opaque = JSON.parse(
      Buffer.from(String(sent.challenge['opaque']), 'base64url').toString(),
    ) as object;
    const forms = [
      authorization.replace('Payment', 'PAYMENT'),
      `payment ${Buffer.from(JSON.stringify(sent)).toString('base64')}`,
      `Bearer abc, ${authorization}`,
      changed(authorization, { opaque }),
    ];
    for (const form of forms) expect((await judge(form)).kind, form).to.equal('payment');
  });

  it('are named in the documents, with an offer for each operation', () => {
    const { contract, ...selling } = { contract: RELEASED, methods, publicUrl: TERMS.publicUrl };
    const { paths } = servedContract(contract, selling, TERMS.publicUrl) as {
      paths: Record<string, { post?: Record<string, unknown> }>;
    };
    const info = paths['/v1/summarize']?.post?.['x-payment-info'] as { protocols: unknown; offers: unknown };
    expect(info.protocols).to.deep.equal([
      { x402: {} },
      { mpp: { method: 'solana', intent: 'charge', currency: 'USD' } },
    ]);
    expect(info.offers).to.deep.equal([
      {
        ...{ intent: 'charge', method: 'solana', amount: '10000', currency: TERMS.asset },
        description: SUMMARIZE.summary,
      },
    ]);
    expect(JSON.stringify(llmsTexts(contract, selling))).to.include('with an MPP client');
  });

  it('get a receipt only if the call was sold, and the receipt names their challenge', () => {
    const receipt = { success: true, payer: FEE_PAYER, transaction: 'signature', amount: '10000' };
    const headers = method.receiptHeaders(receipt, { sold: true, challenge: 'the id' });
    expect(JSON.parse(Buffer.from(headers['Payment-Receipt'] ?? '', 'base64url').toString())).to.deep.equal({
      method: 'solana',
      challengeId: 'the id',
      reference: 'signature',
      status: 'success',
      timestamp: new Date(now).toISOString(),
    });
    expect(method.receiptHeaders(receipt, { sold: false, challenge: 'the id' })).to.deep.equal({});
    expect(method.receiptHeaders(receipt, { sold: true })).to.deep.equal({});
    expect(
      method.receiptHeaders({ ...receipt, success: false }, { sold: true, challenge: 'x' }),
    ).to.deep.equal({});
  });
});
