import { randomUUID } from 'node:crypto';

/** Of the length and the characters that tracing systems use, so that a line of the log stays one. */
const SANE = /^[\w.:+/=-]{1,128}$/;

/** Names a request in the log: what its caller or a proxy in front named it (`X-Request-Id`), else a new name. */
export function requestIdOf(header: string | string[] | undefined): string {
  return typeof header === 'string' && SANE.test(header) ? header : randomUUID();
}
