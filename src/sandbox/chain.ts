import { renameSync, rmSync } from 'node:fs';
import {
  ComputeBudgetProgram,
  PublicKey,
  SYSVAR_CLOCK_PUBKEY,
  SYSVAR_RECENT_BLOCKHASHES_PUBKEY,
} from '@solana/web3.js';
import { Blockhashes } from './blockhash.js';
import { restoreAccount, storeAccount, type Genesis, type SlotClock, type StoredAccount } from './genesis.js';
import { History, type Entry, type Page } from './history.js';
import { Journal, type Place } from './journal.js';
import { readMint, readTokenAccount, uiAmount, type UiAmount } from './tokens.js';
import type { Account, InnerInstructions, Simulation, TransactionError, Vm } from './vm.js';
import { memoOf, signaturesHold, withBlockhash, type WireTransaction } from './wire-transaction.js';

export type Commitment = 'processed' | 'confirmed' | 'finalized';

/** Number of slots for which a blockhash is valid. */
const BLOCKHASH_SLOTS = 150;
/** Number of slots after which a transaction is finalized. */
const FINAL_SLOTS = 32;
/** The number of slots for which a bank reports statuses without searching its history. */
export const STATUS_SLOTS = 300;
const LAMPORTS_PER_SIGNATURE = 5000;
const CLOCK = SYSVAR_CLOCK_PUBKEY.toBase58();
const RECENT_BLOCKHASHES = SYSVAR_RECENT_BLOCKHASHES_PUBKEY.toBase58();
const SYSVAR_PROGRAM = 'Sysvar1111111111111111111111111111111111111';
const MAX_TRANSACTIONS = 200_000;
const LOOKUP_TABLE_HEADER = 56;

export type TokenBalance = {
  accountIndex: number;
  mint: string;
  owner: string;
  programId: string;
  uiTokenAmount: UiAmount;
};

export type LoadedAddresses = { writable: string[]; readonly: string[] };

/** A transaction that landed, failed or not, as the journal keeps it. Balances are in lamports. */
export type Landed = {
  k: 'tx';
  signature: string;
  hash: string;
  slot: number;
  /** Seconds since 1970. */
  blockTime: number;
  err: TransactionError | null;
  fee: number;
  units: number;
  logs: string[];
  inner: InnerInstructions;
  /** All addresses of the transaction: of the message, then loaded writable, then loaded read-only. */
  keys: string[];
  loaded: LoadedAddresses | null;
  memo: string | null;
  preBalances: number[];
  postBalances: number[];
  preTokens: TokenBalance[];
  postTokens: TokenBalance[];
  /** The transaction, base64. */
  wire: string;
  /** The resulting state of every account that it could write to. */
  accounts: { [address: string]: StoredAccount };
};

type JournalRecord = Landed | ({ k: 'clock' } & SlotClock) | { k: 'accounts'; accounts: Landed['accounts'] };

/** `err` with `landed: false`: the transaction was dropped and changed nothing. Not even the fee was charged. */
export type Submission = { signature: string; landed: boolean; err: TransactionError | null };

export type SimulationOptions = { sigVerify: boolean; replaceBlockhash: boolean };

export type ChainOptions = {
  genesis: Genesis;
  vm: Vm;
  journalFile: string;
  slotMs: number;
  maxTransactions?: number;
};

/**
 * A Solana chain with one node: lands every valid transaction immediately, in the current slot, and never forks. A transaction is
 * `confirmed` when it lands and `finalized` 32 slots later; account state is always the latest.
 */
export class Chain {
  readonly genesis: Genesis;
  readonly #vm: Vm;
  readonly #blockhashes: Blockhashes;
  readonly #history: History;
  readonly #journal: Journal;
  #clock: SlotClock;
  #lastSlot: number;
  /** Blockhashes of slots up to this one have been issued. */
  #namedSlot = 0;
  #broken = false;

