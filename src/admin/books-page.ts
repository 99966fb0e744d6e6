import { FORMATS } from '../books/export-formats.js';
import { commandLine } from '../config/command-line.js';
import { escapeHtml } from '../pages/escape.js';
import { grid } from './operator-layout.js';

const MONTHS = 13;
const NAMES = Object.entries(FORMATS);

/** The files of each month for bookkeeping, the newest month first. */
export function booksHtml(now: number): string {
  const today = new Date(now);
  const months = Array.from({ length: MONTHS }, (_, back) =>
    new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - back, 1)).toISOString().slice(0, 7),
  );
  const columns = [{ title: 'Month (UTC)' }, { title: 'Files' }];
  const rows = months.map((month, back) => [
    back === 0 ? `${month} <span class="soft">so far</span>` : month,
    `<span class="files">${NAMES.map(([name]) => `<a href="/books/${month}/${name}">${name}<span class="hidden"> of ${month}</span></a>`).join(' ')}</span>`,
  ]);
  const kinds = NAMES.map(([name, what]) => `<li><code>${name}</code>: ${escapeHtml(what)}</li>`);
  return `<h1>Books</h1>
<section class="card" aria-labelledby="h-files"><h2 id="h-files">Every movement of money, by month</h2>
<p>Sales, refunds, and the network fees that this shop paid.</p>
<ul class="plain">${kinds.join('\n')}</ul>
${grid('Files by month', columns, rows, '', 'files')}</section>
<section class="card" aria-labelledby="h-balance"><h2 id="h-balance">Does it add up?</h2>
<p><code>${escapeHtml(commandLine('ledger'))} statement ${months[0]}</code> compares a month with the balance of your receiver on chain, and says why if they differ.</p></section>`;
}
