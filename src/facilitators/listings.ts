import type { PricedOperation } from '../contract/contract.js';
import type { ToolShape } from '../methods/method.js';
import { listingOf } from '../methods/x402/listing.js';
import type { Terms } from '../methods/x402/requirements.js';
import type { Transport } from '../observe/observer.js';
import type { Called } from '../rails/rail.js';

/** The data for a facilitator's directory, which lists an operation once for each transport. */
export type Listing = {
  operation: string;
  transport: Transport;
  /** JSON of the members `resource` and `extensions`, without the braces around them. */
  members: string;
};

/** The directory entries of the operations. Each is serialised once, because it is the longest part of a request to a facilitator. */
export class Listings {
  readonly #terms: Terms;
  readonly #toolOf: (operation: PricedOperation) => ToolShape;
  readonly #known = new Map<string, Listing>();

  /** @param toolOf describes an operation as an MCP tool */
  constructor(terms: Terms, toolOf: (operation: PricedOperation) => ToolShape) {
    this.#terms = terms;
    this.#toolOf = toolOf;
  }

  /** Undefined if the operation is not to be listed. */
  of({ operation, transport }: Called): Listing | undefined {
    if (operation.unlisted) return undefined;
    const key = `${transport} ${operation.id}`;
    const known = this.#known.get(key) ?? this.#write(operation, transport);
    this.#known.set(key, known);
    return known;
  }

  #write(operation: PricedOperation, transport: Transport): Listing {
    const tool = transport === 'mcp' ? this.#toolOf(operation) : undefined;
    const members = JSON.stringify(listingOf(operation, this.#terms, tool)).slice(1, -1);
    return { operation: operation.id, transport, members };
  }
}
