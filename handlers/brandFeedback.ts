import type { operations } from '../generated/openapi.js';
import type { Body, Handler, OrderRef, Ready } from '../src/contract/operation.js';
import { UpstreamFailure } from '../src/net/failure.js';
import { countUnread, createBrandFeedback } from '../src/upstreams/people/aggregate.js';
import type { PartialRule, People, Reply, ReplyStore } from '../src/upstreams/people/people.js';

const VISIBLE = /[\p{L}\p{N}\p{P}\p{S}]/u;

type BrandFeedback = operations['brandFeedback'];

/** How many people an order asks. The default is in the contract, and is set before a handler is called. */
export function respondentsWanted({ n }: Pick<Body<BrandFeedback>, 'n'>): number {
  if (n === undefined) throw new Error('n of brandFeedback must have a default in openapi.yaml');
  return n;
}

/**
 * Sells the opinions of people. Asks until enough people have replied or the deadline has passed. If less than half of them have
 * replied by then, asks as long again, once. Answers with the replies received so far, unless they are still less than half and the
 * operator owes such an order (`PARTIAL=owe`). Safe to run again for the same order, because replies are stored.
 */
export function brandFeedback(
  people: People,
  replyStore: ReplyStore,
  partial: PartialRule,
): Handler<BrandFeedback> {
  return async ({ body, signal, order }) => {
    if (!order) throw new Error('brandFeedback must run as an order');
    const asked = { brand: body.brand, question: body.question, wanted: respondentsWanted(body) };
    const repliesTo = async ({ id, deadline, attempt }: OrderRef): Promise<Reply[]> => {
      await people.ask({ id, deadline, attempt, ...asked }, signal);
      return replyStore.replies(id);
    };
    let replies = await repliesTo(order);
    if (tooFew(replies, asked)) {
      const extended = await order.extend();
      if (extended) replies = await repliesTo(extended);
    }
    if (replies.length === 0) throw new UpstreamFailure('failed', 'Nobody answered before the deadline.');
    if (partial === 'owe' && tooFew(replies, asked))
      throw new UpstreamFailure(
        'failed',
        `Only ${replies.length} of ${asked.wanted} people answered before the deadline.`,
      );
    const { mock, ...feedback } = createBrandFeedback(asked, replies, await countUnread(replies));
    return { status: 200, body: mock ? { ...feedback, mock } : feedback };
  };
}

/** Less than half of the replies that were paid for. */
function tooFew(replies: Reply[], { wanted }: { wanted: number }): boolean {
  return replies.length * 2 < wanted;
}

/** Rejects an order before the payment if it is invalid or nobody can be asked. */
export function brandFeedbackReady(people: People): Ready<BrandFeedback> {
  return async ({ body }) => {
    const { brand, question } = body;
    const blank = Object.entries({ brand, question }).filter(([, text]) => !VISIBLE.test(text));
    if (blank.length > 0) {
      const names = blank.map(([name]) => name).join(' and ');
      throw new UpstreamFailure('invalid', `${names} must contain at least one letter, digit or symbol`);
    }
    await people.ready(respondentsWanted(body), { brand, question });
  };
}
