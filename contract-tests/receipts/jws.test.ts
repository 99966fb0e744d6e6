import { expect } from 'chai';
import { createPrivateKey } from 'node:crypto';
import { nameOf, publicKeyOf } from '../../src/receipts/did-document.js';
import { encodedHeader, isSignedBy, readJws, signedJws } from '../../src/receipts/jws.js';

/** The private key of x402's vectors (x402 pull request 3207, offer-receipt-vectors.json): 32 bytes of 0x42. */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');
const SEED = Buffer.alloc(32, 0x42);
const KEY = createPrivateKey({ key: Buffer.concat([PKCS8, SEED]), format: 'der', type: 'pkcs8' });
const X = 'IVL40Zt5HSRFMkLhXy6rbLfP-ntqXtMAl5YOBpiB2xI';
const JWK = { kty: 'OKP', crv: 'Ed25519', x: X };
const HEADER = encodedHeader({ alg: 'EdDSA', kid: 'did:web:api.example.com#key-1' });
const NETWORK = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const RESOURCE = 'https://api.example.com/v1/summarize';
const RECEIPT = {
  version: 1,
  network: NETWORK,
  resourceUrl: RESOURCE,
  payer: 'BFe7qquowDim9rz2QftceTkFeisPKYv7GgyWYtZsvmhh',
  issuedAt: 1767225600,
};
const SIGNED = signedJws(HEADER, RECEIPT, KEY);
const [HEAD = '', BODY = '', MAC = ''] = SIGNED.split('.');
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('a JWS of a receipt', () => {
  it('equals the published vectors byte for byte', () => {
    const offer = {
      version: 1,
      resourceUrl: RESOURCE,
      scheme: 'exact',
      network: NETWORK,
      asset: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
      payTo: '7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU',
      amount: '10000',
      validUntil: 4102444800,
    };
    const signedOffer = signedJws(HEADER, offer, KEY);
    expect(signedOffer.split('.')[2]).to.equal(
      'yk2HUN32m5OG28b8luLQ1A_8hiypfrlwODv3jPThkQbtrGQ_Ua-HNdBfsGzNTen6K3omv9Arb_t6Kov2pflkCw',
    );
    expect(signedOffer).to.have.length(541);
    expect(MAC).to.equal(
      'bTMkNyJuZqNhXImH2IX70HpTg0njA282O8EMXLgKcbRA3zR9aem_DSbyNgFIa4MWDIJUBjt7DJfznFxFcwCvAA',
    );
    expect(SIGNED).to.have.length(419);
    expect(publicKeyOf(KEY)).to.deep.equal({ name: nameOf(X), x: X });
  });

  it('is verified with its key', () => {
    const jws = readJws(SIGNED);
    expect(jws?.payload).to.deep.equal(RECEIPT);
    expect(jws && isSignedBy(jws, JWK)).to.equal(true);
  });

  const other = JWK.x.replace('IVL4', 'AVL4');
  const rejected: Record<string, [text: string, jwk?: object]> = {
    'two segments': [`${HEAD}.${BODY}`],
    'four segments': [`${SIGNED}.${MAC}`],
    'another payload': [`${HEAD}.${part({ ...RECEIPT, payer: 'somebody else' })}.${MAC}`],
    'alg none': [`${part({ alg: 'none', kid: 'a' })}.${BODY}.${MAC}`],
    'alg HS256': [`${part({ alg: 'HS256', kid: 'a' })}.${BODY}.${MAC}`],
    'another header': [`${part({ alg: 'EdDSA', kid: 'did:web:other.example#key-1' })}.${BODY}.${MAC}`],
    'a truncated signature': [SIGNED.slice(0, -4)],
    'no signature': [`${HEAD}.${BODY}.`],
    'a payload that is not an object': [`${HEAD}.${Buffer.from('[1]').toString('base64url')}.${MAC}`],
    'another key': [SIGNED, { ...JWK, x: other }],
    'a key of another curve': [SIGNED, { ...JWK, crv: 'X25519' }],
    'a symmetric key': [SIGNED, { kty: 'oct', k: X }],
    'an invalid key': [SIGNED, { ...JWK, x: 'AAAA' }],
  };
  for (const [what, [text, jwk = JWK]] of Object.entries(rejected))
    it(`is rejected: ${what}`, () => {
      const jws = readJws(text);
      expect(jws !== undefined && isSignedBy(jws, jwk as Record<string, unknown>)).to.equal(false);
    });
});
