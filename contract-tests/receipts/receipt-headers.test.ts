import { expect } from 'chai';
import { signedHeadersOf } from '../../src/http/sign-receipts.js';
import { bytesOf, MAX_HEADER_BYTES, OTHER_HEADER_BYTES } from '../../src/methods/header-bytes.js';
import { shopMethods } from '../../src/methods/shop-methods.js';
import type { Outcome } from '../../src/sale/outcome.js';
import { TERMS } from '../support/charge-world.js';

const SIGNED = { receipt: 'r'.repeat(500), answer: 'a'.repeat(1_000) };
const receipts = { sign: async () => SIGNED };
const [x402, , mpp] = shopMethods(TERMS, { network: 'devnet', mpp: { secrets: ['s'.repeat(32)] } }).all;
const RECEIPT = { success: true, payer: 'Payer', transaction: 'Transaction', amount: '10000' };

/** An answer with a header of this many bytes. */
function soldWith(bytes: number): Extract<Outcome, { kind: 'sold' }> {
  const headers: Record<string, string> = { 'X-Own': 'x'.repeat(bytes) };
  return {
    kind: 'sold',
    answer: { status: 200, headers, body: Buffer.from('{}') },
    receipt: RECEIPT,
    call: { operation: 'value', requestHash: 'hash' },
    sale: { written: () => {}, linked: async () => undefined, lost: async () => {} },
  };
}

describe('the headers of signed receipts', () => {
  const namesWith = async (bytes: number, method = x402): Promise<string[]> => {
    const outcome = soldWith(bytes);
    const goesWith = { sold: true, challenge: 'id' };
    const others = { Location: 'https://shop.example/answers/key' };
    const signed = await signedHeadersOf({ receipts }, method, outcome, { goesWith, others });
    const sent = { ...outcome.answer.headers, ...others, ...signed };
    if (Object.keys(signed).length > 0)
      expect(bytesOf(sent)).to.be.at.most(MAX_HEADER_BYTES - OTHER_HEADER_BYTES);
    return Object.keys(signed);
  };

  it("are dropped if the answer's own headers need the room: first the answer receipt, then x402's", async () => {
    expect(await namesWith(10)).to.deep.equal(['PAYMENT-RESPONSE', 'Answer-Receipt']);
    expect(await namesWith(1_200)).to.deep.equal(['PAYMENT-RESPONSE']);
    expect(await namesWith(2_500)).to.deep.equal([]);
  });

  it("are MPP's own receipt, which has no field for a signed one, and the answer receipt", async () => {
    expect(await namesWith(10, mpp)).to.deep.equal(['Payment-Receipt', 'Answer-Receipt']);
  });

  it('are absent from the answers of a shop that signs nothing', async () => {
    const how = { goesWith: { sold: true }, others: {} };
    expect(await signedHeadersOf({}, x402, soldWith(0), how)).to.deep.equal({});
  });
});
