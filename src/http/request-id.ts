import { randomUUID } from 'node:crypto';

/** Limited to the length and characters that tracing systems use, so that an id cannot break a log line. */
const SANE = /^[\w.:+/=-]{1,128}$/;

/** The id of a request in the log: the one that its caller or a proxy in front sent (`X-Request-Id`), or a new one. */
export function requestIdOf(header: string | string[] | undefined): string {
  return typeof header === 'string' && SANE.test(header) ? header : randomUUID();
}
