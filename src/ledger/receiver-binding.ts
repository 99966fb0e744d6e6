import { execute } from './engine.js';
import type { TransactionBody } from './engine.js';
import { LedgerFault } from './fault.js';
import type { ServerIdentity } from './migrate.js';
import { bindReceiver, keepMeta, receiverBound } from './queries/meta.js';

/** An address to which payments of this ledger were made until a time (ms since 1970). */
export type FormerReceiver = { payTo: string; until: number };

/** Reads the former receivers from the ledger's metadata, oldest first. */
export function formerReceiversOf(meta: ReadonlyMap<string, string>): FormerReceiver[] {
  return JSON.parse(meta.get('former_pay_to') ?? '[]') as FormerReceiver[];
}

/**
 * Binds the ledger to the receiver and the network of its first sale. Until then it belongs to no receiver, so that starting with a wrong
 * PAY_TO or NETWORK has no consequences. The receiver is stored in one row, and the statement that moves a payment to `settling` checks it.
 * So if several servers start with different receivers, only one of them can sell.
 */
export class ReceiverBinding {
  readonly payTo: string;
  readonly #network: string;
  #bound = false;
  /** Set once the ledger is found to belong to another receiver. After that, this server claims no payments. */
  #fault: LedgerFault | undefined;

  constructor({ payTo, network }: ServerIdentity) {
    this.payTo = payTo;
    this.#network = network;
  }

  /** Runs in the transaction that moves a payment to `settling`, after that change. Does nothing once `committed` was called. */
  *bind(): TransactionBody<void> {
    if (this.#bound) return;
    const [bound] = yield* execute(bindReceiver({ payTo: this.payTo }));
    this.#compare(bound?.value);
    // Also locks the row, so that a server that starts on another network can't change it now.
    const [network] = yield* execute(keepMeta({ key: 'network', value: this.#network }));
    this.#compareNetwork(network?.value);
  }

  /** Called once the transaction of `bind` is on disk. */
  committed(): void {
    this.#bound = true;
  }

  /** @throws LedgerFault if the ledger is bound to another receiver */
  *check(): TransactionBody<void> {
    const [bound] = yield* execute(receiverBound());
    this.#compare(bound?.value);
  }

  /** @throws LedgerFault if the ledger was found to be bound to another receiver */
  refuseForeign(): void {
    if (this.#fault) throw this.#fault;
  }

  #compareNetwork(network: string | undefined): void {
    if (network !== this.#network) this.#refuse(`${network}`, `on ${this.#network}`, 'NETWORK');
  }

  #compare(bound: string | undefined): void {
    if (bound !== undefined && bound !== this.payTo)
      this.#refuse(`PAY_TO ${bound}`, `with PAY_TO ${this.payTo}`, 'PAY_TO');
  }

  #refuse(owner: string, ours: string, setting: string): never {
    this.#fault = new LedgerFault(
      'failed',
      `This ledger belongs to ${owner}, so this server, ${ours}, sells nothing. No buyer was charged. Stop this server and start it with ` +
        `that ${setting}, or on a ledger of its own.`,
    );
    throw this.#fault;
  }
}
