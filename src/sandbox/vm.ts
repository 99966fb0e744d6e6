import type { FailedTransactionMetadata, LiteSvm, TransactionMetadata } from 'litesvm/dist/internal.js';
import { PublicKey } from '@solana/web3.js';
import { toBase58 } from './base58.js';

/** An account of the chain. Money is in lamports. */
export type Account = { lamports: bigint; owner: string; data: Uint8Array; executable: boolean };

/** A transaction error as RPC nodes write it: a name, or `{ InstructionError: [index, …] }` and the like. */
export type TransactionError = string | { [name: string]: unknown };

export type InnerInstructions = {
  index: number;
  instructions: { programIdIndex: number; accounts: number[]; data: string; stackHeight: number }[];
}[];

/** The result of running a transaction. */
export type Execution = {
  err: TransactionError | null;
  logs: string[];
  units: number;
  inner: InnerInstructions;
  returnData: { programId: string; data: [string, 'base64'] } | null;
};

export type Simulation = Execution & { accounts: Map<string, Account> };

// litesvm's enums exist only at compile time, so their names are repeated here, in the order of their declarations.
const TRANSACTION_ERRORS =
  `AccountInUse AccountLoadedTwice AccountNotFound ProgramAccountNotFound InsufficientFundsForFee
  InvalidAccountForFee AlreadyProcessed BlockhashNotFound CallChainTooDeep MissingSignatureForFee InvalidAccountIndex
  SignatureFailure InvalidProgramForExecution SanitizeFailure ClusterMaintenance AccountBorrowOutstanding
  WouldExceedMaxBlockCostLimit UnsupportedVersion InvalidWritableAccount WouldExceedMaxAccountCostLimit
  WouldExceedAccountDataBlockLimit TooManyAccountLocks AddressLookupTableNotFound InvalidAddressLookupTableOwner
  InvalidAddressLookupTableData InvalidAddressLookupTableIndex InvalidRentPayingAccount WouldExceedMaxVoteCostLimit
  WouldExceedAccountDataTotalLimit MaxLoadedAccountsDataSizeExceeded ResanitizationNeeded
  InvalidLoadedAccountsDataSizeLimit UnbalancedTransaction ProgramCacheHitMaxLimit CommitCancelled`.split(
    /\s+/,
  );
const INSTRUCTION_ERRORS =
  `GenericError InvalidArgument InvalidInstructionData InvalidAccountData AccountDataTooSmall
  InsufficientFunds IncorrectProgramId MissingRequiredSignature AccountAlreadyInitialized UninitializedAccount
  UnbalancedInstruction ModifiedProgramId ExternalAccountLamportSpend ExternalAccountDataModified ReadonlyLamportChange
  ReadonlyDataModified DuplicateAccountIndex ExecutableModified RentEpochModified NotEnoughAccountKeys
  AccountDataSizeChanged AccountNotExecutable AccountBorrowFailed AccountBorrowOutstanding DuplicateAccountOutOfSync
  Custom InvalidError ExecutableDataModified ExecutableLamportChange ExecutableAccountNotRentExempt UnsupportedProgramId
  CallDepth MissingAccount ReentrancyNotAllowed MaxSeedLengthExceeded InvalidSeeds InvalidRealloc
  ComputationalBudgetExceeded PrivilegeEscalation ProgramEnvironmentSetupFailure ProgramFailedToComplete
  ProgramFailedToCompile Immutable IncorrectAuthority AccountNotRentExempt InvalidAccountOwner ArithmeticOverflow
  UnsupportedSysvar IllegalOwner MaxAccountsDataAllocationsExceeded MaxAccountsExceeded
  MaxInstructionTraceLengthExceeded BuiltinProgramsMustConsumeComputeUnits BorshIoError`
    .split(/\s+/)
    .filter(name => name !== 'Custom');

const loadNative = async () => (await import('litesvm/dist/internal.js')).default;
type Native = Awaited<ReturnType<typeof loadNative>>;

/** The Solana VM: executes transactions on accounts. It checks neither signatures nor blockhashes, because the chain checks them. */
export class Vm {
  #svm: LiteSvm;
  #native: Native;

  private constructor(native: Native) {
    this.#native = native;
    this.#svm = new native.LiteSvm();
    this.#svm.setSigverify(false);
    this.#svm.setBlockhashCheck(false);
    this.#svm.setTransactionHistory(0n);
    this.#svm.setLogBytesLimit(10_000n);
  }

  /** Loads the native VM, which takes tens of milliseconds. */
  static async load(): Promise<Vm> {
    return new Vm(await loadNative());
  }

