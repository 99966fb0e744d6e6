/**
 * What happens in the server. `sale/`, `http/` and `mcp/` report each event once; log, metrics and traces listen (`createObserver`).
 * Amounts are in atomic units, times in ms.
 */
export type Observer = {
  tell(event: Event): void;
  /** An unpaid call was answered with a challenge. It is only counted. */
  unpaid(operation: string): void;
  /** The ledger has committed a write, which took `ms`. A sale has several writes. */
  committed(ms: number): void;
  /**
   * Runs one step of a paid call, and measures it. `work` must report failures by rejecting, not by throwing
   * synchronously.
   */
  step<T>(step: Step, call: ObservedCall, work: () => Promise<T>): Promise<T>;
  /** Runs a paid call as one trace, which continues its caller's trace. */
  call<T>(call: CallStart, work: () => Promise<T>): Promise<T>;
};

export type Step = 'claim' | 'verify' | 'work' | 'settle';

/** How long the steps of a call have taken so far, in ms. */
export type Spent = Partial<Record<Step, number>>;

type ObservedCall = {
  operation: { id: string };
  requestId?: string | undefined;
  /** Filled in by `step`. */
  spent?: Spent | undefined;
};

type CallStart = {
  operation: string;
  requestId: string;
  transport: Transport;
  headers: Record<string, string | string[] | undefined>;
};

export type Transport = 'http' | 'mcp';

export type Event =
  | Sold
  | Answered
  | Decided
  | OrderChanged
  | Released
  | Throttled
  | Given
  | FalseSettlement
  | FacilitatorAnswered
  | Listed
  | UpstreamAnswered
  | LedgerFailed;

/** The money of a payment has moved, and the ledger has recorded it. Reported once per sale. */
export type Sold = {
  kind: 'sold';
  operation: string;
  payment: string;
  payer: string;
  amount: bigint;
  /** Base58. */
  settlement: string;
  /** The request that paid; undefined if its transfer was found on chain later. */
  requestId?: string | undefined;
  spent?: Spent | undefined;
};

/** A request with a payment was answered. */
export type Answered = {
  kind: 'answered';
  operation: string;
  transport: Transport;
  requestId: string;
  status: number;
  /** Undefined if the payment could not be read. */
  payment?: string | undefined;
  payer?: string | undefined;
  amount: bigint;
  /** The error for the caller, unless the answer was sold. */
  error?: string | undefined;
  /** Whether its receipt says that the money has moved. */
  paid: boolean;
  /** The call waits for an order, whose changes are reported separately. */
  reported?: boolean;
  ms: number;
  spent?: Spent | undefined;
};

/** The next step for a payment. For the log at level `debug`. */
type Decided = { kind: 'decided'; requestId?: string | undefined; payment: string; next: string };

/**
 * `paid`: the order begins; `delivered`: its answer is stored; `failed`: this attempt failed, and the next one can start later; `given up`:
 * it failed, and only the operator can start another attempt.
 */
export type OrderChanged = {
  kind: 'order';
  change: 'paid' | 'delivered' | 'failed' | 'given up';
  operation: string;
  payment: string;
  payer: string;
  amount: bigint;
  /** The last request for the order that this server saw; undefined if there was none since its start. */
  requestId?: string | undefined;
  why?: string;
};

/** A call was turned away before any work, because its address was over its limit. */
type Throttled = { kind: 'throttled' };

/** A call of a free operation was answered or refused. */
type Given = { kind: 'given'; operation: string; status: number };

/** The chain has shown that an unresolved payment was not charged. */
export type Released = {
  kind: 'released';
  operation: string;
  payment: string;
  payer: string;
  amount: bigint;
  why: string;
};

/** A facilitator reported this payment as settled, but the chain has shown that it was not. */
type FalseSettlement = {
  kind: 'false settlement';
  operation: string;
  payment: string;
  payer: string;
  amount: bigint;
  /** The transaction signature that the facilitator reported, base58. */
  settlement: string;
};

/** A facilitator answered a request. `failed`: it gave no usable answer. */
export type FacilitatorAnswered = {
  kind: 'facilitator';
  facilitator: string;
  request: 'supported' | 'verify' | 'sign' | 'settle';
  result: 'ok' | 'refused' | 'failed';
  ms: number;
  why?: string | undefined;
};

/**
 * A facilitator reported the state of an operation in its directory. `refused`: it refuses requests that ask to be listed, and is sent none
 * for a day.
 */
export type Listed = {
  kind: 'listing';
  facilitator: string;
  operation: string;
  transport: Transport;
  status: 'success' | 'processing' | 'rejected' | 'refused';
  why?: string;
};

/** A backend did, or failed to do, the work of one call. `invalid`: it could not serve this input. */
export type UpstreamAnswered = {
  kind: 'upstream';
  upstream: string;
  operation: string;
  result: 'ok' | 'failed' | 'invalid' | 'cancelled';
  ms: number;
  why?: string;
};

/** Why the ledger's database did not serve a write or a read. A full answer store or queue is not a failure of the database. */
type LedgerFailed = { kind: 'ledger'; failed: string };

export type Listener = {
  hear(event: Event): void;
};

/** For tests, and for places without listeners. */
export const UNOBSERVED: Observer = {
  tell: () => {},
  unpaid: () => {},
  committed: () => {},
  step: (_step, _call, work) => work(),
  call: (_call, work) => work(),
};
