import { type AdminSection, escapeHtml, foreignBlock, type OrderView } from 'coinslot';
import { OPINION_NAMES } from './sentiment-names.js';
import type { Reply, ReplyStore } from './replies.js';

const REJECT = 'reject';
const ADMIT = 'admit';

/** The section about orders on the operator page: the replies, each of which can be rejected while the order is open. */
export function orderReplies(replyStore: ReplyStore): AdminSection {
  const held = async ({ id }: OrderView, reply: string): Promise<Reply | undefined> =>
    (await replyStore.held(id)).find(each => each.id === reply);
  const find = async (order: OrderView, reply: string): Promise<Reply | undefined> =>
    (await replyStore.replies(order.id)).find(each => each.id === reply) ?? (await held(order, reply));
  return {
    section: async order =>
      repliesHtml(order, await replyStore.replies(order.id), await replyStore.held(order.id)),
    tasks: {
      [REJECT]: {
        title: 'Reject this reply?',
        button: 'Reject the reply',
        ask: async (order, id) => {
          const reply = await find(order, id);
          return reply && rejectHtml(order, reply);
        },
        run: (order, id) => replyStore.reject(order.id, id),
        done: order => `The reply has been rejected.${order.isOpen ? ` ${inItsPlace(order)}` : ''}`,
        logged: 'the operator rejected a reply',
      },
      [ADMIT]: {
        title: 'Let this reply count?',
        button: 'Let the reply count',
        ask: async (order, id) => {
          const reply = await held(order, id);
          return reply && admitHtml(reply);
        },
        run: (order, id) => replyStore.admit(order.id, id),
        done: () => 'The reply counts.',
        logged: 'the operator admitted a reply that was held',
      },
    },
  };
}

function repliesHtml(order: OrderView, replies: readonly Reply[], held: readonly Reply[]): string {
  const items = replies.map((reply, index) => item(order, reply, index + 1)).join('\n');
  const none = '<p class="soft">Nobody has replied yet.</p>';
  return `<section class="card" id="replies" aria-labelledby="h-replies"><h2 id="h-replies">Replies <span class="soft">(${replies.length} of ${order.wanted})</span></h2>
${asked(order)}${items ? `<ol class="items">\n${items}\n</ol>` : none}
${heldHtml(order, held)}</section>
`;
}

/** Replies that look like gibberish. They count only after the operator admits them. */
function heldHtml(order: OrderView, held: readonly Reply[]): string {
  if (held.length === 0) return '';
  const items = held.map((reply, index) => item(order, reply, index + 1)).join('\n');
  const what = order.isOpen
    ? 'These look like random typing. They do not count, and the buyer does not get them, unless you let them count.'
    : 'These looked like random typing. They did not count.';
  return `<h3>Held for you <span class="soft">(${held.length})</span></h3>
<p class="soft">${what}</p>
<ol class="items">
${items}
</ol>
`;
}

/** The question as shown on the panel, if the order has one. */
function asked({ body }: OrderView): string {
  const { brand, question } = body as { brand?: unknown; question?: unknown };
  if (typeof brand !== 'string' || typeof question !== 'string') return '';
  return `<p class="soft">People were asked about <bdi>${escapeHtml(brand)}</bdi>:</p>
${foreignBlock(question, 'quoted')}
`;
}

function item(order: OrderView, reply: Reply, number: number): string {
  const path = escapeHtml(order.pathOf(REJECT, reply.id));
  const reject = order.isOpen
    ? `<a class="button quiet" href="${path}" aria-label="Reject ${reply.isHeld ? 'held ' : ''}reply ${number}…">Reject…</a>`
    : '';
  const admit =
    order.isOpen && reply.isHeld
      ? `<a class="button quiet" href="${escapeHtml(order.pathOf(ADMIT, reply.id))}" aria-label="Let held reply ${number} count…">Let it count…</a>`
      : '';
  return `<li>${foreignBlock(reply.text)}
<div class="given"><p>${opinion(reply)}</p>${admit}${reject}</div></li>`;
}

function opinion({ sentiment, isSample }: Reply): string {
  const note = isSample ? ' <span class="soft">(sample respondent, not a person)</span>' : '';
  const look = sentiment === 'unknown' ? 'neutral' : sentiment;
  return `<span class="mark ${look}">${OPINION_NAMES[sentiment]}</span>${note}`;
}

/** A sentence about when another person can replace a rejected reply. */
function inItsPlace({ isInProgress }: OrderView): string {
  return isInProgress
    ? 'Somebody else can answer instead while the question is open.'
    : 'The question is closed: somebody else can answer instead once you have started another attempt.';
}

/** The confirmation before a held reply counts. */
function admitHtml(reply: Reply): string {
  return `${foreignBlock(reply.text, 'quoted')}
<p>${opinion(reply)}</p>
<p>The buyer will get it as one of the replies.</p>`;
}

/** The confirmation before a reply is rejected. */
function rejectHtml(order: OrderView, reply: Reply): string {
  return `${foreignBlock(reply.text, 'quoted')}
<p>${opinion(reply)}</p>
<p>The buyer will not get it. ${inItsPlace(order)} Its author cannot answer this question again.</p>`;
}
