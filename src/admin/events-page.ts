import type { OutboxEvent } from '../ledger/store.js';
import { escapeHtml } from '../pages/escape.js';
import { hidden } from '../pages/page-frame.js';
import { ago, badge, grid, paymentLink, span } from './operator-layout.js';

/** The maximum number of events to show. */
export const MAX_EVENTS = 100;

const COLUMNS = [
  { title: 'Event' },
  { title: 'Payment' },
  { title: 'When' },
  { title: 'Target' },
  { title: 'State' },
  { title: 'It said' },
  { title: 'Again' },
];

/** The events sent to targets, newest first, and those still to be sent. */
export function eventsHtml(
  events: readonly OutboxEvent[],
  { now, formKey, message = '' }: { now: number; formKey: string; message?: string },
): string {
  const rows = events.map(event => [
    `<code>${escapeHtml(event.kind)}</code>`,
    typeof event.facts['payment'] === 'string' && /^[0-9a-f]{64}$/.test(event.facts['payment'])
      ? paymentLink(event.facts['payment'])
      : '–',
    ago(event.createdAt, now),
    `<span class="id">${escapeHtml(event.target)}</span>`,
    stateOf(event, now),
    escapeHtml(event.answer ?? ''),
    resendForm(event, formKey),
  ]);
  const none =
    'No events are sent yet. Set WEBHOOK_URLS to the URL of a webhook (your own, or one of Slack, Discord or Telegram) or of a mailbox; “coinslot webhooks trigger” then sends a sample of each event.';
  return `<h1>Events</h1>
${message ? `<p class="said" role="status">${escapeHtml(message)}</p>` : ''}
<section class="card" aria-labelledby="h-events"><h2 id="h-events">Events sent</h2>
${grid('Events, the newest first', COLUMNS, rows, none)}
${rows.length === MAX_EVENTS ? `<p class="soft">The newest ${MAX_EVENTS}. Events are kept for a week.</p>` : ''}</section>`;
}

function stateOf({ outcome, attempts, nextAttemptAt }: OutboxEvent, now: number): string {
  const tries = attempts > 1 ? ` <span class="soft">${attempts} attempts</span>` : '';
  if (outcome !== null) return `${badge(outcome)}${tries}`;
  return `${badge('waiting')}${tries}${nextAttemptAt > now ? ` <span class="soft">again in ${span(nextAttemptAt - now)}</span>` : ''}`;
}

function resendForm({ seq, kind, target }: OutboxEvent, formKey: string): string {
  const label = `Send again: ${kind} to ${target}`;
  return `<form method="post" action="/events/${seq}">${hidden('form', formKey)}<button class="quiet" aria-label="${escapeHtml(label)}">Send again</button></form>`;
}
