import { createHmac } from 'node:crypto';
import type { Message } from './event-message.js';

/**
 * The headers of Standard Webhooks 1.0.0: HMAC-SHA-256 of id, time and body, one signature for each secret. `now` in ms since 1970.
 */
export function signedHeaders(
  { id, body }: Pick<Message, 'id' | 'body'>,
  secrets: readonly Buffer[],
  now: number,
): Record<string, string> {
  const timestamp = String(Math.floor(now / 1_000));
  const signatures = secrets.map(
    secret => `v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
  );
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}
