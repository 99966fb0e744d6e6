import type { operations } from '../generated/openapi.js';
import type { Body, Handler, Ready } from '../src/contract/operation.js';
import { UpstreamFailure } from '../src/net/failure.js';
import { createBrandFeedback } from '../src/upstreams/people/aggregate.js';
import type { People, ReplyStore } from '../src/upstreams/people/people.js';

const DEFAULT_RESPONDENTS = 5;
const VISIBLE = /[\p{L}\p{N}\p{P}\p{S}]/u;

type BrandFeedback = operations['brandFeedback'];

/** How many people an order asks. */
export function respondentsWanted({ n }: Pick<Body<BrandFeedback>, 'n'>): number {
  return n ?? DEFAULT_RESPONDENTS;
}

/**
 * Sells the opinions of people. Asks until enough people have replied or the deadline has passed, and answers with the replies
 * received so far. Safe to run again for the same order, because replies are stored.
 */
export function brandFeedback(people: People, replyStore: ReplyStore): Handler<BrandFeedback> {
  return async ({ body, signal, order }) => {
    if (!order) throw new Error('brandFeedback must run as an order');
    const asked = { brand: body.brand, question: body.question, wanted: respondentsWanted(body) };
    await people.ask({ ...order, ...asked }, signal);
    const replies = await replyStore.replies(order.id);
    if (replies.length === 0) {
      throw new UpstreamFailure('failed', 'Nobody answered before the deadline.');
    }
    const { mock, ...feedback } = createBrandFeedback(asked, replies);
    return { status: 200, body: mock ? { ...feedback, mock } : feedback };
  };
}

/** Rejects an order before the payment if it is invalid or nobody can be asked. */
export function brandFeedbackReady(people: People): Ready<BrandFeedback> {
  return async ({ body }) => {
    const { brand, question } = body;
    if (!VISIBLE.test(brand) || !VISIBLE.test(question)) {
      throw new UpstreamFailure(
        'invalid',
        'brand and question must each contain at least one letter, digit or symbol',
      );
    }
    await people.ready(respondentsWanted(body), { brand, question });
  };
}