  setClock(slot: number, unixSeconds: number): void {
    const clock = this.#svm.getClock();
    clock.slot = BigInt(slot);
    clock.epoch = BigInt(Math.floor(slot / 432_000));
    clock.leaderScheduleEpoch = clock.epoch + 1n;
    clock.unixTimestamp = BigInt(unixSeconds);
    this.#svm.setClock(clock);
  }

  account(address: string): Account | null {
    const found = this.#svm.getAccount(new PublicKey(address).toBytes());
    return found && toAccount(found);
  }

  balance(address: string): bigint {
    return this.#svm.getBalance(new PublicKey(address).toBytes()) ?? 0n;
  }

  /** Sets an account; null removes it. */
  setAccount(address: string, account: Account | null): void {
    const { lamports, data, owner, executable } = account ?? EMPTY;
    const made = new this.#native.Account(lamports, data, new PublicKey(owner).toBytes(), executable, 0n);
    this.#svm.setAccount(new PublicKey(address).toBytes(), made);
  }

  programAccounts(program: string): [address: string, account: Account][] {
    return this.#svm
      .getProgramAccounts(new PublicKey(program).toBytes())
      .map(entry => [toBase58(entry.address), toAccount(entry.account())]);
  }

  rentExemption(bytes: number): bigint {
    return this.#svm.minimumBalanceForRentExemption(BigInt(bytes));
  }

  /** Runs a transaction and keeps its changes. `bytes` must have been read by readTransaction. */
  execute(bytes: Uint8Array): Execution {
    const result = this.#svm.sendVersionedTransaction(bytes);
    if (result instanceof this.#native.FailedTransactionMetadata)
      return toExecution(result.meta(), toError(result));
    return toExecution(result, null);
  }

  /** Runs a transaction and discards its changes. */
  simulate(bytes: Uint8Array): Simulation {
    const result = this.#svm.simulateVersionedTransaction(bytes);
    if (result instanceof this.#native.FailedTransactionMetadata) {
      return { ...toExecution(result.meta(), toError(result)), accounts: new Map() };
    }
    const accounts = new Map<string, Account>();
    for (const entry of result.postAccounts())
      accounts.set(toBase58(entry.address), toAccount(entry.account()));
    return { ...toExecution(result.meta(), null), accounts };
  }
}

const EMPTY: Account = {
  lamports: 0n,
  owner: '11111111111111111111111111111111',
  data: new Uint8Array(0),
  executable: false,
};

type NativeAccount = { lamports(): bigint; owner(): Uint8Array; data(): Uint8Array; executable(): boolean };

function toAccount(account: NativeAccount): Account {
  return {
    lamports: account.lamports(),
    owner: toBase58(account.owner()),
    data: account.data(),
    executable: account.executable(),
  };
}

function toExecution(meta: TransactionMetadata, err: TransactionError | null): Execution {
  const returned = meta.returnData();
  const data = returned.data();
  return {
    err,
    logs: meta.logs(),
    units: Number(meta.computeUnitsConsumed()),
    inner: toInner(meta),
    returnData:
      data.length > 0
        ? {
            programId: toBase58(returned.programId()),
            data: [Buffer.from(data).toString('base64'), 'base64'],
          }
        : null,
  };
}

function toInner(meta: TransactionMetadata): InnerInstructions {
  return meta
    .innerInstructions()
    .map((list, index) => ({
      index,
      instructions: list.map(inner => {
        const instruction = inner.instruction();
        return {
          programIdIndex: instruction.programIdIndex(),
          accounts: [...instruction.accounts()],
          data: toBase58(instruction.data()),
          stackHeight: inner.stackHeight(),
        };
      }),
    }))
    .filter(entry => entry.instructions.length > 0);
}

function toError(failed: FailedTransactionMetadata): TransactionError {
  const error = failed.err();
  if (typeof error === 'number') return TRANSACTION_ERRORS[error] ?? `Unknown(${String(error)})`;
  if ('accountIndex' in error) {
    const name = error.constructor.name.replace(/^TransactionError/, '');
    return { [name]: { account_index: error.accountIndex } };
  }
  if (!('err' in error)) return { DuplicateInstruction: error.index };
  const cause = error.err();
  if (typeof cause === 'number')
    return { InstructionError: [error.index, INSTRUCTION_ERRORS[cause] ?? 'InvalidError'] };
  return { InstructionError: [error.index, 'code' in cause ? { Custom: cause.code } : 'BorshIoError'] };
}
