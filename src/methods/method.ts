import type { IncomingHttpHeaders } from 'node:http';
import type { PricedOperation } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import type { Hints } from '../rails/rail.js';

/**
 * What may carry a payment: the headers of an HTTP request, or the `_meta` of an MCP tool call and the headers of the request that carries
 * this one call.
 */
export type Carrier = { headers: IncomingHttpHeaders } | { meta: Json; headers?: IncomingHttpHeaders };

/** A payment as a request carried it. What it moves has not been checked. */
export type Credential = {
  method: Method;
  /** What the rail checks, as text in the rail's own form; for example a half-signed transaction in base64. */
  evidence: string;
  /** The id under which the buyer can find its answer again; null if it gave none. */
  identifier: string | null;
  /** Why it does not match the current offer. It may have been accepted under an earlier one. */
  mismatch?: string;
  /** The challenge that it answers, where each is one of a kind: its id, and what it named for the rail to check. */
  challenge?: { id: string; named: Hints };
  /** Set if the buyer has had the transfer made: then `evidence` is the name under which the rail finds it. */
  made?: Made;
};

/**
 * `amount`: what the challenge asked for. `foreign`: it is no challenge of this server, as far as it can tell. `live`: it is one for this
 * operation, and in time, so that the rail may be asked for the transfer.
 */
export type Made = { amount: bigint; foreign: boolean; live: boolean };

export type Reading =
  | { kind: 'credential'; credential: Credential }
  /** It can't be read, or it matches no offer that this server ever made. */
  | { kind: 'refused'; method: Method; error: string };

/** A 402 answer that is ready to send: headers beside the content type, and the body. */
export type Challenge = { headers: Record<string, string>; body: Buffer };

/** How a payment ended, for its buyer. */
export type Receipt = {
  success: boolean;
  /** Why it moved no money, or why that is not yet certain. */
  errorReason?: string;
  payer: string;
  /** Base58 signature of the transfer, empty if unknown. */
  transaction: string;
  /** Atomic units. */
  amount?: string;
  /** What of it the operator paid back, in atomic units, and the last transaction that did. */
  refunded?: { amount: string; transaction: string };
};

/** What a receipt goes with. `sold`: the answer that was paid for. `challenge`: the id of the one that was answered, if it is known. */
export type Receipted = {
  sold: boolean;
  challenge?: string | undefined;
  /** The receipt as the shop signed it (JWS in compact form), for a method that carries such. */
  signed?: string | undefined;
};

/** How a tool of MCP is called. */
export type ToolShape = { inputSchema: Json; example: Json };

/** A challenge or a receipt as an MCP result has it. */
export type ToolPart = { structured: Json; meta: Json };

/** What the documents of a shop say about a method. */
export type MethodDocuments = {
  /** Its entry of `protocols` in `x-payment-info`; undefined if another method of its protocol has it. */
  protocol?: Json;
  /** Its entry of `offers` there (the draft payment-discovery of MPP), for an operation. */
  offer?: (operation: PricedOperation) => Json;
  /** How its challenge is read and its payment sent, as sentences. */
  instructions: string;
  /** The same as numbered steps. */
  steps: string[];
  /** How a tool of MCP is paid, for its description. */
  tool?: string;
  /** In a few words, after "by": `x402 on Solana`. */
  phrase?: string;
  /** For registries: protocol, scheme, network and asset. */
  terms?: Json;
};

/** How a buyer carries a payment: the challenge, the payment in a request, and the receipt. One instance for each version of a protocol. */
export interface Method {
  /** As the ledger writes it, for example `x402-v2`. */
  readonly name: string;
  /** Methods of one protocol are alternatives: a challenge is of one of them, the first unless the caller asks for another. */
  readonly protocol: string;
  /** The headers that may carry its payment, in lower case. */
  readonly requestHeaders: readonly string[];
  /** The headers that it adds to answers. */
  readonly answerHeaders: readonly string[];
  /** Whether no two of its challenges are alike, so that none is kept. */
  readonly fresh: boolean;
  /** Whether the query of a call without payment asks for its challenge. */
  isAskedBy(query: string): boolean;
  /** The payment of a request; undefined if it carries none of this method. Reads nothing but the carrier. */
  read(carrier: Carrier, operation: PricedOperation): Reading | undefined;
  /** @param error why the payment of the call was refused; cut if it is too long */
  challenge(operation: PricedOperation, hints: Hints, error?: string): Challenge;
  /** A challenge for documents, with placeholders for what changes. Clients of a mock can pay it. */
  example(operation: PricedOperation): Challenge;
  /** Its challenge in the result of a tool call. */
  toolChallenge(operation: PricedOperation, challenge: Challenge, tool: ToolShape): ToolPart;
  receiptHeaders(receipt: Receipt, goesWith: Receipted): Record<string, string>;
  receiptMeta(receipt: Receipt, goesWith: Receipted): Json;
  documents(): MethodDocuments;
}
