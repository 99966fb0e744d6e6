import { type AdminSection, escapeHtml, foreignBlock, type OrderView } from 'coinslot';
import { SENTIMENT_NAMES } from './sentiment-names.js';
import type { Reply, ReplyStore } from './replies.js';

const REJECT = 'reject';

/** What the operator page shows of the orders: the replies of people, each of which can be rejected while the order is open. */
export function orderReplies(replyStore: ReplyStore): AdminSection {
  const find = async ({ id }: OrderView, reply: string): Promise<Reply | undefined> =>
    (await replyStore.replies(id)).find(each => each.id === reply);
  return {
    section: async order => repliesHtml(order, await replyStore.replies(order.id)),
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
    },
  };
}

function repliesHtml(order: OrderView, replies: readonly Reply[]): string {
  const items = replies.map((reply, index) => item(order, reply, index + 1)).join('\n');
  const none = '<p class="soft">Nobody has replied yet.</p>';
  return `<section class="card" id="replies" aria-labelledby="h-replies"><h2 id="h-replies">Replies <span class="soft">(${replies.length} of ${order.wanted})</span></h2>
${asked(order)}${items ? `<ol class="items">\n${items}\n</ol>` : none}
</section>
`;
}

/** The question, if the order has one as the panel shows it. */
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
    ? `<a class="button quiet" href="${path}" aria-label="Reject reply ${number}…">Reject…</a>`
    : '';
  return `<li>${foreignBlock(reply.text)}
<div class="given"><p>${opinion(reply)}</p>${reject}</div></li>`;
}

function opinion({ sentiment, inferred, isSample }: Reply): string {
  const remark = [
    inferred ? 'inferred from the text' : '',
    isSample ? 'sample respondent, not a person' : '',
  ];
  const remarks = remark.filter(Boolean).join(', ');
  const note = remarks ? ` <span class="soft">(${remarks})</span>` : '';
  return `<span class="mark ${sentiment}">${SENTIMENT_NAMES[sentiment]}</span>${note}`;
}

/** Who can answer instead of a rejected reply, and when. */
function inItsPlace({ isInProgress }: OrderView): string {
  return isInProgress
    ? 'Somebody else can answer in its place, as long as the question is open.'
    : 'The question is closed: somebody else can answer in its place once you have started another attempt.';
}

/** Asked before a reply is rejected. */
function rejectHtml(order: OrderView, reply: Reply): string {
  return `${foreignBlock(reply.text, 'quoted')}
<p>${opinion(reply)}</p>
<p>The buyer will not get it. ${inItsPlace(order)} Its author cannot answer this question again.</p>`;
}
