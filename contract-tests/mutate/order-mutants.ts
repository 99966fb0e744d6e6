import type { Mutant } from './mutants.js';

const changed = (name: string, find: string, replace: string): Mutant => ({
  name: `orders: ${name}`,
  file: 'src/payments/order-worker.js',
  find,
  replace,
  test: 'payments/order-worker',
  grep: 'orders of two servers on one ledger on SQLite',
});

/** Guards of an order that two servers believe to hold. */
export const orderMutants: readonly Mutant[] = [
  changed(
    'a server extends an order that it lost',
    'const next = (await this.#hold(row, lost)) ? await this.#extend(id, current) : undefined;',
    'const next = await this.#extend(id, current);',
  ),
  changed(
    'the extension of another server is taken for a used one',
    'return order && order.finishedAt === null && order.attempts > attempt ? order : undefined;',
    'return undefined;',
  ),
  changed(
    'a server ends the attempt of its successor',
    'if (!signal.aborted && (await this.#hold(row, lost)))',
    'if (!signal.aborted)',
  ),
  changed('a ledger that fails while an order is extended ends it', 'if (broken)', 'if (false)'),
];
