import type { Log } from '../net/log.js';
import { createObserver } from './create-observer.js';
import { faultLog } from './fault-log.js';
import { createLog } from './create-log.js';
import { createMetrics, type Metrics, type MetricsSource, type SoldOperation } from './metrics.js';
import type { Listener, Observer } from './observer.js';
import { withoutRepeats } from './repeats.js';
import { saleLog, type DetailedLog } from './sale-log.js';

/** Log, metrics, traces and events for the operator. */
export type Observation = {
  log: Log;
  observer: Observer;
  metrics: Metrics;
  /** Connects the metrics to values that are only known when the server is built. */
  readFrom(source: MetricsSource): void;
  /** Adds a listener that is only known when the server is built. */
  listen(listener: Listener): void;
  /** Logs the repeated faults that have only been counted so far. */
  flush(): void;
};

/**
 * @param operations the paid operations
 * @param how.terminal whether a person reads the log
 * @param how.own the operator's own addresses
 */
export async function openObservation(
  operations: readonly SoldOperation[],
  { level, terminal, own }: { level: string; terminal: boolean; own?: ReadonlySet<string> },
): Promise<Observation> {
  const written = await createLog(level, terminal);
  const log = withoutRepeats(written);
  let source: MetricsSource | undefined;
  const metrics = createMetrics(operations, () => source, undefined, own);
  const { unpaid, measured } = metrics;
  const faults = faultLog(written);
  const sales: DetailedLog = {
    ...log,
    debug: (fields, message) => written.debug(fields, message),
    isLevelEnabled: asked => written.isLevelEnabled(asked),
  };
  const events: Listener[] = [metrics, saleLog(sales), faults];
  const committed = [metrics.committed, faults.committed];
  const observer = createObserver({ events, unpaid, committed, measured }, error =>
    log.error({ error }, 'an event could not be logged or counted'),
  );
  return {
    log,
    observer,
    metrics,
    readFrom: found => void (source = found),
    listen: listener => void events.push(listener),
    flush: () => log.flush(),
  };
}
