import type { Contract } from '../contract/contract.js';
import type { Methods } from '../methods/methods.js';
import { FREE_LEFT } from './free-calls.js';
import { ANSWER_RECEIPT } from './sign-receipts.js';
import { follow, objectOf } from '../contract/references.js';

/** The headers that the server itself adds to answers. */
const OWN = [ANSWER_RECEIPT, 'Retry-After', 'Location', 'ETag', 'X-Request-Id'];

/** The headers of answers that a page of another origin may read: the server's own, and those that the contract declares. */
export function exposedHeaders({ document, paid, given }: Contract, methods: Methods): string {
  const free = paid.some(operation => operation.free) ? [FREE_LEFT] : [];
  const own = [...methods.all.flatMap(({ answerHeaders }) => answerHeaders), ...OWN, ...free];
  const names = [...own];
  for (const { path, method } of [...paid, ...given]) {
    const item = objectOf(objectOf(objectOf(document.paths)[path])[method.toLowerCase()]);
    for (const response of Object.values(objectOf(item.responses)))
      names.push(...Object.keys(objectOf(follow(document, response).headers)));
  }
  const seen = new Map(names.map(name => [name.toLowerCase(), name]));
  for (const name of own) seen.set(name.toLowerCase(), name);
  return [...seen.values()].join(', ');
}
