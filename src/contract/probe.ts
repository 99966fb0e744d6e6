/** The result of a probe; `detail` is public. Without a result, the status is `ok` and the latency is the time that the probe took. */
export type Finding = { status?: 'ok' | 'degraded' | 'down'; latencyMs?: number; detail?: string };

/** Checks a backend. Rejects if it is down. */
export type Probe = (signal: AbortSignal) => Promise<Finding | void>;
