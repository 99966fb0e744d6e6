import type { Registry } from 'prom-client';
import { counterOf, Series } from './series.js';

const ATOMIC_PER_USDC = 1e6;

/** A counter of USDC by operation that adds atomic units, because sums of floating-point numbers drift. */
export function usdcCounter(
  registry: Registry,
  name: string,
  help: string,
): { add(operation: string, atomic: bigint): void } {
  const series = new Series(() => ({ atomic: 0n }));
  counterOf(registry, { name, help, labelNames: ['operation'] }, series, ({ atomic }) => {
    return Number(atomic) / ATOMIC_PER_USDC;
  });
  return { add: (operation, atomic) => void (series.of([operation]).atomic += atomic) };
}
