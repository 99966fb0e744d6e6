import { Counter, type Registry } from 'prom-client';

const ATOMIC_PER_USDC = 1e6;

/** A counter of USDC by operation that adds atomic units, because sums of floating-point numbers drift. */
export function usdcCounter(
  registry: Registry,
  name: string,
  help: string,
): { add(operation: string, atomic: bigint): void } {
  const sums = new Map<string, bigint>();
  new Counter({
    name,
    help,
    labelNames: ['operation'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [operation, atomic] of sums) this.inc({ operation }, Number(atomic) / ATOMIC_PER_USDC);
    },
  });
  return { add: (operation, atomic) => void sums.set(operation, (sums.get(operation) ?? 0n) + atomic) };
}
