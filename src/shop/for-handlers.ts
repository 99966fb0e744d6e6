/*
 * The exports of 'coinslot' for the handlers of a shop and for their tests, which may use nothing else of Coinslot.
 * docs/tutorial/sell-your-own.md shows how to use them. A worker thread of a handler imports only types from here, because the rest loads the server.
 */

export type {
  Asked,
  Body,
  Call,
  Handler,
  OpenOrder,
  OrderRef,
  Params,
  Query,
  Ready,
  Reply,
} from '../contract/operation.js';
export type { Finding, Probe } from '../contract/probe.js';
export { NOT_CHARGED } from '../contract/not-charged.js';
export type {
  ChainReads,
  Entry,
  FreeEntry,
  HandlerContext,
  HandlersOf,
  OrderInProgress,
  Served,
  ServedFree,
} from './handler-context.js';
export { setting, withSettings, type Setting, type Settings, type ValuesOf } from './settings.js';
export { answerOfExample, type ExampleAnswer } from './answer-of-example.js';

// How a handler fails, and the resulting answer.
export { backoffSeconds, failureKind, readRetryAfter, UpstreamFailure } from '../net/failure.js';

// HTTP calls to a service, with a circuit breaker that pauses them after failures.
export {
  HttpClient,
  NoAnswer,
  type HttpAnswer,
  type HttpClientOptions,
  type HttpRequest,
  type NoAnswerKind,
} from '../net/http-client.js';
export { Circuit, Resting, type CircuitOptions } from '../net/circuit.js';

// For work on this machine: a fair queue and threads.
export { FairQueue, QueueFull, type Expected, type FairQueueOptions } from '../upstreams/fair-queue.js';
export { Threads, type Job, type ThreadsOptions } from '../upstreams/threads.js';

// Functions that wait, each with a deadline or a signal.
export {
  DeadlineExceeded,
  orAbort,
  pause,
  withAbortAfter,
  withDeadline,
  withEither,
} from '../net/deadline.js';
export type { Log } from '../net/log.js';

// Reads of the chain.
export type { Account, Holding } from '../rails/solana/rpc-results.js';
export { isOnCurve, programAddress, readAddress, toAddress } from '../rails/solana/address.js';
export { SYSTEM_PROGRAM, TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from '../rails/solana/networks.js';

// For buying from another shop: the wallet of `coinslot buy`; the handler stores its payments.
export { openPayer, type Fate, type KeptPayment, type Payer, type Priced } from './payer.js';
// Files of a call, which are data URLs.
export { fileOf, type SentFile } from '../contract/sent-file.js';

// Web pages, under a path of the operation's own, and the operation's section on the operator page.
export type { AdminSection, OrderView } from './admin-section.js';
export type { PageContext, PageRoute, Pages } from './pages.js';
export { BASE_STYLE } from '../pages/base-style.js';
export { EXCHANGE_TOKEN } from '../pages/browser-script.js';
export { escapeHtml, foreignBlock } from '../pages/escape.js';
export { PageFault, readForm } from '../pages/form.js';
export { LiveStreams } from '../pages/live.js';
export { brand, entrancePages, hidden, ICON, pageFrame, type EntrancePages } from '../pages/page-frame.js';
export { asset, events, html, see } from '../pages/page-responses.js';
export { Sessions, type Session, type SharedNotes } from '../pages/session.js';
export { SignIn } from '../pages/sign-in.js';
export { LeakyBuckets, perMinute } from '../net/leaky-buckets.js';

// Tables of the operation's own in the ledger's database.
export { execute, type TransactionBody } from '../ledger/engine.js';
export { idBytes as paymentKey } from '../ledger/ids.js';
export {
  lockOpenOrder,
  lockUnanswered,
  reportDone,
  type OperationStore,
  type StoreDefinition,
} from '../ledger/operation-store.js';
export { sql } from '../ledger/sql.js';
