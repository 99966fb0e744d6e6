import type { Identity } from '../ledger/reader.js';
import type { Payment } from '../ledger/store.js';
import { keptEvidence } from '../rails/solana/kept-evidence.js';
import { destinationAccountOf, receiverAccount } from '../rails/solana/transaction.js';

/** An address that payments of the ledger were paid to, and its USDC account. */
export type Receiver = {
  payTo: string;
  account: string;
  /**
   * When the address was the ledger's receiver, in ms since 1970. The first period of a ledger begins at 0; the current one does not end.
   */
  periods: { since: number; until: number }[];
};

/** All receivers of a ledger, the current one first. Empty before the first sale. */
export function receiversOf({ payTo, formerReceivers }: Identity, mint: string): Receiver[] {
  if (payTo === undefined) return [];
  const receivers = new Map<string, Receiver>();
  const all = [...formerReceivers, { payTo, until: Infinity }];
  all.forEach(({ payTo: address, until }, index) => {
    const known = receivers.get(address);
    const account = receiverAccount({ asset: mint, payTo: address });
    const periods = [...(known?.periods ?? []), { since: all[index - 1]?.until ?? 0, until }];
    receivers.delete(address);
    receivers.set(address, { payTo: address, account, periods });
  });
  return [...receivers.values()].toReversed();
}

/**
 * The receiver that a payment was paid to, according to its signed transaction. The current receiver if the
 * transaction can't be read.
 */
export function receiverOf(
  { evidence }: Pick<Payment, 'evidence'>,
  receivers: readonly Receiver[],
): Receiver | undefined {
  const destination = destinationOf(evidence, receivers);
  return receivers.find(({ account }) => account === destination) ?? receivers[0];
}

function destinationOf(evidence: string, receivers: readonly Receiver[]): string | undefined {
  const kept = keptEvidence(evidence);
  if (kept) return kept.destination ?? receivers.find(isFirst)?.account;
  try {
    return destinationAccountOf(evidence);
  } catch {
    return undefined;
  }
}

const isFirst = ({ periods }: Receiver): boolean => periods.some(({ since }) => since === 0);

/** Whether this address was the ledger's receiver at a time (seconds since 1970), give or take a minute; true if the time is unknown. */
export function wasReceiver({ periods }: Receiver, blockTime: number | null): boolean {
  const margin = 60_000;
  const at = (blockTime ?? 0) * 1_000;
  return (
    blockTime === null || periods.some(({ since, until }) => since - margin <= at && at < until + margin)
  );
}
