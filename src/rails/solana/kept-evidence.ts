import { feeOf, SIGNATURES } from './fee-limits.js';
import { readTransaction } from './message.js';
import { destinationAccountOf, nameOf, sourceAccountOf } from './transaction.js';

/**
 * What a ledger keeps of a transaction that the chain has for good: the token accounts between which the money moved, and the fee, if this
 * shop's fee payer paid it. `destination` is undefined if it is the account of the ledger's first receiver.
 */
export type KeptEvidence = {
  source: string;
  destination: string | undefined;
  fee: { feePayer: string; fee: bigint } | undefined;
};

const FIRST_RECEIVER = '-';
const ADDRESS = '[1-9A-HJ-NP-Za-km-z]{32,44}';
const KEPT = new RegExp(`^(${ADDRESS})(?: (${ADDRESS}|${FIRST_RECEIVER})(?: (${ADDRESS}) (\\d+))?)?$`);

/** Undefined for a whole transaction. */
export function keptEvidence(evidence: string): KeptEvidence | undefined {
  const [, source, destination, feePayer, fee] = KEPT.exec(evidence) ?? [];
  if (source === undefined) return undefined;
  return {
    source,
    destination: destination === FIRST_RECEIVER ? undefined : destination,
    fee: feePayer === undefined || fee === undefined ? undefined : { feePayer, fee: BigInt(fee) },
  };
}

/**
 * What is to be kept in place of a transaction. One that its payer signed alone stays whole: its buyer may name it again, and it is checked then.
 * @param first the account of the ledger's first receiver, if it has had no other
 */
export function condenseEvidence(evidence: string, first: string | undefined): string {
  if (keptEvidence(evidence)) return evidence;
  try {
    const paid = feePaid(evidence, SIGNATURES);
    if (readTransaction(Buffer.from(evidence, 'base64')).signatures < SIGNATURES) return evidence;
    const account = destinationAccountOf(evidence);
    const destination = account === first ? FIRST_RECEIVER : account;
    const fee = paid ? ` ${paid.feePayer} ${paid.fee}` : '';
    const rest = destination === FIRST_RECEIVER && !paid ? '' : ` ${destination}${fee}`;
    return `${sourceAccountOf(evidence)}${rest}`;
  } catch {
    return evidence;
  }
}

/**
 * Who paid the fee of a transaction, and how much. The ledger has the signature of a fee payer only if this shop signed as one.
 * @param signers how many signatures the transaction has at least
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
