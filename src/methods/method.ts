import type { IncomingHttpHeaders } from 'node:http';
import type { PricedOperation } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import type { Hints } from '../rails/rail.js';

/**
 * The parts of a request that may carry a payment: the headers of an HTTP request, or the `_meta` of an MCP tool call and the headers of
 * the request that carries this one call.
 */
export type Carrier = { headers: IncomingHttpHeaders } | { meta: Json; headers?: IncomingHttpHeaders };

/** A payment as sent. Its transfer has not been checked. */
export type Credential = {
  method: Method;
  /** The evidence that the rail checks, as text in the rail's own form; for example a half-signed transaction in base64. */
  evidence: string;
  /** The id that the buyer chose to find its answer again; null if it gave none. */
  identifier: string | null;
  /** Why the payment does not match the current offer. It may match an earlier one. */
  mismatch?: string;
  /**
   * The challenge that the payment answers, if the method's challenges are unique: its id, and the values for the rail
   * to check.
   */
  challenge?: { id: string; named: Hints };
  /** Set if the buyer already sent the transfer: then `evidence` is the name by which the rail finds it. */
  made?: Made;
};

/**
 * `amount`: the amount in the challenge. `foreign`: the challenge does not seem to come from this server. `live`: it is for this
 * operation and has not expired, so the rail may be asked for the transfer.
 */
export type Made = { amount: bigint; foreign: boolean; live: boolean };

export type Reading =
  | { kind: 'credential'; credential: Credential }
  /** The payment can't be read, or it matches no offer that this server ever made. */
  | { kind: 'refused'; method: Method; error: string };

/** A 402 answer that is ready to send: its headers, without the content type, and its body. */
export type Challenge = { headers: Record<string, string>; body: Buffer };

/** The outcome of a payment, for its buyer. */
export type Receipt = {
  success: boolean;
  /** Why the payment moved no money, or why that is not yet certain. */
  errorReason?: string;
  payer: string;
  /** Base58 signature of the transfer, empty if unknown. */
  transaction: string;
  /** Atomic units. */
  amount?: string;
  /** The refunded amount in atomic units, and the last transaction of a refund. */
  refunded?: { amount: string; transaction: string };
};

/**
 * The answer that a receipt is sent with. `sold`: whether the answer was sold. `challenge`: the id of the
 * challenge that was paid, if known.
 */
export type Receipted = {
  sold: boolean;
  challenge?: string | undefined;
  /** The signed receipt (JWS in compact form), for methods that carry one. */
  signed?: string | undefined;
};

/** How an MCP tool is called. */
export type ToolShape = { inputSchema: Json; example: Json };

/** A challenge or a receipt in the form of an MCP result. */
export type ToolPart = { structured: Json; meta: Json };

/** A method's entries and instructions in the documents of a shop. */
export type MethodDocuments = {
  /**
   * The method's entry in the `protocols` of `x-payment-info`; undefined if another method of its protocol provides
   * it.
   */
  protocol?: Json;
  /** The method's entry for an operation in the `offers` of `x-payment-info` (MPP's draft payment-discovery). */
  offer?: (operation: PricedOperation) => Json;
  /** How to read the method's challenge and send its payment, as sentences. */
  instructions: string;
  /** How to read the challenge and send the payment, as numbered steps. */
  steps: string[];
  /** How to pay for an MCP tool, for the tool's description. */
  tool?: string;
  /** A short name, used after "by": `x402 on Solana`. */
  phrase?: string;
  /** For registries: protocol, scheme, network and asset. */
  terms?: Json;
};

/** How a buyer carries a payment: the challenge, the payment in a request, and the receipt. One instance for each version of a protocol. */
export interface Method {
  /** The method's name in the ledger, such as `x402-v2`. */
  readonly name: string;
  /** The protocol. A 402 has the challenge of only one method of each protocol: of the first, unless the caller asks for another. */
  readonly protocol: string;
  /** The headers that may carry the method's payment, in lower case. */
  readonly requestHeaders: readonly string[];
  /** The headers that the method adds to answers. */
  readonly answerHeaders: readonly string[];
  /** Whether each of the method's challenges is unique, so that none is cached. */
  readonly fresh: boolean;
  /** Whether the query of a call without payment asks for the method's challenge. */
  isAskedBy(query: string): boolean;
  /** The payment in a request; undefined if it carries no payment by this method. Depends only on the carrier. */
  read(carrier: Carrier, operation: PricedOperation): Reading | undefined;
  /** @param error why the payment of the call was refused; cut if it is too long */
  challenge(operation: PricedOperation, hints: Hints, error?: string): Challenge;
  /** A challenge for documents, with placeholders for what changes. Clients of a mock can pay it. */
  example(operation: PricedOperation): Challenge;
  /** The method's challenge in the result of a tool call. */
  toolChallenge(operation: PricedOperation, challenge: Challenge, tool: ToolShape): ToolPart;
  receiptHeaders(receipt: Receipt, goesWith: Receipted): Record<string, string>;
  receiptMeta(receipt: Receipt, goesWith: Receipted): Json;
  documents(): MethodDocuments;
}
