import { openFaultProxy, type FaultProxy } from './fault-proxy.js';

/** Functions to call at the end, in reverse order. */
export type Closers = (() => Promise<void> | void)[];

/** The proxies between the shop and the services it needs. Each method opens one and returns its URL. */
export class Services {
  readonly #closers: Closers;
  readonly #proxies: Record<'rpc' | 'facilitator' | 'upstream', FaultProxy[]> = {
    rpc: [],
    facilitator: [],
    upstream: [],
  };

  constructor(closers: Closers) {
    this.#closers = closers;
  }

  rpc(target: string): Promise<string> {
    return this.#open('rpc', target);
  }

  facilitator(target: string): Promise<string> {
    return this.#open('facilitator', target);
  }

  upstream(target: string): Promise<string> {
    return this.#open('upstream', target);
  }

  /** Sets what happens to requests of one kind from now on. */
  meet(kind: 'rpc' | 'facilitator' | 'upstream', effect: FaultProxy['effect']): void {
    for (const proxy of this.#proxies[kind]) proxy.effect = effect;
  }

  /** Lets all requests through again. */
  clear(): void {
    for (const proxy of Object.values(this.#proxies).flat()) proxy.effect = undefined;
  }

  async #open(kind: 'rpc' | 'facilitator' | 'upstream', target: string): Promise<string> {
    const proxy = await openFaultProxy(target.replace(/(?<!\/)\/+$/, ''));
    this.#closers.push(() => proxy.close());
    this.#proxies[kind].push(proxy);
    return proxy.url;
  }
}
