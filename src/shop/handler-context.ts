import type { Served, ServedFree, TableOf } from '../contract/operation.js';
import type { Log } from '../net/log.js';
import type { Network } from '../rails/solana/networks.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import type { ReplyStore, Sentiment } from '../upstreams/people/people.js';
import type { Respondents } from '../upstreams/people/respondents.js';

/** What a handler may read from the chain. */
export type ChainReads = Pick<SolanaChain, 'account' | 'balance' | 'signaturesFor' | 'transaction'>;

/** The page on which people answer the orders whose `replies` say how many are wanted. */
export type Panel = { replyStore: ReplyStore; presence: Respondents };

/** Infers what a reply without a choice says; undefined if it can't be told. */
export type SentimentOf = (text: string) => Promise<Sentiment | undefined>;

/**
 * All that an operation gets of the server that sells it. What is not here is imported from 'coinslot'. `Values`: those of the settings
 * that it declares (`withSettings`).
 */
export type HandlerContext<Values = Record<never, never>> = {
  settings: Values;
  /** `caip2`: `solana:` and the first 32 characters of the genesis hash. */
  network: Pick<Network, 'name' | 'caip2'>;
  chain: ChainReads;
  log: Log;
  /** Where callers reach this server, without trailing slash. */
  publicUrl: string;
  /** The sandbox's doubles of public services, each below a path of its name; undefined outside the sandbox. */
  sandboxServices: string | undefined;
  /** What several operations share: `make` is called once for each server, and what it returns is given to all who name it. */
  shared: <T>(make: (context: HandlerContext<Values>) => T) => T;
  /** Opens the panel. */
  panel: (sentimentOf: SentimentOf) => Panel;
};

/** Builds what sells an operation, once for each server. It does no slow work: a call or `health` does. */
export type Entry<O> = (context: HandlerContext) => Served<O> | Promise<Served<O>>;
/** As `Entry`, for an operation that is free. */
export type FreeEntry<O> = (context: HandlerContext) => ServedFree<O> | Promise<ServedFree<O>>;

/** The handlers of a shop by operationId (`export const handlers = { … } satisfies HandlersOf<operations>` in handlers/index.ts). */
export type HandlersOf<Operations> = TableOf<Operations, HandlerContext>;
