/*
 * The types that a handler sees. Each takes one operation as openapi-typescript describes it: `Handler<operations['summarize']>`.
 * Nothing here knows an operation by its name; names come from the contract of the shop.
 */

import type { HeaderOfEveryCall } from './header-names.js';
import type { Finding } from './probe.js';

/** The responses in the description of an operation that openapi-typescript generates. */
type Responses<O> = O extends { responses: infer R } ? R : never;

type NothingDeclared = Record<never, never>;
type Part<O, Name extends 'path' | 'query' | 'header'> = O extends { parameters: infer P }
  ? P extends { [N in Name]?: infer Declared }
    ? [NonNullable<Declared>] extends [never]
      ? NothingDeclared
      : NonNullable<Declared>
    : NothingDeclared
  : NothingDeclared;

/** The validated path parameters of a call. */
export type Params<O> = Part<O, 'path'>;

/** The validated query parameters of a call, defaults applied. `x402Version` belongs to the payment and is left out. */
export type Query<O> = Omit<Part<O, 'query'>, 'x402Version'>;

/** The validated header parameters of a call, by their names as the contract writes them. Headers of the payment are left out. */
export type HeaderParams<O> = {
  [K in keyof Part<O, 'header'> as Lowercase<K & string> extends HeaderOfEveryCall ? never : K]: Part<
    O,
    'header'
  >[K];
};

/**
 * The body that a handler gets for each content type: base64 for bytes, the text for other text types, otherwise the type of the schema.
 */
type SentAs<C> = {
  [T in keyof C]: T extends
    | `application/json${string}`
    | `application/${string}+json`
    | `application/x-www-form-urlencoded${string}`
    | `multipart/form-data${string}`
    ? C[T]
    : string;
}[keyof C];

/**
 * The validated body of a call, defaults applied; undefined where the contract declares none or an optional one was not sent. Bytes are
 * base64, and a file of a multipart form is a data URL, which also states its type and name: `fileOf` reads it.
 */
export type Body<O> = O extends { requestBody: { content: infer C } }
  ? SentAs<C>
  : O extends { requestBody?: { content: infer C } }
    ? SentAs<C> | undefined
    : undefined;

type Content<R> = R extends { content: infer C }
  ? C extends { 'application/json': infer Json }
    ? Json
    : C extends Record<`text/${string}`, string>
      ? string | Uint8Array
      : Uint8Array
  : undefined;

/** Headers that are added in methods/, not by handlers. */
type ChargeHeader =
  | 'PAYMENT-REQUIRED'
  | 'PAYMENT-RESPONSE'
  | 'X-PAYMENT-RESPONSE'
  | 'Answer-Receipt'
  | 'Location'
  | 'X-Request-Id';
type Named<H> = { [P in keyof H as string extends P ? never : P extends ChargeHeader ? never : P]: H[P] };
type Required<H> = { [P in keyof H as undefined extends H[P] ? never : P]: `${H[P] & (string | number)}` };
type Headers<R> = R extends { headers: infer H } ? Required<Named<H>> : Record<never, never>;
type WithHeaders<R> = keyof Headers<R> extends never
  ? { headers?: Record<string, string> }
  : { headers: Headers<R> & Record<string, string> };

/**
 * What a handler returns: one of the statuses that the contract declares for the operation, with the body and the required
 * headers declared for that status. A handler never returns 402. Where the contract declares several content types, the header
 * `Content-Type` says which one this is; otherwise it is the first.
 */
export type Reply<O> = {
  [S in Exclude<keyof Responses<O>, 402>]: { status: S; body: Content<Responses<O>[S]> } & WithHeaders<
    Responses<O>[S]
  >;
}[Exclude<keyof Responses<O>, 402>];

/** An order that was paid up front: the id of its payment, the end of the attempt (ms since 1970) and the number of the attempt. */
export type OrderRef = { id: string; deadline: number; attempt: number };

/** The order that a handler is working on. */
export type OpenOrder = OrderRef & {
  /**
   * Starts another attempt, which may take as long as the first. Possible once per order. @returns undefined
   * if the order has already been extended
   */
  extend: () => Promise<OrderRef | undefined>;
};

/** The validated input of a call. */
export type Asked<O> = {
  params: Params<O>;
  query: Query<O>;
  body: Body<O>;
  /** The content type of the body; undefined if it is the first one that the contract declares. */
  type?: string;
  /** The content type that the caller prefers for the answer; undefined if it is the first one that the contract declares. */
  accept?: string;
} & (keyof HeaderParams<O> extends never ? unknown : { headers: HeaderParams<O> });

