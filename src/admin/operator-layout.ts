import { browserScript, EXCHANGE_TOKEN } from '../pages/browser-script.js';
import { escapeHtml } from '../pages/escape.js';
import type { Explorer } from '../rails/solana/explorer.js';
import { brand, type EntrancePages, entrancePages, hidden, pageFrame } from '../pages/page-frame.js';

/** The values shown on every page of a signed-in operator. */
export type Frame = { shop: string; formKey: string };

export const SCRIPT = `${EXCHANGE_TOKEN}\n${browserScript('admin/assets/sales-chart.js')}\n${browserScript('admin/assets/operator.js')}`;
const CHART = '<link rel="stylesheet" href="/chart.css">\n<script src="/chart.js" defer></script>\n';
const FILES = { style: '/style.css', script: '/operator.js' };

/** The pages that a visitor sees before signing in to a shop's operator page. */
export function operatorEntrance(shop: string): EntrancePages {
  return entrancePages({
    ...FILES,
    shop,
    page: 'operator',
    intro:
      'Sign in with <code>ADMIN_TOKEN</code>. If you have not set it, open the link in the file <code>operator-page.url</code> of the server’s state folder.',
    action: '/login',
    home: '/',
    homeName: 'the overview',
  });
}

/** A page of a signed-in operator. `main` is HTML. */
export function framed({ shop, formKey }: Frame, title: string, main: string): string {
  const body = `<a class="skip" href="#main">Skip to the content</a>
<header class="bar">
${brand(shop, 'operator', '/')}
<nav class="places" aria-label="Pages"><a href="/">Overview</a><a href="/sales">Sales</a><a href="/books">Books</a><a href="/events">Events</a></nav>
<form class="search" role="search" action="/payments" method="get"><label class="hidden" for="find">Find a payment by what its buyer quotes: id, transaction, payer, refund, payment-identifier or request id</label>
<input type="search" id="find" name="id" placeholder="Receipt, transaction, payer …" minlength="8" maxlength="200" title="The id of a payment or its first 8 digits, a transaction, a payer, a refund, a payment-identifier or a request id (X-Request-Id)" autocomplete="off" spellcheck="false" required>
<button class="quiet">Find</button></form>
<form method="post" action="/logout">${hidden('form', formKey)}<button class="quiet">Sign out</button></form>
</header>
<main id="main" tabindex="-1">
${main}
</main>`;
  return pageFrame({ ...FILES, title: `${title} – ${shop} operator`, head: CHART, body });
}

/** HTML for a time: relative to `now`, with the exact time as a tooltip and in machine-readable form. */
export function ago(ms: number, now: number): string {
  const iso = new Date(ms).toISOString();
  return `<time datetime="${iso}" title="${iso}">${span(now - ms)} ago</time>`;
}

/** A duration in one unit. */
export function span(ms: number): string {
  const seconds = Math.max(Math.round(ms / 1_000), 0);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`;
}

/** An exact UTC time. */
export function at(ms: number): string {
  const iso = new Date(ms).toISOString();
  return `<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)}</time>`;
}

export function paymentLink(id: string): string {
  return `<a class="id" href="/payments/${id}">${id.slice(0, 12)}…</a>`;
}

/** An address or transaction, with a link to an explorer if there is one. */
export function linked(text: string, page: ((text: string) => string) | undefined): string {
  return `<span class="id">${escapeHtml(text)}</span>${explorerLink(text, page)}`;
}

export function explorerLink(text: string, page: ((text: string) => string) | undefined): string {
  if (!page) return '';
  return ` <a href="${escapeHtml(page(text))}" target="_blank" rel="noreferrer">explorer<span class="hidden"> page of ${escapeHtml(text.slice(0, 8))}, in a new tab</span></a>`;
}

/** The data for the tables and lists of a page. */
export type Shown = {
  now: number;
  own: ReadonlySet<string>;
  explorer?: Explorer | undefined;
  /** Ids of the owed payments whose orders are in progress. */
  inProgress?: ReadonlySet<string>;
};

/** A payer, with a link to its purchases. */
export function payerLink(payer: string): string {
  return `<a href="/payers/${encodeURIComponent(payer)}">${short(payer)}</a>`;
}

/** Marks the operator's own purchases. */
export const OWN = ' <span class="badge plain">your own</span>';

/** The HTML of a part of the ledger, or the reason why it cannot be read. */
export function read<T>(value: T | string, shown: (value: T) => string): string {
  return typeof value === 'string' ? `<p class="fault">${escapeHtml(value)}</p>` : shown(value);
}

/** A note that older sales are still being counted. @param countedFrom ms since 1970; undefined if all are counted */
export function still(countedFrom: number | undefined): string {
  if (countedFrom === undefined) return '';
  return `<p class="soft" role="status">Earlier sales are still being counted: so far back to ${new Date(countedFrom).toISOString().slice(0, 10)}.</p>`;
}

/** An address, shortened in the middle. */
export function short(address: string): string {
  const text = address.length > 14 ? `${address.slice(0, 6)}…${address.slice(-4)}` : address;
  return `<span class="id" title="${escapeHtml(address)}">${escapeHtml(text)}</span>`;
}

const TONES: Record<string, string> = {
  ok: 'good',
  success: 'good',
  processing: 'warn',
  rejected: 'bad',
  unlisted: 'bad',
  refused: 'bad',
  delivered: 'good',
  degraded: 'warn',
  owed: 'warn',
  settling: 'warn',
  down: 'bad',
  told: 'good',
  waiting: 'warn',
  late: 'warn',
  failed: 'bad',
  'given up': 'bad',
};
const NAMES: Record<string, string> = {
  settling: 'unresolved',
  claimed: 'in progress',
  success: 'yes',
  processing: 'soon',
  rejected: 'no',
  refused: 'refuses requests',
};

/** The state of a payment or a backend, as a coloured word. */
export function badge(state: string): string {
  return `<span class="badge ${TONES[state] ?? 'plain'}">${escapeHtml(NAMES[state] ?? state)}</span>`;
}

export type Column = { title: string; number?: boolean };

/** A scrolling table, or the text `none` if there are no rows. Cells are HTML. On a phone, tables with the look `payments` are compact. */
export function grid(
  name: string,
  columns: readonly Column[],
  rows: readonly string[][],
  none: string,
  look = '',
): string {
  if (rows.length === 0) return `<p class="soft">${escapeHtml(none)}</p>`;
  const number = (index: number): string => (columns[index]?.number ? ' class="number"' : '');
  const head = columns.map(({ title }, index) => `<th scope="col"${number(index)}>${escapeHtml(title)}</th>`);
  const body = rows.map(
    row =>
      `<tr>${row.map((cell, index) => `<td${number(index)} data-title="${escapeHtml(columns[index]?.title ?? '')}">${cell}</td>`).join('')}</tr>`,
  );
  return `<div class="scroll"><table class="cards ${look}"><caption class="hidden">${escapeHtml(name)}</caption><thead><tr>${head.join('')}</tr></thead>
<tbody>${body.join('\n')}</tbody></table></div>`;
}

/** Names with their values, which are HTML. */
export function list(entries: readonly (readonly [string, string])[]): string {
  return `<dl>${entries.map(([name, value]) => `<div><dt>${name}</dt><dd>${value}</dd></div>`).join('\n')}</dl>`;
}
