import {
  brand,
  type EntrancePages,
  entrancePages,
  escapeHtml,
  foreignBlock,
  hidden,
  ICON,
  pageFrame,
} from 'coinslot';
import type { ReplyFault } from './reply-faults.js';
import { OPINION_NAMES } from './sentiment-names.js';
import { MAX_REPLY_CHARACTERS, type Question, type Reply, SENTIMENTS } from './replies.js';

/** One open question as one respondent sees it, without other people's replies. */
export type Card = {
  question: Question;
  /** The number of replies counted so far. */
  replies: number;
  /** The respondent's own reply. */
  own: Pick<Reply, 'text' | 'sentiment'> | undefined;
};

/** A reply with a mistake: what is wrong, and the text that was typed, which the form shows again. */
export type Fault = ReplyFault & { question: string; text: string; sentiment: string };

export type Board = {
  /** The name of the product. */
  shop: string;
  cards: Card[];
  /** The number of open questions that are not shown. */
  more: number;
  formKey: string;
  now: number;
  /** A message about the respondent's last action, and the question that it concerns. */
  said?: { message: string; question: string };
  fault?: Fault;
  /** A reply that came too late: why, and its text. */
  late?: { message: string; text: string };
};

const MAX_EXCERPT_CHARACTERS = 120;
const FILES = { style: '/panel/style.css', script: '/panel/panel.js', head: ICON };

/** The pages that a visitor sees before signing in to a shop's panel. */
export function panelEntrance(shop: string): EntrancePages {
  return entrancePages({
    ...FILES,
    shop,
    page: 'panel',
    intro:
      'On this page people answer short questions about brands. Sign in with the token that the operator gave you.',
    action: '/panel/login',
    home: '/panel/',
    homeName: 'the questions',
  });
}

export function boardPage(board: Board): string {
  const { shop, formKey, cards, said, fault, late } = board;
  const title = fault ? 'Please correct your reply' : late ? 'Your reply was not added' : 'Questions';
  // The message appears in the card of its question, if that card is shown.
  const above = said && cards.some(({ question }) => question.id === said.question) ? '' : said?.message;
  const body = `<a class="skip" href="#main">Skip to the questions</a>
<header class="bar">
${brand(shop, 'panel', '/panel/')}
<form method="post" action="/panel/logout">${hidden('form', formKey)}<button class="quiet">Sign out</button></form>
</header>
<main id="main" tabindex="-1">
<h1>Questions</h1>
<p class="soft lead">Answer in your own words. Other people’s replies are not shown here.</p>
<p id="status" class="said" role="status">${escapeHtml(above ?? '')}</p>
<p id="live" class="hidden" role="status"></p>
${late ? lateReply(late) : ''}${boardFragment(board)}
<noscript><p class="soft">Without JavaScript, this page does not update itself: reload it to see new questions.</p></noscript>
</main>`;
  return pageFrame({ ...FILES, title: `${title} – ${shop} panel`, body });
}

/** The list of questions, which the script merges into the page. One of them is expanded. */
export function boardFragment(board: Board): string {
  const { cards, more, fault, said } = board;
  const first = cards.find(card => stateOf(card) === 'open') ?? cards[0];
  const unfolded =
    fault?.question ?? cards.find(({ question }) => question.id === said?.question)?.question.id;
  const rest =
    more > 0
      ? `${more} more ${more === 1 ? 'question' : 'questions'} will appear when some of these are done.`
      : '';
  const none =
    cards.length === 0
      ? 'No questions are open at the moment. New questions appear here automatically.'
      : rest;
  return `<div id="questions">
${cards.map(card => cardHtml(card, board, card.question.id === (unfolded ?? first?.question.id))).join('\n')}
</div>
<p id="rest" class="soft">${none}</p>`;
}

function stateOf({ question, replies, own }: Card): 'open' | 'answered' | 'full' {
  if (own) return 'answered';
  return replies >= question.wanted ? 'full' : 'open';
}

/** The text of a reply that came too late, so that the respondent can copy it. */
function lateReply({ message, text }: { message: string; text: string }): string {
  return `<section class="card" aria-labelledby="h-late"><h2 id="h-late">Your reply was not added</h2>
<p class="fault" role="alert">${escapeHtml(message)}</p>
<label class="above" for="late">What you wrote, if you want to keep it</label>
<textarea id="late" readonly dir="auto">
${escapeHtml(text)}</textarea></section>`;
}

