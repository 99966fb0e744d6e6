/** The result of a probe; `detail` is public. */
export type Finding = { status?: 'ok' | 'degraded'; detail?: string };

/** Checks a backend. Rejects if it is down. */
export type Probe = (signal: AbortSignal) => Promise<Finding | void>;
