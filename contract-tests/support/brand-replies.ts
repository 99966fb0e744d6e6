import { REPLY_TABLES, replyStoreOn } from '../../handlers/brand-feedback/reply-store.js';
import type { ReplyStore } from '../../handlers/brand-feedback/replies.js';
import type { Ledger } from '../../src/ledger/store.js';

/** Opens the replies of brandFeedback in a ledger, as its handler does. */
export async function openReplies(ledger: Ledger): Promise<ReplyStore> {
  return replyStoreOn(await ledger.openStore(REPLY_TABLES), {
    ordersInProgress: async () =>
      (await ledger.openOrders('brandFeedback')).map(
        ({ payment: id, request, wanted, done, deadline, attempts }) => ({
          id,
          body: JSON.parse(request) as unknown,
          wanted,
          done,
          deadline,
          attempt: attempts,
        }),
      ),
  });
}
