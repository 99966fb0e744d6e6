/** What a backend says of itself; `detail` is public. */
export type Finding = { status?: 'ok' | 'degraded'; detail?: string };

/** Asks a backend how it is. Rejects when it is down. */
export type Probe = (signal: AbortSignal) => Promise<Finding | void>;