function cardHtml(card: Card, board: Board, unfolded: boolean): string {
  const { question } = card;
  const id = escapeHtml(question.id);
  const about = question.brand.length > 200 ? `${question.brand.slice(0, 200)}…` : question.brand;
  const until = new Date(question.deadline).toISOString();
  const excerpt =
    question.question.length > MAX_EXCERPT_CHARACTERS
      ? `${question.question.slice(0, MAX_EXCERPT_CHARACTERS)}…`
      : question.question;
  return `<article class="card question" id="q-${id}" data-state="${stateOf(card)}" data-until="${until}" aria-labelledby="h-${id}">
<details name="question"${unfolded ? ' open' : ''}>
<summary><h2 id="h-${id}">About <bdi>${escapeHtml(about)}</bdi></h2>
<span class="excerpt" dir="auto">${escapeHtml(excerpt)}</span>
<span class="state soft">${progressOf(card, board.now)}</span></summary>
<div class="body">
${foreignBlock(question.question, 'asked')}
${bodyOf(card, board)}
</div>
</details>
</article>`;
}

function progressOf(card: Card, now: number): string {
  const { question, replies } = card;
  const count = `${replies} of ${question.wanted} ${question.wanted === 1 ? 'reply' : 'replies'}`;
  if (stateOf(card) === 'answered') return `Answered. ${count}`;
  const minutes = Math.max(Math.ceil((question.deadline - now) / 60_000), 0);
  const iso = new Date(question.deadline).toISOString();
  const left = minutes > 1 ? `about ${minutes} minutes left` : 'less than a minute left';
  return `${count}. Open until <time datetime="${iso}">${iso.slice(11, 16)} UTC</time>, <span class="left">${left}</span>`;
}

function bodyOf(card: Card, { formKey, said, fault }: Board): string {
  const { question, own } = card;
  const mine = fault?.question === question.id ? fault : undefined;
  const state = stateOf(card);
  const message = said?.question === question.id ? said.message : '';
  const told = message ? `<p class="said" role="status">${escapeHtml(message)}</p>\n` : '';
  if (own)
    return `<div class="done">${told || '<p><strong>You have answered this question. Thank you.</strong></p>\n'}<p class="soft">Your reply (${OPINION_NAMES[own.sentiment].toLowerCase()}):</p>
${foreignBlock(own.text, 'own')}</div>`;
  if (state === 'full' && !mine) return `${told}<p>Enough people have answered this question.</p>`;
  return told + replyForm(question.id, formKey, mine);
}

function replyForm(question: string, formKey: string, fault: Fault | undefined): string {
  const id = escapeHtml(question);
  const noChoice = fault?.control === 'sentiment';
  const choices = SENTIMENTS.map(
    (value, index) =>
      `<label class="choice"><input type="radio" name="sentiment" value="${value}" required${
        fault?.sentiment === value ? ' checked' : ''
      }${noChoice && index === 0 ? ' autofocus' : ''}><span>${OPINION_NAMES[value]}</span></label>`,
  ).join('\n');
  return `<form method="post" action="/panel/reply" data-live>
${hidden('form', formKey)}${hidden('question', question)}
<label class="above" for="t-${id}">Your reply</label>
<textarea id="t-${id}" name="text" required maxlength="${MAX_REPLY_CHARACTERS}" dir="auto" aria-describedby="e-${id} c-${id}"${
    fault?.control === 'text' ? ' aria-invalid="true" autofocus' : ''
  }>
${escapeHtml(fault?.text ?? '')}</textarea>
<p id="c-${id}" class="soft hint">At most ${MAX_REPLY_CHARACTERS} characters. Please do not write anything that identifies you.</p>
<fieldset role="radiogroup" aria-describedby="e-${id}"${noChoice ? ' aria-invalid="true"' : ''}>
<legend>Your overall opinion</legend>
<div class="choices">
${choices}
</div>
</fieldset>
<p id="e-${id}" class="fault" role="alert">${escapeHtml(fault?.message ?? '')}</p>
<button>Send reply</button>
</form>`;
}
