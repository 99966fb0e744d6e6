import { NOT_CHARGED } from '../../contract/not-charged.js';
import type { ClaimRequest, Payment as Row } from '../../ledger/store.js';
import type {
  Called,
  Check,
  Fate,
  Hints,
  Named,
  Outage,
  Position,
  Rail,
  SettleResult,
  Sighting,
  SignResult,
  VerifyResult,
} from '../rail.js';
import { BLOCKHASH_LIFE_BLOCKS, EXPIRED_AFTER_BLOCKS } from './blocks.js';
import type { BlockhashLife } from './blockhash-life.js';
import { explainRefusal } from './explain-refusal.js';
import { confirmTransfer, findDenied, findSelfPaid, type ChainHistory } from './find-transfer.js';
import type { SolanaHints } from './solana-hints.js';
import { condenseEvidence } from './kept-evidence.js';
import {
  feePayerOf,
  isSelfPaid,
  receiverAccount,
  TransactionChecker,
  type CheckedTransaction,
} from './transaction.js';
import { sightingIn, TransferFates } from './transfer-fates.js';

/** A facilitator's functions for one payment. */
type Sending<Ask> = {
  verify(ask: Ask): Promise<VerifyResult>;
  sign(ask: Ask): Promise<SignResult>;
  settle(ask: Ask): Promise<SettleResult>;
};

/** The facilitators on Solana. The fee payer in a payment selects one of them. `Ask`: the type of a request to them. */
type Settlers<Ask> = Sending<Ask> & {
  outage(feePayer: string): { name: string; retryAfterSeconds: number } | undefined;
  isHealthy(feePayer: string): boolean;
  /** The names of the facilitators that may have this fee payer. */
  namesFor(feePayer: string): string[];
};

/** Builds a request on the terms of the current offer, or on those of an earlier claim. */
type Asks<Ask> = {
  request(call: Called, payment: CheckedTransaction): Ask;
  repeatRequest(row: Row): Ask;
};

/** Once a facilitator has reported a false settlement, each of its successes is looked up on chain before the answer is sent. */
export type Trust = {
  /** Whether the facilitator that pays with this fee payer has ever reported a false settlement. True if the facilitator is unknown. */
  lied(feePayer: string): boolean;
  /**
   * Records a false report, which counts at this server immediately. Resolves once the ledger has it, for other servers and after restarts.
   */
  distrust(feePayer: string): Promise<void>;
  /** Reads what other servers have recorded. */
  refresh(): Promise<void>;
};

export type SolanaRailParts<Ask> = {
  terms: { network: string; asset: string; payTo: string };
  hints: SolanaHints;
  facilitator: Settlers<Ask>;
  /** For payments whose payers pay the fees themselves. */
  sender: Sending<Ask>;
  requests: Asks<Ask>;
  chain: ChainHistory;
  /** All addresses that received payments in this ledger. */
  receivers: readonly string[];
  /** If absent, every reported settlement is believed. */
  trust?: Trust | undefined;
  /** If absent, a new payer's work starts no matter how few blocks are left. */
  blocksLeft?: BlockhashLife['blocksLeft'] | undefined;
  timing?: Partial<SolanaTiming> | undefined;
};

/** Waits for the chain; see find-transfer.ts. `watchBlocks`: for how many blocks after its expiry a released payment is watched. */
export type SolanaTiming = {
  confirm: { deadlineMs: number; pollMs: number };
  denied: { afterMs: number; deadlineMs: number };
  watchBlocks: number;
};

/** The number of blocks that the longest work takes. A transaction with fewer left may expire before it is settled. */
const WORK_BLOCKS = 50;
/** What a buyer should do if the facilitator is down but another one is up. */
export const SIGN_AGAIN = 'sign a new payment with the fee payer in this challenge';
const TOO_OLD = `the blockhash would expire before the work is done. ${NOT_CHARGED}; sign again with the blockhash in this challenge`;

/** USDC on Solana: half-signed transactions that name a facilitator's fee payer. */
export class SolanaRail<Ask extends { transaction: string }> implements Rail<CheckedTransaction> {
  readonly network: string;
  readonly another = 'the new blockhash or a unique memo';
  readonly #parts: SolanaRailParts<Ask>;
  readonly #checker = new TransactionChecker();
  readonly #fates: TransferFates;
  /** The account of the ledger's first receiver, if it has had no other. */
  readonly #firstAccount: string | undefined;

  constructor(parts: SolanaRailParts<Ask>) {
    this.#parts = parts;
    this.network = parts.terms.network;
    this.#fates = new TransferFates(parts.chain, parts.timing?.watchBlocks ?? EXPIRED_AFTER_BLOCKS);
    this.#firstAccount = onlyAccount(parts);
  }

