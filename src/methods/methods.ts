import type { PricedOperation } from '../contract/contract.js';
import { hasHeader } from '../net/raw-headers.js';
import { bytesOf, MAX_HEADER_BYTES, OTHER_HEADER_BYTES, RECEIPT_HEADER_BYTES } from './header-bytes.js';
import type { Carrier, Challenge, Method, Reading } from './method.js';
import type { Hints } from '../rails/rail.js';

/** The challenges of one 402 answer by method, and how HTTP sends them: all headers, and the body of the first. */
export type Challenges = Challenge & { each: readonly { method: Method; challenge: Challenge }[] };

const ROOM = MAX_HEADER_BYTES - OTHER_HEADER_BYTES + RECEIPT_HEADER_BYTES;

/** The methods of a shop. Callers that request none of them get the first. */
export class Methods {
  readonly all: readonly [Method, ...Method[]];
  /** The headers that may carry a payment, in lower case. */
  readonly requestHeaders: readonly string[];
  /** Includes former methods of the shop, because payments in the ledger can still fetch their answers. */
  readonly #read: readonly Method[];
  readonly #readHeaders: readonly string[];

  /** @param former methods no longer offered, which accept no new payments */
  constructor(all: readonly [Method, ...Method[]], former: readonly Method[] = []) {
    this.all = all;
    this.#read = [...all, ...former];
    this.requestHeaders = headersOf(all);
    this.#readHeaders = headersOf(this.#read);
  }

  get first(): Method {
    return this.all[0];
  }

  /** The method of an earlier payment, by its name in the ledger; the first method if that one no longer exists. */
  named(name: string): Method {
    return this.#read.find(method => method.name === name) ?? this.first;
  }

  /** The method whose challenge a call asks for. `query` has no question mark. */
  askedBy(query: string | undefined): Method {
    return (query && this.all.find(method => method.isAskedBy(query))) || this.first;
  }

  /** Whether an HTTP request carries a payment. */
  areIn(rawHeaders: string[]): boolean {
    return this.#readHeaders.some(name => hasHeader(rawHeaders, name));
  }

  /** The payment of a request; undefined if it carries none. */
  read(carrier: Carrier, operation: PricedOperation): Reading | undefined {
    for (const method of this.#read) {
      const reading = method.read(carrier, operation);
      if (reading) return reading;
    }
    return undefined;
  }

  /** The methods whose challenges are sent together: the requested one, and the first of every other protocol. */
  beside(asked: Method): readonly Method[] {
    const protocols = new Set([asked.protocol]);
    const others = this.all.filter(({ protocol }) => !protocols.has(protocol) && protocols.add(protocol));
    return [asked, ...others];
  }

  /**
   * The challenge of the requested method, and those of the other methods that fit into the header limits of
   * proxies. None is shortened.
   * @param receipt the headers of a receipt that is sent with them
   */
  challenges(
    asked: Method,
    operation: PricedOperation,
    hints: Hints,
    error?: string,
    receipt: Record<string, string> = {},
  ): Challenges {
    const [first, ...others] = this.beside(asked).map(method => ({
      method,
      challenge: method.challenge(operation, hints, error),
    }));
    if (!first) throw new Error('a shop has at least one method');
    const each = [first];
    let { headers } = first.challenge;
    for (const other of others) {
      const together = { ...headers, ...other.challenge.headers };
      if (bytesOf({ ...receipt, ...together }) > ROOM) continue;
      headers = together;
      each.push(other);
    }
    return { headers, body: first.challenge.body, each };
  }
}

function headersOf(methods: readonly Method[]): string[] {
  return [...new Set(methods.flatMap(({ requestHeaders }) => requestHeaders))];
}
