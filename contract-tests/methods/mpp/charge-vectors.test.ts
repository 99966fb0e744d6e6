import { expect } from 'chai';
import { TransactionChecker } from '../../../src/rails/solana/transaction.js';

const PAYER = 'GmaDrppBC7P5ARKV8g3djiwP89vz1jLK23V2GBjuAEGB';
const EXPECTED = {
  asset: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
  payTo: 'J2xccRtuG43drESLYznHhLhQkLTdfepcKYbiQ9BsJVaf',
  amount: 1_000n,
};
/** What all vectors have in common: their accounts, and a blockhash of zeros. */
const ACCOUNTS =
  'AQADBupKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIsa4T+VAWZkKbqIwjcZYhVrZWKZR4UVyYj9/rTk9uwE+wJwa1WOvT05wo9H+keYP/wmkenNjT3' +
  'crGO32T+uRfu6DtELLORIVfxOpM9ATQoLQMrX/7NAaLb8bd5BgjfAC6nAwZGb+UhFzL/7K26csOb57yM5bvF9xJrLEObOkAAAAAG3fbh12Whk9nL4UbO63ms' +
  'HLSF7V9bN5E6jPWFfv8AqQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAw';
const RIGHT =
  'ATc9q87uHkYA6k/yH8bvcOD7z/gN21vL/8M2Rlfzb1f8KGMyMXv5TVSAG50yl4YrFn9lqdWt7bG5dqvfWwY0RwiA' +
  `${ACCOUNTS}QACQMBAAAAAAAAAAQABQJADQMABQQBAwIACgzoAwAAAAAAAAYA`;

/** The entries of pay-kit's harness/vectors/charge-rejects.json that contain a transaction, by name, with the data of their challenges. */
const REJECTED: Record<string, [transaction: string, why: RegExp, challenge?: Record<string, string>]> = {
  'charge-compute-price-over-cap-reject': [
    'Ac224MpTUS6GtQ3adEcnNs6WkgoUd3kCzb2WN3RRaayy0EsdiNp4PujsPrDx51UiUYN/hM/JNiP4Ggc2ycbe4AKA' +
      `${ACCOUNTS}QACQNBS0wAAAAAAAQABQJADQMABQQBAwIACgzoAwAAAAAAAAYA`,
    /compute unit price is too high/,
  ],
  'charge-compute-limit-over-cap-reject': [
    RIGHT.replace('QABQJADQMA', 'QABQKQ0AMA'),
    /250000, at most 200000/,
  ],
  'charge-feepayer-as-authority-reject': [RIGHT, /sign/, { feePayer: PAYER }],
  'charge-transferchecked-decimals-mismatch-reject': [
    'AVisFTaj/j43KxmgXR0eiyESXlvreGEWfrjDF0t3b098UoZl9t4PmGRF5RpBfoTkQhaVwwWs9AH/p8ndNJRQLQ6A' +
      `${ACCOUNTS}QACQMBAAAAAAAAAAQABQJADQMABQQBAwIACgzoAwAAAAAAAAkA`,
    /decimals are 9, but must be 6/,
  ],
};

describe('mpp: the published transactions of a charge', () => {
  const checker = new TransactionChecker();

  it('charge-transferchecked-decimals-match-accept is accepted, and its payer pays the fee', async () => {
    const check = await checker.check(RIGHT, EXPECTED, {});
    expect(check.ok, JSON.stringify(check)).to.equal(true);
    expect(check.checked).to.include({ payer: PAYER, feePayer: PAYER, selfPaid: true });
  });

  for (const [name, [transaction, why, challenge = {}]] of Object.entries(REJECTED))
    it(`${name} is refused`, async () => {
      const check = await checker.check(transaction, EXPECTED, challenge);
      expect(check.ok).to.equal(false);
      expect((check as { error: string }).error).to.match(why);
    });
});