  /** Resumes the chain of the journal. An empty journal begins a new chain at the genesis. */
  constructor({ genesis, vm, journalFile, slotMs, maxTransactions = MAX_TRANSACTIONS }: ChainOptions) {
    this.genesis = genesis;
    this.#vm = vm;
    this.#blockhashes = new Blockhashes(Buffer.from(genesis.secret, 'base64'));
    const past = replay(journalFile, genesis, maxTransactions);
    for (const [address, account] of past.accounts) vm.setAccount(address, restoreAccount(account));
    this.#history = past.history;
    this.#journal = past.journal;
    this.#clock = past.clock;
    this.#lastSlot = past.lastSlot;
    if (slotMs !== this.#clock.slotMs) this.#changePace(slotMs);
    // The hash of the current block may have been issued before a restart.
    this.#namedSlot = this.slot('processed');
  }

  /** Slots and block heights are the same here. `confirmed` is one slot behind, as on a network with votes. */
  slot(commitment: Commitment): number {
    const { slot, time, slotMs } = this.#clock;
    const now = slot + Math.floor((Date.now() - time) / slotMs);
    this.#lastSlot = Math.max(this.#lastSlot, now);
    return this.#lastSlot - { processed: 0, confirmed: 1, finalized: FINAL_SLOTS }[commitment];
  }

  /**
   * A unique blockhash (the first one issued in a slot is the hash of the slot's block), and the last block height at which a transaction
   * with it can land.
   */
  latestBlockhash(commitment: Commitment): { blockhash: string; lastValidBlockHeight: number } {
    const slot = this.slot(commitment);
    const isFirst = slot > this.#namedSlot;
    if (isFirst) this.#namedSlot = slot;
    const blockhash = isFirst ? this.#blockhashes.ofBlock(slot) : this.#blockhashes.issue(slot);
    return { blockhash, lastValidBlockHeight: slot + BLOCKHASH_SLOTS };
  }

  blockhashLives(blockhash: string): boolean {
    const slot = this.#blockhashes.slotOf(blockhash);
    const now = this.slot('processed');
    return slot !== null && slot <= now && now <= slot + BLOCKHASH_SLOTS;
  }

  /** The newest state of an account, whatever the commitment; only the clock is shown as of the commitment's newest slot. */
  account(address: string, commitment: Commitment = 'processed'): Account | null {
    if (address === RECENT_BLOCKHASHES) return this.#recentBlockhashes();
    if (address === CLOCK) this.#setVmClock(commitment);
    return this.#vm.account(address);
  }

  programAccounts(program: string): [address: string, account: Account][] {
    return this.#vm.programAccounts(program);
  }

  rentExemption(bytes: number): bigint {
    return this.#vm.rentExemption(bytes);
  }

  decimalsOf(mint: string): number | null {
    return readMint(this.#vm.account(mint))?.decimals ?? null;
  }

  /** Simulates a transaction. Empty signature slots are allowed unless `sigVerify` is set. */
  simulate(transaction: WireTransaction, { sigVerify, replaceBlockhash }: SimulationOptions): Simulation {
    if (sigVerify && !signaturesHold(transaction)) return failedSimulation('SignatureFailure');
    const fault = replaceBlockhash ? null : this.#ageFault(transaction);
    if (fault) return failedSimulation(fault);
    this.#setVmClock();
    const fresh = (): string => this.latestBlockhash('processed').blockhash;
    return this.#vm.simulate((replaceBlockhash ? withBlockhash(transaction, fresh()) : transaction).bytes);
  }

  /**
   * Lands a transaction, or drops it. Resolves when the result is in the journal and on disk.
   * A transaction is dropped for SignatureFailure, BlockhashNotFound, AlreadyProcessed (the same message landed before) and every fault
   * that keeps a bank from charging the fee. A transaction that fails in execution lands with its `err` and pays its fee.
   */
  async submit(transaction: WireTransaction): Promise<Submission> {
    const { signature } = transaction;
    if (this.#broken)
      throw new Error(
        'The journal of the local chain could not be written. Check the disk and restart the sandbox.',
      );
    const fault = signaturesHold(transaction) ? this.#ageFault(transaction) : 'SignatureFailure';
    if (fault) return { signature, landed: false, err: fault };
    const { landed, err } = this.#execute(transaction);
    if (landed) this.#record(landed);
    await this.#journal.durable();
    return { signature, landed: landed !== null, err };
  }

  find(signature: string): Entry | null {
    return this.#history.find(signature);
  }

  /** Whether a landed transaction is visible at a commitment. */
  isVisible(entry: Entry, commitment: Commitment): boolean {
    return commitment !== 'finalized' || entry.slot <= this.slot('finalized');
  }

  /** Transactions that touched an address, newest first. */
  ofAddress(address: string, page: Omit<Page, 'newest'>, commitment: Commitment): Entry[] {
    const newest = commitment === 'finalized' ? this.slot('finalized') : Infinity;
    return this.#history.ofAddress(address, { ...page, newest });
  }

  /** Everything known about a landed transaction, read back from the journal. */
  details(entry: Entry): Landed {
    return this.#journal.read(entry.place) as Landed;
  }

  async close(): Promise<void> {
    await this.#journal.close();
  }

  /** The sysvar RecentBlockhashes: a count (u64), then hash and fee per signature (u64) of each block of the window, newest first. */
  #recentBlockhashes(): Account {
    const newest = this.slot('processed');
    const data = Buffer.alloc(8 + BLOCKHASH_SLOTS * 40);
    data.writeBigUInt64LE(BigInt(BLOCKHASH_SLOTS));
    for (let age = 0; age < BLOCKHASH_SLOTS; age++) {
      const entry = 8 + age * 40;
      data.set(new PublicKey(this.#blockhashes.ofBlock(newest - age)).toBytes(), entry);
      data.writeBigUInt64LE(BigInt(LAMPORTS_PER_SIGNATURE), entry + 32);
    }
    return { lamports: this.rentExemption(data.length), owner: SYSVAR_PROGRAM, data, executable: false };
  }

  #ageFault(transaction: WireTransaction): TransactionError | null {
    if (!this.blockhashLives(transaction.message.recentBlockhash)) return 'BlockhashNotFound';
    return this.#history.has(transaction.hash) ? 'AlreadyProcessed' : null;
  }

  #execute(transaction: WireTransaction): { landed: Landed | null; err: TransactionError | null } {
    const loaded = this.#loadedAddresses(transaction);
    const keys = [...transaction.keys, ...(loaded?.writable ?? []), ...(loaded?.readonly ?? [])];
    const preBalances = this.#balances(keys);
    const preTokens = this.#tokenBalances(transaction, keys);
    const slot = this.#setVmClock();
    const { err, logs, units, inner } = this.#vm.execute(transaction.bytes);
    const postBalances = this.#balances(keys);
    const charged = (preBalances[0] ?? 0) - (postBalances[0] ?? 0);
    // A failed transaction lands if its fee could be charged; otherwise it is dropped.
    if (err && charged <= 0) return { landed: null, err };
    const landed: Landed = {
      k: 'tx',
      signature: transaction.signature,
      hash: transaction.hash,
      slot,
      blockTime: Math.floor(Date.now() / 1000),
      err,
      fee: err ? charged : feeOf(transaction),
      units,
      logs,
      inner,
      keys,
      loaded,
      memo: memoOf(transaction),
      preBalances,
      postBalances,
      preTokens,
      postTokens: this.#tokenBalances(transaction, keys),
      wire: Buffer.from(transaction.bytes).toString('base64'),
      accounts: this.#written(transaction, keys),
    };
    return { landed, err };
  }

  #record(landed: Landed): void {
    // Until the append returns, the accounts are ahead of the journal, so after a failed append the chain stops.
    this.#broken = true;
    this.#history.add(toEntry(landed, this.#journal.append(landed)), landed.keys);
    this.#broken = false;
  }

  #written(transaction: WireTransaction, keys: string[]): Landed['accounts'] {
    const accounts: Landed['accounts'] = {};
    keys.forEach((key, index) => {
      if (transaction.message.isAccountWritable(index)) accounts[key] = storeAccount(this.#vm.account(key));
    });
    return accounts;
  }

  #balances(keys: string[]): number[] {
    return keys.map(key => Number(this.#vm.balance(key)));
  }

  #tokenBalances(transaction: WireTransaction, keys: string[]): TokenBalance[] {
    // Skips programs, which are megabytes of code and hold no tokens.
    const programs = new Set(transaction.message.compiledInstructions.map(one => one.programIdIndex));
    return keys.flatMap((key, accountIndex) => {
      const account = programs.has(accountIndex) ? null : this.#vm.account(key);
      const held = readTokenAccount(account);
      const decimals = held && this.decimalsOf(held.mint);
      if (!account || !held || decimals === null) return [];
      const uiTokenAmount = uiAmount(held.amount, decimals);
      return [{ accountIndex, mint: held.mint, owner: held.owner, programId: account.owner, uiTokenAmount }];
    });
  }

  #loadedAddresses({ message }: WireTransaction): LoadedAddresses | null {
    if (message.version === 'legacy') return null;
    const loaded: LoadedAddresses = { writable: [], readonly: [] };
    for (const { accountKey, writableIndexes, readonlyIndexes } of message.addressTableLookups) {
      const data = this.#vm.account(accountKey.toBase58())?.data ?? new Uint8Array(0);
      const at = (index: number): string => {
        const from = LOOKUP_TABLE_HEADER + index * 32;
        const bytes = data.subarray(from, from + 32);
        return bytes.length === 32 ? new PublicKey(bytes).toBase58() : PublicKey.default.toBase58();
      };
      loaded.writable.push(...writableIndexes.map(at));
      loaded.readonly.push(...readonlyIndexes.map(at));
    }
    return loaded;
  }

