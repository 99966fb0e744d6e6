import { expect } from 'chai';
import { createHash } from 'node:crypto';
import {
  findTransfer,
  type ChainHistory,
  type SearchResult,
} from '../../../src/rails/solana/find-transfer.js';
import { readTransaction } from '../../../src/rails/solana/message.js';
import { aPayment } from '../../support/wallet-payment.js';

const PAGE = 1_000;
const CLAIM_SLOT = 100;

type Landed = { signature: string; slot: number; failed: boolean };

describe('the search for a transfer in a history of several pages', () => {
  const { transaction } = aPayment();
  const { message } = readTransaction(Buffer.from(transaction, 'base64'));
  const id = createHash('sha256').update(message).digest('hex');
  const row = { id, evidence: transaction, after: CLAIM_SLOT };
  const other = (n: number): Landed => ({
    signature: `other ${n}`,
    slot: CLAIM_SLOT + 5_000 - n,
    failed: false,
  });
  const ours: Landed = { signature: 'ours', slot: CLAIM_SLOT + 1, failed: false };

  /** @param pageAfter the transfers that an RPC server lists as older than `before`; by default those in `history` */
  function search(
    history: readonly Landed[],
    pageAfter = (before: string): readonly Landed[] =>
      history.slice(history.findIndex(({ signature }) => signature === before) + 1),
  ): Promise<SearchResult> {
    const chain: ChainHistory = {
      latestBlockhash: async () => ({ slot: 9_000, lastValidBlockHeight: 9_000 }),
      signaturesFor: async (_account, { before, limit = PAGE }) =>
        (before === undefined ? history : pageAfter(before)).slice(0, limit),
      transaction: async (signature: string) => ({
        slot: CLAIM_SLOT + 1,
        failed: false,
        message: signature === ours.signature ? message : Buffer.from(signature),
      }),
    };
    return findTransfer(chain, row, { finality: 'finalized' }, AbortSignal.timeout(5_000));
  }

  /** Fills the first page, so that a second one is requested. */
  const recent = Array.from({ length: PAGE }, (_, n) => other(n));

  it('finds a transfer anywhere on the second page', async () => {
    const found = { kind: 'found', signature: 'ours', failed: false };
    expect(await search([...recent, ours])).to.deep.equal(found);
    expect(await search([...recent, other(PAGE), ours, other(PAGE + 1)])).to.deep.equal(found);
  });

  it('proves the transfer absent if the complete history does not contain it', async () => {
    expect(await search([...recent, other(PAGE)])).to.deep.equal({ kind: 'absent' });
  });

  it('does not prove absence if the RPC server of the second page does not know where the first one ended', async () => {
    expect(await search([...recent, ours], () => [])).to.deep.equal({ kind: 'unclear' });
  });

  it('does not prove absence if the second page does not begin where the first one ended, because transfers in between are unknown', async () => {
    const later = [other(PAGE + 7), other(PAGE + 8)];
    expect(await search([...recent, ours, ...later], () => later)).to.deep.equal({ kind: 'unclear' });
  });

  it('proves nothing from a history longer than ten pages', async () => {
    const endless = Array.from({ length: 11 * PAGE }, (_, n) => ({ ...other(n), slot: CLAIM_SLOT + 9 }));
    expect(await search(endless)).to.deep.equal({ kind: 'unclear' });
  });

  it('ends at transfers that landed no later than the claim, and does not count them', async () => {
    expect(await search([other(0), { ...ours, slot: CLAIM_SLOT }])).to.deep.equal({ kind: 'absent' });
  });
});
