import { expect } from 'chai';
import { canonicalJson } from '../../../src/contract/fingerprint.js';
import { ChallengeIds, type Slots } from '../../../src/methods/mpp/challenge-ids.js';

const SECRET = 'test-vector-secret';
const b64 = (value: unknown): string => Buffer.from(canonicalJson(value)).toString('base64url');
const charge = (request: object, more: Partial<Slots> = {}): Slots => ({
  realm: 'api.example.com',
  method: 'tempo',
  intent: 'charge',
  request: b64(request),
  ...more,
});

const EXPIRES = '2025-01-06T12:00:00Z';
const DIGEST = 'sha-256=X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE';
const AMOUNT = { amount: '1000000' };
const SOLANA = {
  amount: '10000',
  currency: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  recipient: '7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU',
  externalId: 'cs_4f1c2d3e5a6b7c8d',
  methodDetails: {
    network: 'mainnet',
    decimals: 6,
    tokenProgram: 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
    feePayer: true,
    feePayerKey: '9aE3Fg7HjKLmNpQr5TuVwXyZ2AbCdEf8GhIjKlMnOp1R',
    recentBlockhash: 'BZ1SR2hqabDV4jQzGn6nJ1Hq1ovp8XHEbHNLhN7imVSS',
  },
};

/** The vectors that mppx publishes, and one in the form of Solana's challenges. */
const VECTORS: Record<string, [Slots, string]> = {
  'only what is required': [charge(AMOUNT), 'X6v1eo7fJ76gAxqY0xN9Jd__4lUyDDYmriryOM-5FO4'],
  'expires and digest': [
    charge(AMOUNT, { expires: EXPIRES, digest: DIGEST }),
    'm39jbWWCIfmfJZSwCfvKFFtBl0Qwf9X4nOmDb21peLA',
  ],
  expires: [charge(AMOUNT, { expires: EXPIRES }), 'ChPX33RkKSZoSUyZcu8ai4hhkvjZJFkZVnvWs5s0iXI'],
  opaque: [
    charge(AMOUNT, { opaque: b64({ pi: 'pi_3abc123XYZ' }) }),
    'rxzKZ2qjXvinqCH96RORTZEPs1KXsA-0AUjrCAPFOWc',
  ],
  'an empty request': [charge({}), 'yLN7yChAejW9WNmb54HpJIWpdb1WWXeA3_aCx4dxmkU'],
  'details of the method': [
    charge({ ...AMOUNT, currency: '0x1234', methodDetails: { chainId: 42431 } }),
    'TqujwpuDDg_zsWGINAd5XObO2rRe6uYufpqvtDmr6N8',
  ],
  'a charge on Solana': [
    charge(SOLANA, { method: 'solana', expires: '2026-11-23T12:05:00Z' }),
    '_lUrBsvgMYCkwx_19FOsqQ0swhcHvTgI5yjmc04Ms0w',
  ],
};

describe('mpp: challenge ids', () => {
  for (const [name, [slots, id]] of Object.entries(VECTORS)) {
    it(`match the published vector: ${name}`, () => {
      const ids = new ChallengeIds([SECRET]);
      expect(ids.of(slots)).to.equal(id);
      expect(ids.made(id, slots)).to.equal(true);
    });
  }

  it('bind each of the seven slots', () => {
    const ids = new ChallengeIds([SECRET]);
    const slots = charge(SOLANA, { expires: EXPIRES, digest: DIGEST, opaque: 'e30' });
    const id = ids.of(slots);
    for (const name of Object.keys(slots) as (keyof Slots)[])
      expect(ids.made(id, { ...slots, [name]: `${slots[name]}x` }), name).to.equal(false);
    for (const other of ['', 'x', `${id}x`, id.slice(1)])
      expect(ids.made(other, slots), other).to.equal(false);
  });

  it('are made with the first secret, and accepted if any of the secrets made them', () => {
    const slots = charge(SOLANA);
    const [old, fresh] = ['old', 'new'].map(name => name.repeat(20)) as [string, string];
    const before = new ChallengeIds([old]).of(slots);
    const rotating = new ChallengeIds([fresh, old]);
    expect(rotating.of(slots))
      .to.equal(new ChallengeIds([fresh]).of(slots))
      .and.not.equal(before);
    expect(rotating.made(before, slots)).to.equal(true);
    expect(new ChallengeIds([fresh]).made(before, slots)).to.equal(false);
  });
});
