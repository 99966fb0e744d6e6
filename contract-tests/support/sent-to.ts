import type { Routed } from '../../src/contract/routes.js';
import { sentBodyOf, type SentBody } from '../../src/contract/sent-body.js';

/** Encodes a value as the body for an operation. @returns undefined if the operation takes no body */
export function sentTo({ priced, given }: Routed, value: unknown): SentBody | undefined {
  const request = (priced ?? given)?.request;
  if (!request || value === undefined) return undefined;
  const sent = sentBodyOf(request, value);
  if ('wrong' in sent) throw new Error(sent.wrong);
  return sent;
}
