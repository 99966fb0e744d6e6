import { execute } from './engine.js';
import type { Query, TransactionBody } from './engine.js';
import { idOf } from './ids.js';
import * as queries from './queries/look-up.js';
import type { PaymentView } from './schema.js';

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1_000;
/** Shorter prefixes would match too many payments. */
const SHORTEST_PREFIX = /^[0-9a-f]{8,64}$/i;
const REFUND = /^(?:refund:)?([0-9a-f]{24})$/i;

/** Finds payments by any id that people quote; each kind of id has its own index. Newest first, without duplicates. */
export function* named(text: string, now: Query, limit = DEFAULT_LIMIT): TransactionBody<PaymentView[]> {
  const at = { now, limit: Math.min(limit, MAX_LIMIT) };
  const [, refund] = REFUND.exec(text) ?? [];
  const ways: Query<PaymentView>[] = [
    ...(SHORTEST_PREFIX.test(text) ? [queries.byId({ ...at, prefix: text.toLowerCase() })] : []),
    ...(refund === undefined ? [] : [queries.byRepayment({ ...at, id: refund.toLowerCase() })]),
    queries.bySettlement({ ...at, text }),
    queries.byRepaymentSignature({ ...at, text }),
    queries.byRefundSignature({ ...at, text }),
    queries.byPayer({ ...at, text }),
    queries.byUnsettledPayer({ ...at, text }),
    queries.byIdentifier({ ...at, text }),
    queries.byRequest({ ...at, text }),
  ];
  const found = new Map<string, PaymentView>();
  for (const way of ways) for (const row of yield* execute(way)) found.set(idOf(row.id), row);
  return [...found.values()].toSorted((a, b) => b.created_at - a.created_at).slice(0, at.limit);
}
