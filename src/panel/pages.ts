import { createHash } from 'node:crypto';
import {
  MAX_REPLY_CHARACTERS,
  type Question,
  type Reply,
  SENTIMENTS,
  type Sentiment,
} from '../upstreams/people/people.js';
import { escapeHtml } from './escape.js';
import { type EntrancePages, entrancePages, hidden, ICON, pageFrame } from './page-frame.js';

/** One open question as one respondent sees it. */
export type Card = { question: Question; replies: Reply[]; answered: boolean };

/** A reply with a mistake: what is wrong, and what was typed, so that the form can show it again. */
export type Fault = { question: string; message: string; text: string; sentiment: string };

export type Board = {
  /** The name of the product. */
  shop: string;
  cards: Card[];
  /** Open questions that are not shown. */
  more: number;
  formKey: string;
  now: number;
  message?: string;
  fault?: Fault;
};

/** Longer questions are cut, with a note that they are. */
const MAX_SHOWN_CHARACTERS = 20_000;

const CHOICES: Record<Sentiment, string> = { positive: 'Positive', neutral: 'Neutral', negative: 'Negative' };

const FILES = { style: '/panel/style.css', script: '/panel/panel.js', head: ICON };

/** The pages around the panel of a shop. */
export function panelEntrance(shop: string): EntrancePages {
  return entrancePages({
    ...FILES,
    name: `${shop} panel`,
    heading: `${shop}: panel`,
    intro:
      'On this page people answer short questions about brands. Sign in with the token that the operator gave you.',
    account: 'panel',
    action: '/panel/login',
    home: '/panel/',
    homeName: 'the questions',
  });
}

export function boardPage(board: Board): string {
  const { shop, formKey, message = '', fault } = board;
  const title = fault ? 'Please correct your reply' : 'Questions';
  const body = `<header>
<h1>Questions</h1>
<form method="post" action="/panel/logout">${hidden('form', formKey)}<button class="quiet">Sign out</button></form>
</header>
<main>
<p id="status" role="status" aria-live="polite">${escapeHtml(fault?.message ?? message)}</p>
${boardFragment(board)}
</main>`;
  return pageFrame({ ...FILES, title: `${title} – ${shop} panel`, body });
}

/** The list of questions, which the script merges into the page. */
export function boardFragment(board: Board): string {
  const { cards, more } = board;
  const rest =
    more > 0
      ? `${more} more ${more === 1 ? 'question' : 'questions'} will appear when some of these are done.`
      : '';
  const none =
    cards.length === 0
      ? 'No questions are open at the moment. New questions appear here automatically.'
      : rest;
  return `<div id="questions">
${cards.map(card => cardHtml(card, board)).join('\n')}
</div>
<p id="rest" class="soft">${none}</p>`;
}

/** A block for text that callers or respondents wrote: shown as written, with a text direction of its own. */
function foreign(text: string, className = ''): string {
  const shown =
    text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}… (shortened)` : text;
  const focusable = shown.length > 1_000 ? ' tabindex="0"' : '';
  return `<div class="foreign ${className}" dir="auto"${focusable}>${escapeHtml(shown)}</div>`;
}

function cardHtml(card: Card, board: Board): string {
  const { question, replies } = card;
  const id = escapeHtml(question.id);
  const fault = board.fault?.question === question.id ? board.fault : undefined;
  const brand = question.brand.length > 200 ? `${question.brand.slice(0, 200)}…` : question.brand;
  return `<article class="card" id="q-${id}" data-version="${versionOf(card)}" tabindex="-1" aria-labelledby="h-${id}">
<h2 id="h-${id}">About <bdi>${escapeHtml(brand)}</bdi></h2>
${foreign(question.question, 'asked')}
<p class="state soft">${stateOf(card, board.now)}</p>
<progress max="${question.wanted}" value="${replies.length}" aria-label="Replies received"></progress>
${replyForm(card, board.formKey, fault)}
${givenReplies(card, board.formKey)}
</article>`;
}

/** Changes whenever the card would look different, except for the time left. */
function versionOf({ question, replies, answered }: Card): string {
  const state = JSON.stringify([question.wanted, question.deadline, answered, replies.map(({ id }) => id)]);
  return createHash('sha256').update(state).digest('base64url').slice(0, 16);
}

function stateOf({ question, replies }: Card, now: number): string {
  const wanted = Math.max(question.wanted - replies.length, 0);
  const count = `${replies.length} of ${question.wanted} ${question.wanted === 1 ? 'reply' : 'replies'}`;
  const minutes = Math.max(Math.ceil((question.deadline - now) / 60_000), 0);
  const iso = new Date(question.deadline).toISOString();
  const time = `<time datetime="${iso}">${iso.slice(11, 16)} UTC</time>`;
  const left = minutes > 1 ? `about ${minutes} minutes left` : 'less than a minute left';
  return `${count}, ${wanted === 0 ? 'no more needed' : `<strong>${wanted} still needed</strong>`}. Open until ${time}, ${left}.`;
}

function replyForm({ question, replies, answered }: Card, formKey: string, fault: Fault | undefined): string {
  if (answered) return '<p><strong>You have answered this question. Thank you.</strong></p>';
  if (replies.length >= question.wanted && !fault) return '<p>Enough people have answered.</p>';
  const id = escapeHtml(question.id);
  const describedBy = `${fault ? `e-${id} ` : ''}c-${id}`;
  const choices = SENTIMENTS.map(
    value =>
      `<label class="choice"><input type="radio" name="sentiment" value="${value}" required${
        fault?.sentiment === value ? ' checked' : ''
      }> ${CHOICES[value]}</label>`,
  ).join('\n');
  return `<form method="post" action="/panel/reply" data-live>
${hidden('form', formKey)}${hidden('question', question.id)}
<label class="above" for="t-${id}">Your reply</label>
<textarea id="t-${id}" name="text" required maxlength="${MAX_REPLY_CHARACTERS}" dir="auto" aria-describedby="${describedBy}"${
    fault ? ' aria-invalid="true" autofocus' : ''
  }>
${escapeHtml(fault?.text ?? '')}</textarea>
<p id="c-${id}" class="soft">In your own words, at most ${MAX_REPLY_CHARACTERS} characters. Please do not write anything that identifies you.</p>
${fault ? `<p id="e-${id}" class="fault">${escapeHtml(fault.message)}</p>` : ''}
<fieldset>
<legend>Your overall opinion</legend>
${choices}
</fieldset>
<button>Send reply</button>
</form>`;
}

function givenReplies({ question, replies }: Card, formKey: string): string {
  if (replies.length === 0) return '<div class="given"></div>';
  const items = replies.map((reply, index) => replyItem(question, reply, index + 1, formKey)).join('\n');
  return `<div class="given"><details><summary>Replies received (${replies.length})</summary>
<ul class="replies">
${items}
</ul></details></div>`;
}

function replyItem(question: Question, reply: Reply, number: number, formKey: string): string {
  const notes = [
    reply.inferred ? 'inferred from the text' : '',
    reply.isSample ? 'sample respondent, not a person' : '',
  ];
  const remark = notes.filter(Boolean).join(', ');
  return `<li>${foreign(reply.text)}
<p><span class="mark ${reply.sentiment}">${CHOICES[reply.sentiment]}</span>${remark ? ` <span class="soft">(${remark})</span>` : ''}</p>
<form method="post" action="/panel/reject" data-live>${hidden('form', formKey)}${hidden('question', question.id)}${hidden('reply', reply.id)}
<button class="quiet" aria-label="Reject reply ${number}">Reject</button></form></li>`;
}
