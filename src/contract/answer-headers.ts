import { validateHeaderName, validateHeaderValue } from 'node:http';
import { isSoldStatus } from './sold-status.js';

/** Headers that concern the connection, the encoding, the payment or a browser. Buyers never get them from a handler or an upstream. */
const NEVER_SOLD =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-(length|encoding)|date|set-cookie|payment-.*|answer-receipt|x-payment.*|retry-after|www-authenticate|access-control-.*)$/;
/** Headers that the server writes itself, and headers that affect all pages of its origin. */
const OF_THE_SERVER =
  /^(cache-control|location|x-request-id|x-robots-tag|x-content-type-options|content-disposition|content-security-policy.*|clear-site-data|refresh|strict-transport-security|alt-svc|service-worker-allowed)$/;

/** The value of an answer's header. Handlers may write header names in any case. @param name in lower case */
export function headerOf(headers: Record<string, string> = {}, name: string): string | undefined {
  return Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1];
}

/** Whether a header of an answer is passed on to its buyer. The content type is a part of the answer itself. */
export function isSold(name: string): boolean {
  const lower = name.toLowerCase();
  return !NEVER_SOLD.test(lower) && !OF_THE_SERVER.test(lower);
}

/** What is wrong with the headers of a handler's answer; undefined if they can be sent. Only a failure may have a Retry-After. */
export function headerFault(status: number, headers: Record<string, string> = {}): string | undefined {
  for (const [name, value] of Object.entries(headers)) {
    const fault = unsendable(name, value);
    if (fault !== undefined) return fault;
    const lower = name.toLowerCase();
    const retry = lower === 'retry-after' && !isSoldStatus(status);
    if (NEVER_SOLD.test(lower) && !retry) return `a handler must not set the header ${name}`;
  }
  return undefined;
}

/** Why Node would refuse to send a header. */
export function unsendable(name: string, value: string): string | undefined {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
