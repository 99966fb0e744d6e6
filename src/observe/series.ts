import { Counter, type Histogram, type Registry } from 'prom-client';

/**
 * Counters and histograms with their own series, which prom-client reads when metrics are requested. prom-client's own classes look up
 * labels at each event, which adds more to the cost of a paid call than all other observation.
 */
export type MetricText = { name: string; help: string; labelNames: readonly string[] };

type Branch<Value> = { value?: Value; next: Map<string, Branch<Value>> };

/**
 * A value for each combination of label values. Combinations are few, because labels are operations, configured services or fixed words.
 * Nested maps, because building a combined key costs more than the look-ups.
 */
export class Series<Value> {
  readonly #root: Branch<Value> = { next: new Map() };
  readonly #create: () => Value;

  constructor(create: () => Value) {
    this.#create = create;
  }

  of(labels: readonly string[]): Value {
    let branch = this.#root;
    for (const label of labels) {
      let next = branch.next.get(label);
      if (!next) branch.next.set(label, (next = { next: new Map() }));
      branch = next;
    }
    return (branch.value ??= this.#create());
  }

  *entries(branch = this.#root, labels: readonly string[] = []): Iterable<[readonly string[], Value]> {
    if (branch.value !== undefined) yield [labels, branch.value];
    for (const [label, next] of branch.next) yield* this.entries(next, [...labels, label]);
  }
}

export type Count = {
  /** Adds one to a series. `labels`: the values of the labels, in the order of their names. */
  add(...labels: string[]): void;
  /** Sets a series to 0 if it has no value yet. */
  begin(...labels: string[]): void;
  /** Every series, with the values of its labels. */
  entries(): [readonly string[], number][];
};

export function countIn(registry: Registry, text: MetricText): Count {
  const series = new Series(() => ({ count: 0 }));
  // A metric without labels has one series, which exists from the beginning.
  if (text.labelNames.length === 0) series.of([]);
  counterOf(registry, text, series, ({ count }) => count);
  return {
    add: (...labels) => void (series.of(labels).count += 1),
    begin: (...labels) => void series.of(labels),
    entries: () => [...series.entries()].map(([labels, { count }]) => [labels, count]),
  };
}

/** Makes a prom-client counter read these series. */
export function counterOf<Value>(
  registry: Registry,
  { labelNames, ...text }: MetricText,
  series: Series<Value>,
  read: (value: Value) => number,
): void {
  new Counter({
    ...text,
    labelNames,
    registers: [registry],
    collect() {
      this.reset();
      for (const [labels, value] of series.entries()) this.inc(named(labelNames, labels), read(value));
    },
  });
}

export type Durations = {
  /** Adds a time in ms to a series. `labels`: the values of the labels, in the order of their names. */
  add(ms: number, ...labels: string[]): void;
};

/** @param bounds of the buckets, in seconds, ascending */
export function durationsIn(
  registry: Registry,
  { name, help, labelNames }: MetricText,
  bounds: readonly number[],
): Durations {
  const series = new Series(() => ({ counts: new Array<number>(bounds.length + 1).fill(0), seconds: 0 }));
  if (labelNames.length === 0) series.of([]);
  const metric = {
    name,
    help,
    labelNames,
    async get() {
      const values = [...series.entries()].flatMap(([labels, value]) =>
        samplesOf(name, bounds, named(labelNames, labels), value),
      );
      return { name, help, type: 'histogram', values };
    },
  };
  // The cast is safe, because a registry calls only `get` when its metrics are read as text.
  registry.registerMetric(metric as unknown as Histogram);
  return {
    add(ms, ...labels) {
      const value = series.of(labels);
      const seconds = ms / 1000;
      value.seconds += seconds;
      let bucket = 0;
      while (bucket < bounds.length && seconds > (bounds[bucket] as number)) bucket += 1;
      value.counts[bucket] = (value.counts[bucket] as number) + 1;
    },
  };
}

/** Buckets count everything up to their bound (https://prometheus.io/docs/concepts/metric_types/#histogram). */
function samplesOf(
  name: string,
  bounds: readonly number[],
  labels: Record<string, string>,
  { counts, seconds }: { counts: readonly number[]; seconds: number },
): { metricName: string; labels: Record<string, string | number>; value: number }[] {
  let sum = 0;
  const buckets = counts.map((count, at) => {
    sum += count;
    const le = bounds[at] ?? '+Inf';
    return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: sum };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: seconds },
    { metricName: `${name}_count`, labels, value: sum },
  ];
}

function named(names: readonly string[], values: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name, at) => [name, values[at] as string]));
}