  #setVmClock(commitment: Commitment = 'processed'): number {
    const slot = this.slot(commitment);
    const ageMs = (this.slot('processed') - slot) * this.#clock.slotMs;
    this.#vm.setClock(slot, Math.floor((Date.now() - ageMs) / 1000));
    return slot;
  }

  /** Changes the length of slots from the current slot on. */
  #changePace(slotMs: number): void {
    this.#clock = { slot: this.slot('processed'), time: Date.now(), slotMs };
    this.#journal.append({ k: 'clock', ...this.#clock });
  }
}

/** The fee in lamports: a fixed fee for each signature, plus the compute price times the compute limit. */
export function feeOf({ message }: Pick<WireTransaction, 'message'>): number {
  const budget = ComputeBudgetProgram.programId.toBase58();
  let limit: number | null = null;
  let price = 0n;
  let others = 0;
  for (const { programIdIndex, data } of message.compiledInstructions) {
    const bytes = Buffer.from(data);
    if (message.staticAccountKeys[programIdIndex]?.toBase58() !== budget) others++;
    else if (bytes[0] === 2 && bytes.length >= 5) limit = bytes.readUInt32LE(1);
    else if (bytes[0] === 3 && bytes.length >= 9) price = bytes.readBigUInt64LE(1);
  }
  const units = BigInt(Math.min(limit ?? others * 200_000, 1_400_000));
  const priority = (price * units + 999_999n) / 1_000_000n;
  return message.header.numRequiredSignatures * LAMPORTS_PER_SIGNATURE + Number(priority);
}

