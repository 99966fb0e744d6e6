import { randomUUID } from 'node:crypto';
import { PassThrough } from 'node:stream';
import type { Ledger } from '../ledger/store.js';
import { NotTold, type Target } from './target.js';
import type { TargetTeller } from './tell-targets.js';

const MAX_LISTENERS = 10;
const HOLD_MS = 30_000;
const RENEW_MS = 10_000;
/** A listener with more unread bytes than this gets no further events. */
const MAX_UNREAD_BYTES = 256 * 1024;

/**
 * Terminals that receive events while they are connected (`coinslot webhooks listen`). They are targets in the ledger, so events of other
 * servers reach them, too.
 */
export class EventListeners {
  readonly #ledger: Pick<Ledger, 'holdTarget' | 'dropTarget'>;
  readonly #teller: TargetTeller;
  #open = 0;

  constructor(ledger: Pick<Ledger, 'holdTarget' | 'dropTarget'>, teller: TargetTeller) {
    this.#ledger = ledger;
    this.#teller = teller;
  }

  /** A stream of server-sent events, each with a message as JSON; undefined if there are too many listeners. */
  async listen(): Promise<PassThrough | undefined> {
    if (this.#open >= MAX_LISTENERS || this.#teller.closing.aborted) return undefined;
    this.#open += 1;
    const name = `listener-${randomUUID()}`;
    const stream = new PassThrough();
    const ended = new AbortController();
    const hold = (): Promise<void> => this.#ledger.holdTarget(name, [], Date.now() + HOLD_MS);
    await hold().catch((error: unknown) => {
      this.#open -= 1;
      throw error;
    });
    const timer = setInterval(() => {
      hold().catch(() => {});
      if (!stream.writableEnded) stream.write(': still here\n\n');
    }, RENEW_MS).unref();
    const stop = (): void => void stream.destroy();
    this.#teller.closing.addEventListener('abort', stop, { once: true });
    stream.on('error', () => stream.destroy());
    stream.once('close', () => {
      clearInterval(timer);
      this.#teller.closing.removeEventListener('abort', stop);
      this.#open -= 1;
      ended.abort(new Error('the listener left'));
    });
    stream.write(': listening\n\n');
    this.#teller.serve(this.#targetOf(name, stream), ended.signal);
    return stream;
  }

  #targetOf(name: string, stream: PassThrough): Target {
    return {
      name,
      send: message => {
        const unread = stream.writableLength + stream.readableLength;
        if (stream.destroyed || unread > MAX_UNREAD_BYTES)
          return Promise.reject(new NotTold('it does not read its events'));
        stream.write(`id: ${message.id}\ndata: ${JSON.stringify(message)}\n\n`);
        return Promise.resolve('shown');
      },
      close: () => this.#ledger.dropTarget(name).catch(() => {}),
    };
  }
}
