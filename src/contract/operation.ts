import type { operations } from '../../generated/openapi.js';

/** Ids of all operations in the contract. */
export type OperationId = keyof operations;

type Responses<K extends OperationId> = operations[K]['responses'];

/** Ids of the operations that cost money: the ones that can answer 402. */
export type PaidOperationId = {
  [K in OperationId]: 402 extends keyof Responses<K> ? K : never;
}[OperationId];

/** The validated JSON body of a call, defaults applied. */
export type Body<K extends PaidOperationId> = operations[K] extends {
  requestBody: { content: { 'application/json': infer B } };
}
  ? B
  : never;

type Content<R> = R extends { content: infer C }
  ? C extends { 'application/json': infer Json }
    ? Json
    : Uint8Array
  : undefined;

/** Headers that are added in payments/, not by handlers. */
type ChargeHeader = 'PAYMENT-REQUIRED' | 'PAYMENT-RESPONSE' | 'X-PAYMENT-RESPONSE';
type Named<H> = { [P in keyof H as string extends P ? never : P extends ChargeHeader ? never : P]: H[P] };
type Required<H> = { [P in keyof H as undefined extends H[P] ? never : P]: `${H[P] & (string | number)}` };
type Headers<R> = R extends { headers: infer H } ? Required<Named<H>> : Record<never, never>;
type WithHeaders<R> = keyof Headers<R> extends never
  ? { headers?: Record<string, string> }
  : { headers: Headers<R> & Record<string, string> };

/**
 * What a handler returns: one of the statuses that the contract declares for the operation, with the body and the required
 * headers declared for that status. A handler never returns 402.
 */
export type Reply<K extends OperationId> = {
  [S in Exclude<keyof Responses<K>, 402>]: { status: S; body: Content<Responses<K>[S]> } & WithHeaders<
    Responses<K>[S]
  >;
}[Exclude<keyof Responses<K>, 402>];

/** An order that was paid up front: id of its payment, end of the attempt (ms since 1970), and number of the attempt. */
export type OrderRef = { id: string; deadline: number; attempt: number };

/**
 * A validated call. `signal` aborts when its deadline (20 s) has passed or no caller waits for the answer any more. An operation that
 * is paid up front has an `order` instead of that deadline, and its signal only aborts when the server shuts down. `caller` is an
 * opaque key by which callers can share a queue fairly.
 */
export type Call<K extends PaidOperationId> = {
  body: Body<K>;
  signal: AbortSignal;
  caller: string;
  order?: OrderRef;
};

/** Does the work of one operation. Throws `UpstreamFailure` if its backend can't serve it. */
export type Handler<K extends PaidOperationId> = (call: Call<K>) => Promise<Reply<K>>;

/** One handler for each paid operation. */
export type Handlers = { [K in PaidOperationId]: Handler<K> };

/** Called before an upfront payment is settled. Throws `UpstreamFailure` if the order could not be completed. */
export type Readiness = { [K in PaidOperationId]?: (body: Body<K>) => Promise<void> };

/** The number of replies that an order of an operation asks for; 1 by default. */
export type OrderSizes = { readonly [K in PaidOperationId]?: (body: Body<K>) => number };

/** The tags of the operations that a discovery document lists, and the names of the backends that a health document lists. */
export type Sections = {
  discovery: Partial<Record<OperationId, readonly string[]>>;
  health: Partial<Record<OperationId, readonly string[]>>;
};