/**
 * A validated call. `signal` aborts when its deadline (20 s) has passed or no caller is waiting for the answer any more. An operation
 * that is paid up front has an `order` instead of that deadline, and its signal only aborts when the server shuts down. `caller` is an
 * opaque key by which callers can share a queue fairly.
 */
export type Call<O> = Asked<O> & { signal: AbortSignal; caller: string; order?: OpenOrder };

/** Does the work of one operation. Throws `UpstreamFailure` if its backend can't serve it. */
export type Handler<O> = (call: Call<O>) => Promise<Reply<O>>;

/** Called before an upfront payment is settled. Throws `UpstreamFailure` if the order could not be completed. */
export type Ready<O> = (asked: Asked<O>) => Promise<void>;

/** How one paid operation is served. (Declared as methods, so that handlers of different operations fit into one table.) */
export type Served<O> = {
  call(call: Call<O>): Promise<Reply<O>>;
  /** Only for `upfront` operations; without it, every order is accepted. */
  ready?(asked: Asked<O>): Promise<void>;
  /**
   * Only for `upfront` operations whose work comes in parts, such as replies from people: the number of parts that an order asks for.
   * Progress is reported to its caller.
   */
  wanted?(asked: Asked<O>): number;
  /**
   * Required for operations with `mode: handler` in `x-price`, and only there: the price of a call in decimal dollars (`'0.02'`), from
   * `min` to `max` in the contract. It must be the same for the same call, and fast: it is called for every 402 and again for every
   * payment,
   * and has one second.
   */
  price?(asked: Asked<O>): string | Promise<string>;
} & Backed;

/** The backend that does the work of an operation. */
type Backed = {
  /** Its name in /health. Default: the operationId, if there is a `health`. */
  backend?: string;
  /** Checks whether the backend works, free of charge, about every 15 s and within 5 s. Rejects if it does not. */
  health?(signal: AbortSignal): Promise<Finding | void>;
  /** Called once, after the last call has ended. */
  close?(): Promise<void>;
};

/** How a free operation of the shop is served: its JSON, built for each request. */
export type ServedFree<O> = {
  call(): Promise<Content<Responses<O> extends { 200: infer R } ? R : never>>;
} & Backed;

/**
 * The handlers of a shop by operationId, each built from a context; `More` adds their pages for people. A handler that is not in
 * `Operations` is a compile error; an operation without a handler needs an `x-upstream` in the contract (see `checkHandlers`).
 */
export type TableOf<Operations, Context, More> = {
  readonly [K in keyof Operations]?: (
    context: Context,
  ) => 402 extends keyof Responses<Operations[K]>
    ? (Served<Operations[K]> & More) | Promise<Served<Operations[K]> & More>
    : (ServedFree<Operations[K]> & More) | Promise<ServedFree<Operations[K]> & More>;
};

/** A call of any operation, as the code between socket and handler sees it. */
export type AnyAsked = {
  params: Readonly<Record<string, unknown>>;
  query: Readonly<Record<string, unknown>>;
  /** Undefined if the operation takes none, or an optional one was not sent. */
  body: unknown;
  /** Undefined if the operation declares no header parameters. */
  headers?: Readonly<Record<string, unknown>>;
  /** The content type of the body; undefined if it is the first one that the contract declares. */
  type?: string;
  /** The content type that the caller prefers for the answer; undefined if it is the first one that the contract declares. */
  accept?: string;
};
export type AnyCall = AnyAsked & { signal: AbortSignal; caller: string; order?: OpenOrder };
/** `value`: the parsed JSON of a body in bytes, if it was parsed already. */
export type AnyReply = { status: number; body: unknown; headers?: Record<string, string>; value?: unknown };
export type AnyServed = {
  call(call: AnyCall): Promise<AnyReply>;
  ready?(asked: AnyAsked & { caller: string }): Promise<void>;
  wanted?(asked: AnyAsked): number;
  price?(asked: AnyAsked): string | Promise<string>;
  /** The host of the API that does the work; never shown to buyers. */
  host?: string;
} & Backed;

export type AnyFree = { call(): Promise<unknown> } & Backed;

/** All paid operations by operationId, whether a handler or an upstream serves them. */
export type Serving = Readonly<Record<string, AnyServed>>;
/** The free operations of a shop by operationId, in addition to those that the server itself answers. */
export type ServingFree = Readonly<Record<string, AnyFree>>;
