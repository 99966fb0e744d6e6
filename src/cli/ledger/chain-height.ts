import { resetHeight, seenHeight } from '../../rails/solana/chain-heights.js';
import { time, type Report } from './print.js';
import type { ReportSource } from '../../operator/find-payment.js';

/** Shows the greatest block height seen, or deletes it. */
export async function height(reader: ReportSource, reset: boolean): Promise<Report> {
  const seen = await seenHeight(reader);
  const data = { height: seen?.height ?? null, seenAt: seen ? time(seen.seenAt) : null, reset };
  if (!seen) return { data, lines: ['No server of this ledger has seen a block height yet.'] };
  const which = `${seen.height}, seen at ${data.seenAt}`;
  if (!reset) return { data, lines: [`The greatest block height of this ledger is ${which}.`] };
  await resetHeight(reader);
  return {
    data,
    lines: [
      `Forgotten: block height ${which}.`,
      'The next height that an RPC server reports is accepted without a check: check SOLANA_RPC_URL first, then restart the servers.',
      'Risk: if that RPC server is far behind, payments may be treated as expired while they can still be settled.',
    ],
  };
}
