import type { Ledger, Order } from '../../ledger/store.js';
import type { Question, ReplyStore } from './people.js';

/** The reply store on top of the orders in the ledger. */
export function replyStoreOf(ledger: Ledger): ReplyStore {
  return {
    open: async () =>
      (await ledger.openOrders()).map(order => ({ ...questionOf(order), replies: order.replies })),
    replies: id => ledger.replies(id),
    add: (id, reply) => ledger.addReply(id, reply),
    reject: (id, reply) => ledger.rejectReply(id, reply),
    intent: id => ledger.intent(id),
    saveIntent: (id, intent) => ledger.saveIntent(id, intent),
  };
}

/** The question that an order asks; its request is the canonical JSON of a validated body. */
export function questionOf(order: Order): Question {
  const { brand, question } = JSON.parse(order.request) as { brand: string; question: string };
  const { payment: id, wanted, deadline, attempts: attempt } = order;
  return { id, brand, question, wanted, deadline, attempt };
}
