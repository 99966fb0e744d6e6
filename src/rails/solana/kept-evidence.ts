import { feeOf, SIGNATURES } from './fee-limits.js';
import { readTransaction } from './message.js';
import { destinationAccountOf, nameOf, sourceAccountOf } from './transaction.js';

/**
 * What the ledger keeps of a finalized transaction: the token accounts between which the money moved, and the fee, if this shop's fee payer
 * paid it. `source` is undefined if its payer was removed, `destination` if it is the account of the ledger's first receiver.
 */
export type KeptEvidence = {
  source: string | undefined;
  destination: string | undefined;
  fee: { feePayer: string; fee: bigint } | undefined;
};

const NONE = '-';
const ADDRESS = '[1-9A-HJ-NP-Za-km-z]{32,44}';
const KEPT = new RegExp(`^(${ADDRESS}|${NONE})(?: (${ADDRESS}|${NONE})(?: (${ADDRESS}) (\\d+))?)?$`);
const addressOf = (text: string | undefined): string | undefined => (text === NONE ? undefined : text);

/** Reads kept evidence; undefined for a whole transaction. */
export function keptEvidence(evidence: string): KeptEvidence | undefined {
  const [, source, destination, feePayer, fee] = KEPT.exec(evidence) ?? [];
  if (source === undefined) return undefined;
  return {
    source: addressOf(source),
    destination: addressOf(destination),
    fee: feePayer === undefined || fee === undefined ? undefined : { feePayer, fee: BigInt(fee) },
  };
}

/**
 * The evidence that replaces a transaction. A transaction that its payer signed alone is kept whole, because its buyer may name it again,
 * and it must then be checked again.
 * @param first the account of the ledger's first receiver, if it has had no other
 */
export function condenseEvidence(evidence: string, first: string | undefined): string {
  if (keptEvidence(evidence)) return evidence;
  try {
    const paid = feePaid(evidence, SIGNATURES);
    if (readTransaction(Buffer.from(evidence, 'base64')).signatures < SIGNATURES) return evidence;
    const destination = destinationAccountOf(evidence);
    const kept = {
      source: sourceAccountOf(evidence),
      destination: destination === first ? undefined : destination,
    };
    return written({ ...kept, fee: paid });
  } catch {
    return evidence;
  }
}

/**
 * The evidence that is kept of a transaction whose payer is removed. Nobody can pay with that transaction any more.
 * @param signers the minimum number of signatures if this shop's fee payer paid the transaction's fee
 */
export function anonymousEvidence(evidence: string, signers: number): string {
  const { destination } = keptEvidence(condenseEvidence(evidence, undefined)) ?? {};
  return written({ source: undefined, destination, fee: feePaid(evidence, signers) });
}

function written({ source = NONE, destination = NONE, fee }: KeptEvidence): string {
  if (fee) return `${source} ${destination} ${fee.feePayer} ${fee.fee}`;
  return destination === NONE ? source : `${source} ${destination}`;
}

/**
 * Who paid the fee of a transaction, and how much. The ledger has the signature of a fee payer only if this shop signed as one.
 * @param signers the minimum number of signatures that the transaction can have
 */
export function feePaid(evidence: string, signers: number): KeptEvidence['fee'] {
  const kept = keptEvidence(evidence);
  if (kept) return kept.fee;
  try {
    const bytes = Buffer.from(evidence, 'base64');
    const transaction = readTransaction(bytes);
    if (transaction.signatures < signers || isEmpty(bytes)) return undefined;
    return { feePayer: nameOf(transaction.keys[0]), fee: feeOf(transaction) };
  } catch {
    return undefined;
  }
}

const FIRST_SIGNATURE = [1, 65] as const;
const isEmpty = (bytes: Buffer): boolean => bytes.subarray(...FIRST_SIGNATURE).every(byte => byte === 0);
