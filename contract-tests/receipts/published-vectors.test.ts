import { expect } from 'chai';
import { isSignedBy, readJws } from '../../src/receipts/jws.js';
import { ReceiptFault } from '../../src/receipts/receipt-fault.js';
import { verifyReceipt } from '../../src/receipts/verify-receipt.js';

/**
 * x402's offer-receipt-vectors.json, version 2 (pull request 3207). Its payloads are not in canonical order and are
 * kept as published. The key is that of the vectors, whose `kid` does not resolve.
 */
const KEY = { kty: 'OKP', crv: 'Ed25519', x: 'IVL40Zt5HSRFMkLhXy6rbLfP-ntqXtMAl5YOBpiB2xI' };
const kid = 'did:web:scvd.store#conformance-test-key';
const resourceUrl = 'https://example.com/api/buy/widget';
const network = 'eip155:8453';
const terms = {
  resourceUrl,
  scheme: 'exact',
  network,
  asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
};
const payTo = '0x1111111111111111111111111111111111111111';
const rest = { amount: '10000', validUntil: 4102444800 };
const OFFER = { version: 1, ...terms, payTo, ...rest };
const transaction = `0x${'ab'.repeat(32)}`;
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const jws = (payload: object, signature: string, header: object = { alg: 'EdDSA', kid }): string =>
  `${part(header)}.${part(payload)}.${signature}`;
const OF_OFFER = 'I3V9b8co0MqWfOrg9NyUfw3FEx_5JZf1l4sb23XKyyNlNXIf1GTl979S1SbGfoluAtK2evPqSanpA9QBI7InAA';

const ACCEPTED = {
  offer_valid: jws(OFFER, OF_OFFER),
  receipt_valid: jws(
    {
      ...{ version: 1, network, resourceUrl, payer: '0x2222222222222222222222222222222222222222' },
      ...{ issuedAt: 1767225600, transaction },
    },
    'ejuDi0c6vesOF34lLIZDZZ2oAKj_Bbfnm87SsyjDWJ_uw1BOLDVZ18vj08qWC7HsKGs-ZxxlrfZc6fVWeLNPBQ',
  ),
  offer_expired_but_wellformed: jws(
    { ...OFFER, validUntil: 1735689600 },
    '2FIYFVeY5oen8Nd3R3cxqWujjvjaItVO77Xu3U62Q35YJONS7RfehMi-JXCKSFNGqWVFjboxW53Ji8Y7CNKkDQ',
  ),
};

/** Vectors that are rejected, with the reason. `signed`: the vector is correctly signed with the key. */
const REJECTED: Record<string, [text: string, why: RegExp, signed?: true]> = {
  offer_missing_version: [
    jws(
      { ...terms, payTo, ...rest },
      'KiQp7_L8gCBxlmbqmrz0UOP4T6u-FYH4EkQCWF1rBVT-pWMYPrGFL7IlnXfVew-iSVl-o02kWKOzkRqc_AdnCQ',
    ),
    /version is missing/,
    true,
  ],
  offer_wrong_key: [
    jws(OFFER, 'PWrVTn_PFln5UhUs9fAOyJUoT7bnUO9CgLTngFyKGABoHG7ByT34hTYSbSP6pc2sfCSBq2Tei47I12HjjKgyAQ'),
    /did not sign it/,
  ],
  offer_tampered_payload: [jws({ ...OFFER, amount: '99999' }, OF_OFFER), /did not sign it/],
  offer_alg_none: [jws(OFFER, '', { alg: 'none', kid }), /not a JWS/],
  offer_alg_confusion_hs256: [
    jws(OFFER, '8QE55sOamtAtYwzBQyqECpIynuGQn_hDa4yvOr_lPMM', { alg: 'HS256', kid }),
    /algorithm is "HS256"/,
  ],
  offer_missing_payTo: [
    jws(
      { version: 1, ...terms, ...rest },
      'KKDiYOl59xl7qB7r0eF7siFeSpZCp69DN0CM4YjVjkIactXUznzS5Uda7V29AD6prvIFO4XsGaPRzsvnxlagCQ',
    ),
    /is missing/,
    true,
  ],
  receipt_missing_payer: [
    jws(
      { version: 1, network, resourceUrl, issuedAt: 1767225600, transaction },
      'sT59O1pjWkfYlHROWNgCVPbsuYNGLt1u-25qOsz0iJKmjBKTJyF3iTPXc0X9IbZcuhXJSh7gtno6y-UUZ7zfBQ',
    ),
    /payer is missing/,
    true,
  ],
  offer_no_kid: [
    jws(OFFER, 'Ry3X1qTCVm39jNTafoM41rOFM5g76jy7vJXAmzUlFJVW0SNqPT5nqivvrP-gn33zSt3QIkmuuI8tXfGTVt6MDA', {
      alg: 'EdDSA',
    }),
    /does not say which key/,
    true,
  ],
  offer_two_segments: [jws(OFFER, '').slice(0, -1), /not a JWS/],
  offer_truncated_signature: [jws(OFFER, OF_OFFER.slice(0, 43)), /did not sign it/],
};

describe('the published vectors of signed offers and receipts', () => {
  const verified = (text: string): ReturnType<typeof verifyReceipt> =>
    verifyReceipt(text, async () => KEY, true);

  for (const [name, text] of Object.entries(ACCEPTED))
    it(`${name} is accepted`, async () => {
      expect(await verified(text)).to.include({ kind: name.split('_', 1)[0], kid });
    });

  for (const [name, [text, why, signed = false]] of Object.entries(REJECTED))
    it(`${name} is rejected`, async () => {
      const fault = await verified(text).catch((error: unknown) => error);
      expect(fault).to.be.instanceOf(ReceiptFault);
      expect((fault as ReceiptFault).message).to.match(why);
      const read = readJws(text);
      expect(read !== undefined && isSignedBy(read, KEY)).to.equal(signed);
    });
});
