import type { Mutant } from './mutants.js';

const changed = (name: string, find: string, replace: string, grep = ''): Mutant => ({
  name: `orders: ${name}`,
  file: 'src/sale/order-worker.js',
  find,
  replace,
  test: 'sale/order-worker',
  grep: `orders of two servers on one ledger on SQLite ${grep}`,
});

/** Guards of an order that two servers believe to hold. */
export const orderMutants: readonly Mutant[] = [
  {
    name: 'orders: one that a marketplace was paid for is begun with another one',
    file: 'handlers/brand-feedback/begun-elsewhere.js',
    find: 'if (begun === undefined || begun === chosen.name)',
    replace: 'if (true)',
    test: 'handlers/brand-feedback/begun-elsewhere',
    grep: 'although another one is chosen by now',
  },
  changed(
    'a server extends an order that it lost',
    'const next = (await lease.renew()) ? await this.#extend(id, current) : undefined;',
    'const next = await this.#extend(id, current);',
    'a server that lost the order extends nothing',
  ),
  changed(
    'the extension of another server is taken for a used one',
    'return order && order.finishedAt === null && order.attempts > attempt ? order : undefined;',
    'return undefined;',
    'an extension that another server began',
  ),
  changed(
    'a ledger that fails while an order is extended ends it',
    'if (broken)',
    'if (false)',
    'a ledger that fails while the order is extended',
  ),
  changed(
    'a call starts work while the order pauses',
    'if (pause && (pause.seconds === undefined || pause.seconds > 0))',
    'if (false)',
    'a failed attempt counts',
  ),
  changed(
    'a server that stops counts its start',
    'if (order && this.#stop.signal.aborted)',
    'if (false)',
    'a server that stops gives its start back',
  ),
  changed(
    'the operator is told of an attempt that was not started',
    'return order !== undefined;',
    'return true;',
    'the operator is told whether',
  ),
  changed(
    'attempts are never used up',
    'const usedUp = tries >= this.#options.maxAttempts;',
    'const usedUp = false;',
    'a failed attempt counts',
  ),
  {
    ...changed('what the backend rejects is attempted again', 'const over = final', 'const over = false'),
    test: 'upstreams/http-operations/bad-upstreams',
    grep: 'an order that the upstream rejects',
  },
  {
    ...changed(
      'a lease that could not be renewed is kept',
      'this.#expiry = setTimeout(() => this.#expire(), ',
      'this.#expiry = setTimeout(() => { }, ',
      'a server that is cut off from its ledger',
    ),
    file: 'src/sale/order-lease.js',
  },
  {
    name: 'the failed orders of one payer count as those of several',
    file: 'src/http/run-handler.js',
    find: 'signal, caller: payer, order }',
    replace: 'signal, caller: id, order }',
    test: 'upstreams/http-operations/unsold-calls',
    grep: 'orders of one payer that fail pause that payer',
  },
  {
    name: 'strangers keep paid work from being made again',
    file: 'src/sale/flows.js',
    find: ', source: undefined, backend: undefined }',
    replace: ' }',
    test: 'main/paid-promises',
    grep: 'is made again, also while strangers',
  },
  {
    name: 'a renewal of a lease outlives its end',
    file: 'src/sale/order-lease.js',
    find: 'if (this.#renewing)\n            await',
    replace: 'if (false)\n            await',
    test: 'sale/order-worker',
    grep: 'orders of two servers on one ledger on SQLite a renewal that is under way',
  },
  {
    name: 'work weighs as much as its settlement takes',
    file: 'src/admission/unsold-work.js',
    find: 'weightOf((doneAt ?? this.#now()) - began)',
    replace: 'weightOf(this.#now() - began)',
    test: 'admission/unsold-work',
    grep: 'weighs as much as the work took',
  },
  {
    name: 'work that is made again may fail without end',
    file: 'src/sale/flows.js',
    find: "working.unsold('caller')",
    replace: 'void 0',
    test: 'main/paid-promises',
    grep: 'work that is done again and fails is bounded',
  },
];
