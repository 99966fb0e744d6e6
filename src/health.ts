/** What is known of one backend. `latencyMs` of the last probe. */
export type UpstreamStatus = {
  status: 'ok' | 'degraded' | 'down' | 'unknown';
  latencyMs?: number;
  detail?: string;
};

/** Body of /health, /brand/health and /tts/health. */
export type HealthReport = {
  status: 'ok' | 'degraded';
  version: string;
  uptimeSeconds: number;
  upstreams: Record<string, UpstreamStatus>;
};

/** What a backend says of itself; `detail` is public. */
export type Finding = { status?: 'ok' | 'degraded'; detail?: string };

/** Asks a backend how it is. Rejects when it is down. */
export type Probe = (signal: AbortSignal) => Promise<Finding | void>;

const INTERVAL_MS = 15_000;
const DEADLINE_MS = 5_000;

/** Probes backends in the background, so that a health request costs nothing and asks nobody. */
export class Health {
  readonly #version: string;
  readonly #probes: Record<string, Probe>;
  readonly #statuses = new Map<string, UpstreamStatus>();
  readonly #startedAt = Date.now();
  #timer: NodeJS.Timeout | undefined;

  constructor(version: string, probes: Record<string, Probe>) {
    this.#version = version;
    this.#probes = probes;
    for (const name of Object.keys(probes)) this.#statuses.set(name, { status: 'unknown' });
  }

  start(): void {
    void this.#probeAll();
    this.#timer = setInterval(() => void this.#probeAll(), INTERVAL_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** The report on all backends, or on the named ones. */
  report(names: string[] = [...this.#statuses.keys()]): HealthReport {
    const upstreams: Record<string, UpstreamStatus> = {};
    for (const name of names) upstreams[name] = this.#statuses.get(name) ?? { status: 'unknown' };
    const well = Object.values(upstreams).every(({ status }) => status === 'ok' || status === 'unknown');
    return {
      status: well ? 'ok' : 'degraded',
      version: this.#version,
      uptimeSeconds: Math.floor((Date.now() - this.#startedAt) / 1000),
      upstreams,
    };
  }

  async #probeAll(): Promise<void> {
    await Promise.all(Object.entries(this.#probes).map(([name, probe]) => this.#probe(name, probe)));
  }

  async #probe(name: string, probe: Probe): Promise<void> {
    const startedAt = performance.now();
    try {
      const found = (await withDeadline(probe)) ?? {};
      this.#statuses.set(name, {
        status: 'ok',
        latencyMs: Math.round(performance.now() - startedAt),
        ...found,
      });
    } catch {
      this.#statuses.set(name, { status: 'down', detail: 'did not answer the last probe' });
    }
  }
}

async function withDeadline(probe: Probe): Promise<Finding | void> {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const late = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('too late')), { once: true });
  });
  return Promise.race([probe(signal), late]);
}
