import type { Order, Reply } from '../ledger/store.js';
import { escapeHtml, foreignBlock } from '../pages/escape.js';
import { hidden } from '../pages/page-frame.js';
import { SENTIMENT_NAMES } from '../pages/sentiment-names.js';
import type { Question } from '../upstreams/people/people.js';
import { questionOf } from '../upstreams/people/reply-store.js';
import { mayReject, type PaymentFacts } from './payment-facts.js';

/** The replies of people to a question, each of which can be rejected; empty if the order asks nobody. */
export function repliesHtml(facts: PaymentFacts): string {
  const { order, replies } = facts;
  if (!order || order.wanted === 0) return '';
  const items = replies.map((reply, index) => item(facts, reply, index + 1)).join('\n');
  const none = '<p class="soft">Nobody has replied yet.</p>';
  return `<section class="card" id="replies" aria-labelledby="h-replies"><h2 id="h-replies">Replies <span class="soft">(${replies.length} of ${order.wanted})</span></h2>
${asked(order)}${items ? `<ol class="replies">\n${items}\n</ol>` : none}
</section>
`;
}

/** The question, if the order has one as the panel shows it. */
function asked(order: Order): string {
  const { brand, question } = questionOf(order) as Partial<Question>;
  if (typeof brand !== 'string' || typeof question !== 'string') return '';
  return `<p class="soft">People were asked about <bdi>${escapeHtml(brand)}</bdi>:</p>
${foreignBlock(question, 'quoted')}
`;
}

function item(facts: PaymentFacts, reply: Reply, number: number): string {
  const reject = mayReject(facts)
    ? `<a class="button quiet" href="${pathOf(facts, reply)}" aria-label="Reject reply ${number}…">Reject…</a>`
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

function pathOf({ payment }: PaymentFacts, { id }: Reply): string {
  return escapeHtml(`/payments/${payment.id}/replies/${encodeURIComponent(id)}/reject`);
}

/** Who can answer instead of a rejected reply, and when. */
export function inItsPlace({ order }: PaymentFacts): string {
  return order?.finishedAt === null
    ? 'Somebody else can answer in its place, as long as the question is open.'
    : 'The question is closed: somebody else can answer in its place once you have started another attempt.';
}

/** Asks before a reply is rejected. */
export function rejectHtml(facts: PaymentFacts, reply: Reply, formKey: string): string {
  return `<section class="card narrow" aria-labelledby="h-ask"><h1 id="h-ask">Reject this reply?</h1>
${foreignBlock(reply.text, 'quoted')}
<p>${opinion(reply)}</p>
<p>The buyer will not get it. ${inItsPlace(facts)} Its author cannot answer this question again.</p>
<form method="post" action="${pathOf(facts, reply)}">${hidden('form', formKey)}
<p class="actions"><button>Reject the reply</button><a class="button quiet" href="/payments/${facts.payment.id}">Cancel</a></p></form></section>`;
}