  check(transaction: string, amount: bigint, answered?: Hints): Promise<Check<CheckedTransaction>> {
    const { asset, payTo } = this.#parts.terms;
    return this.#checker.check(transaction, { asset, payTo, amount }, answered);
  }

  find(signature: string, signal: AbortSignal): Promise<Named> {
    return findSelfPaid(this.#parts.chain, signature, signal);
  }

  arrived(payment: CheckedTransaction): void {
    this.#parts.hints.markBlockhashUsed(payment, false);
  }

  moved(payment: CheckedTransaction): void {
    this.#parts.hints.markBlockhashUsed(payment, true);
  }

  position(): Position | undefined {
    const view = this.#parts.hints.view();
    return view && { after: view.slot, position: view.height };
  }

  formerHint({ feePayer, answers }: CheckedTransaction): ClaimRequest['hint'] {
    const { facilitator, hints } = this.#parts;
    return answers || feePayer === hints.feePayer
      ? undefined
      : { name: feePayer, by: facilitator.namesFor(feePayer) };
  }

  unoffered({ feePayer }: CheckedTransaction): string {
    return `transaction: fee payer ${feePayer} was not offered, sign a new payment with the fee payer in this challenge`;
  }

  async tooOld({ blockhash }: CheckedTransaction): Promise<string | undefined> {
    const left = await this.#parts.blocksLeft?.(blockhash);
    return left !== undefined && left < WORK_BLOCKS ? TOO_OLD : undefined;
  }

  outage({ feePayer }: CheckedTransaction): Outage | undefined {
    const { facilitator, hints } = this.#parts;
    const outage = facilitator.outage(feePayer);
    if (!outage || facilitator.outage(hints.feePayer) !== undefined) return outage;
    return { ...outage, instead: SIGN_AGAIN };
  }

  isHealthy({ feePayer }: CheckedTransaction): boolean {
    return this.#parts.facilitator.isHealthy(feePayer);
  }

  verify(payment: CheckedTransaction, call: Called): Promise<VerifyResult> {
    return this.#settlerOf(payment).verify(this.#parts.requests.request(call, payment));
  }

  sign(payment: CheckedTransaction, call: Called): Promise<SignResult> {
    return this.#settlerOf(payment).sign(this.#parts.requests.request(call, payment));
  }

  settle(payment: CheckedTransaction, call: Called, signed?: string): Promise<SettleResult> {
    const request = this.#parts.requests.request(call, payment);
    return this.#settlerOf(payment).settle(
      signed === undefined ? request : { ...request, transaction: signed },
    );
  }

  maySettleAgain({ position, evidence }: Row): boolean {
    const { hints, facilitator } = this.#parts;
    const height = hints.view()?.height ?? Infinity;
    const alive = height <= position + BLOCKHASH_LIFE_BLOCKS;
    return alive && facilitator.outage(feePayerOf(evidence)) === undefined;
  }

  settleAgain(row: Row): Promise<SettleResult> {
    const settler = this.#settlerOf({ selfPaid: isSelfPaid(row.evidence) });
    return settler.settle(this.#parts.requests.repeatRequest(row));
  }

  explain(reason: string): string {
    return explainRefusal(reason);
  }

  isDoubted({ feePayer, selfPaid }: CheckedTransaction): boolean {
    return !selfPaid && (this.#parts.trust?.lied(feePayer) ?? false);
  }

  confirm(row: Row, settlement: string): Promise<boolean> {
    return confirmTransfer(this.#parts.chain, row, settlement, this.#parts.timing?.confirm);
  }

  async lookFor(row: Row): Promise<Sighting> {
    const { chain, hints, timing } = this.#parts;
    const view = hints.view();
    return view ? sightingIn(await findDenied(chain, row, view.slot, timing?.denied)) : { kind: 'unclear' };
  }

  async beginRound(): Promise<void> {
    this.#fates.beginRound();
    await this.#parts.trust?.refresh();
  }

  fate(row: Row, signal: AbortSignal): Promise<Fate> {
    return this.#fates.of(row, signal);
  }

  condense({ evidence }: Pick<Row, 'evidence'>): string {
    return condenseEvidence(evidence, this.#firstAccount);
  }

  async distrust({ evidence }: Row): Promise<void> {
    if (!isSelfPaid(evidence)) await this.#parts.trust?.distrust(feePayerOf(evidence));
  }

  #settlerOf({ selfPaid }: Pick<CheckedTransaction, 'selfPaid'>): Sending<Ask> {
    const { facilitator, sender } = this.#parts;
    return selfPaid ? sender : facilitator;
  }
}

function onlyAccount({ receivers, terms: { asset } }: Pick<SolanaRailParts<never>, 'receivers' | 'terms'>) {
  const [payTo, ...others] = receivers;
  return payTo !== undefined && others.length === 0 ? receiverAccount({ asset, payTo }) : undefined;
}
