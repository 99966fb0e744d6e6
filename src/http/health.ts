import type { Probe } from '../contract/probe.js';
import { withDeadline } from '../net/deadline.js';
import type { RecentCalls } from './recent-calls.js';

/** The status of one backend. `latencyMs` is that of the last probe. */
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

const INTERVAL_MS = 15_000;
const DEADLINE_MS = 5_000;

/**
 * Probes backends in the background, so that a health request makes no calls itself. The outcome of the last real calls takes
 * precedence over a probe.
 */
export class Health {
  readonly #version: string;
  readonly #probes: Record<string, Probe>;
  readonly #calls: RecentCalls;
  readonly #statuses = new Map<string, UpstreamStatus>();
  readonly #startedAt = Date.now();
  #timer: NodeJS.Timeout | undefined;

  constructor(version: string, probes: Record<string, Probe>, calls: RecentCalls) {
    this.#calls = calls;
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

  /** The report on all backends, or only on those named. */
  report(names: readonly string[] = [...this.#statuses.keys()]): HealthReport {
    const upstreams: Record<string, UpstreamStatus> = {};
    for (const name of names) upstreams[name] = this.#statusOf(name);
    const allOk = Object.values(upstreams).every(({ status }) => status === 'ok' || status === 'unknown');
    return {
      status: allOk ? 'ok' : 'degraded',
      version: this.#version,
      uptimeSeconds: Math.floor((Date.now() - this.#startedAt) / 1000),
      upstreams,
    };
  }

  #statusOf(name: string): UpstreamStatus {
    const probed = this.#statuses.get(name) ?? { status: 'unknown' };
    const streak = this.#calls.failureStreak(name);
    if (!streak) return probed;
    const { failures, since, why } = streak;
    const calls = failures === 1 ? 'the last call' : `the last ${failures} calls`;
    return {
      ...probed,
      status: probed.status === 'down' ? 'down' : 'degraded',
      detail: `${calls} failed, since ${new Date(since).toISOString()}: ${why}`,
    };
  }

  async #probeAll(): Promise<void> {
    await Promise.all(Object.entries(this.#probes).map(([name, probe]) => this.#probe(name, probe)));
  }

  async #probe(name: string, probe: Probe): Promise<void> {
    const startedAt = performance.now();
    try {
      // A signal for each probe: one shared signal would collect a listener per probe.
      const { signal } = new AbortController();
      const found = (await withDeadline(DEADLINE_MS, signal, probe)) ?? {};
      this.#statuses.set(name, {
        status: 'ok',
        latencyMs: Math.round(performance.now() - startedAt),
        ...found,
      });
      this.#calls.probed(name);
    } catch {
      this.#statuses.set(name, { status: 'down', detail: 'did not answer the last probe' });
    }
  }
}
