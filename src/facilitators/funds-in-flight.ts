import { LRUCache } from 'lru-cache';
import type { SolanaChain } from '../rails/solana/rpc.js';
import { UNSEEN_MS, UNSENT_MS } from './fee-payer-guard.js';

const MAX_ACCOUNTS = 10_000;
/** The maximum number of transfers per account. One request can read this many statuses. */
const MAX_TRANSFERS = 256;
const ACCOUNT_BYTES = 72;
const AMOUNT_OFFSET = 64;

/** A transfer that this server has signed. `account`: the token account that pays; `amount` in atomic units. */
export type SignedTransfer = { signature: string; account: string; amount: bigint };

type InFlight = { amount: bigint; until: number };

/**
 * The transfers that this server has signed but not yet seen on the chain, by paying token account. Simulations do not include them: of
 * many transfers from an account that can pay only one, each passes the simulation, and all but one would cost a fee and fail. Transfers
 * signed by other servers are unknown.
 */
export class FundsInFlight {
  readonly #chain: Pick<SolanaChain, 'account' | 'signatureStatuses'>;
  readonly #now: () => number;
  readonly #accounts = new LRUCache<string, Map<string, InFlight>>({ max: MAX_ACCOUNTS });

  constructor(chain: Pick<SolanaChain, 'account' | 'signatureStatuses'>, now: () => number = Date.now) {
    this.#chain = chain;
    this.#now = now;
  }

  /**
   * Reserves the amount of a transfer before it is signed. If other transfers from its account are in flight, this asks the chain whether
   * the balance covers them all.
   * @returns false if the account cannot pay it in addition to the reserved amounts; then nothing is reserved
   * @throws UpstreamFailure if the chain cannot be asked
   */
  async reserve(transfer: SignedTransfer, signal: AbortSignal): Promise<boolean> {
    const { signature, account, amount } = transfer;
    const earlier = this.#transfers(account);
    if (earlier.has(signature)) return true;
    if (earlier.size >= MAX_TRANSFERS) return false;
    const before = [...earlier.keys()];
    this.#set(transfer, UNSENT_MS);
    if (before.length === 0) return true;
    let covered = false;
    try {
      covered = await this.#covers({ account, amount, before }, signal);
      return covered;
    } finally {
      if (!covered) this.over(transfer);
    }
  }

  /** Records that the transfer is about to be sent. */
  sent(transfer: SignedTransfer): void {
    this.#set(transfer, UNSEEN_MS);
  }

  /** Releases the amount: the chain has the transfer and its balance reflects it, or the transfer is not signed after all. */
  over({ signature, account }: Pick<SignedTransfer, 'signature' | 'account'>): void {
    this.#accounts.get(account)?.delete(signature);
  }

  /**
   * Reads the state of the transfers first and the balance afterwards, so that the balance already reflects those that have landed. A transfer that
   * lands between the two reads counts twice. So if the money is not enough, both are read again, until no further transfer has landed.
   */
  async #covers(
    { account, amount, before }: { account: string; amount: bigint; before: string[] },
    signal: AbortSignal,
  ): Promise<boolean> {
    let ahead = await this.#ahead(account, before, signal);
    for (;;) {
      if ((await this.#balance(account, signal)) >= ahead + amount) return true;
      const now = await this.#ahead(account, before, signal);
      if (now >= ahead) return false;
      ahead = now;
    }
  }

  /** The sum of the given transfers that are not on the chain yet. */
  async #ahead(account: string, before: string[], signal: AbortSignal): Promise<bigint> {
    const transfers = this.#transfers(account);
    const unseen = before.filter(signature => transfers.has(signature));
    const statuses = unseen.length > 0 ? await this.#chain.signatureStatuses(unseen, signal) : [];
    unseen.forEach((signature, index) => {
      const status = statuses[index];
      if (status && status.finality !== 'processed') this.over({ signature, account });
    });
    const left = this.#transfers(account);
    return before.reduce((sum, signature) => sum + (left.get(signature)?.amount ?? 0n), 0n);
  }

  async #balance(account: string, signal: AbortSignal): Promise<bigint> {
    const found = await this.#chain.account(account, signal, ACCOUNT_BYTES);
    return found && found.data.length >= ACCOUNT_BYTES ? found.data.readBigUInt64LE(AMOUNT_OFFSET) : 0n;
  }

  #transfers(account: string): Map<string, InFlight> {
    const now = this.#now();
    const transfers = this.#accounts.get(account) ?? new Map<string, InFlight>();
    for (const [signature, { until }] of transfers) if (until <= now) transfers.delete(signature);
    return transfers;
  }

  #set({ signature, account, amount }: SignedTransfer, ms: number): void {
    const transfers = this.#transfers(account);
    transfers.set(signature, { amount, until: this.#now() + ms });
    this.#accounts.set(account, transfers);
  }
}
