import type { Routed } from '../../src/contract/routes.js';
import { sentBodyOf, type SentBody } from '../../src/contract/sent-body.js';

/** A value as the body of a call of an operation; nothing if the operation takes none. */
export function sentTo({ priced, given }: Routed, value: unknown): SentBody | undefined {
  const request = (priced ?? given)?.request;
  if (!request || value === undefined) return undefined;
  const sent = sentBodyOf(request, value);
  if ('wrong' in sent) throw new Error(sent.wrong);
  return sent;
}
