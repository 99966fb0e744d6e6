import type { OrderRef, Served as Paid, ServedFree as Free, TableOf } from '../contract/operation.js';
import type { OperationStore, StoreDefinition } from '../ledger/operation-store.js';
import type { Log } from '../net/log.js';
import type { SharedNotes } from '../pages/session.js';
import type { Network } from '../rails/solana/networks.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import type { AdminSection } from './admin-section.js';
import type { Pages } from './pages.js';

/** The chain reads available to a handler. */
export type ChainReads = Pick<
  SolanaChain,
  'account' | 'accounts' | 'balance' | 'largestHoldings' | 'signaturesFor' | 'transaction'
>;

/**
 * Everything that an operation gets from its server. Anything else is imported from 'coinslot'. `Values`: the values of the settings that
 * the operation declares (`withSettings`).
 */
export type HandlerContext<Values = Record<never, never>> = {
  settings: Values;
  /** `caip2`: `solana:` and the first 32 characters of the genesis hash. */
  network: Pick<Network, 'name' | 'caip2'>;
  chain: ChainReads;
  log: Log;
  /** The name of the shop, as its pages show it. */
  shopName: string;
  /** The public URL of this server, without trailing slash. */
  publicUrl: string;
  /** The URL of the sandbox's doubles of public services, each under a path with its name; undefined outside the sandbox. */
  sandboxServices: string | undefined;
  notes: SharedNotes;
  /**
   * Opens tables of the operation's own in the ledger's database, and brings them up to date. On PostgreSQL, the server does not start if the
   * tables must change while other servers use the ledger.
   */
  openStore: (definition: StoreDefinition) => Promise<OperationStore>;
  /** The operation's orders in progress whose work has parts (`wanted`), oldest first, at most 1 000. */
  ordersInProgress: () => Promise<OrderInProgress[]>;
  /** Aborts when the server shuts down; open streams of pages must end then. */
  closing: AbortSignal;
  /** A value shared by several operations: `make` is called once per server, and its result is given to all that use the same name. */
  shared: <T>(make: (context: HandlerContext<Values>) => T) => T;
};

/** An order in progress or waiting. `body`: the validated body of the call. */
export type OrderInProgress = OrderRef & { body: unknown; wanted: number; done: number };

/** The web pages of an operation: pages on the public server, and a section on the operator page. */
export type Shown = { pages?: Pages; admin?: AdminSection };

/** How a paid operation is served. */
export type Served<O> = Paid<O> & Shown;
/** How a free operation of the shop is served. */
export type ServedFree<O> = Free<O> & Shown;

/** Builds the functions that sell an operation, once per server. Slow work belongs in a call or in `health`. */
export type Entry<O> = (context: HandlerContext) => Served<O> | Promise<Served<O>>;
/** Like `Entry`, but for a free operation. */
export type FreeEntry<O> = (context: HandlerContext) => ServedFree<O> | Promise<ServedFree<O>>;

/** The handlers of a shop by operationId (`export const handlers = { … } satisfies HandlersOf<operations>` in handlers/index.ts). */
export type HandlersOf<Operations> = TableOf<Operations, HandlerContext, Shown>;