function failedSimulation(err: TransactionError): Simulation {
  return { err, logs: [], units: 0, inner: [], returnData: null, accounts: new Map() };
}

function toEntry({ signature, hash, slot, blockTime, err, memo }: Landed, place: Place): Entry {
  return { signature, hash, slot, blockTime, err, memo, place };
}

type Past = {
  journal: Journal;
  history: History;
  accounts: Map<string, StoredAccount>;
  clock: SlotClock;
  lastSlot: number;
};

function replay(file: string, genesis: Genesis, maxTransactions: number): Past {
  const past = scan(file, genesis, maxTransactions);
  // Rewriting takes a few seconds at most, and is worthwhile when a third of the file is obsolete.
  if (past.history.forgotten <= maxTransactions / 2) return past;
  return compact(file, past, () => scan(file, genesis, maxTransactions));
}

function scan(file: string, genesis: Genesis, maxTransactions: number): Past {
  const accounts = new Map(Object.entries(genesis.accounts));
  const history = new History(maxTransactions);
  let clock = genesis.clock;
  let lastSlot = clock.slot;
  const journal = Journal.open(file, (line, place) => {
    const record = line as JournalRecord;
    if (record.k === 'clock') clock = { slot: record.slot, time: record.time, slotMs: record.slotMs };
    else for (const [address, account] of Object.entries(record.accounts)) accounts.set(address, account);
    if (record.k === 'tx') history.add(toEntry(record, place), record.keys);
    if ('slot' in record) lastSlot = Math.max(lastSlot, record.slot);
  });
  return { journal, history, accounts, clock, lastSlot };
}

/** Rewrites the journal, so that it contains only the state of all accounts and the transactions that are still remembered. */
function compact(file: string, past: Past, reopen: () => Past): Past {
  const draft = `${file}.new`;
  rmSync(draft, { force: true });
  const fresh = Journal.open(draft, () => undefined);
  fresh.append({ k: 'clock', ...past.clock });
  for (const entry of past.history.all())
    fresh.append({ ...(past.journal.read(entry.place) as Landed), accounts: {} });
  fresh.append({ k: 'accounts', accounts: Object.fromEntries(past.accounts) });
  fresh.closeNow();
  past.journal.closeNow();
  renameSync(draft, file);
  return reopen();
}
