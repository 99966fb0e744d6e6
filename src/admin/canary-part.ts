import { toDecimal } from '../price/amount.js';
import type { CanaryRun } from '../operator/canary-runs.js';
import { escapeHtml } from '../pages/escape.js';
import { ago, badge, grid, paymentLink, payerLink } from './operator-layout.js';

const MAX_SHOWN = 5;
const COLUMNS = [
  { title: 'When' },
  { title: 'Result' },
  { title: 'Operation' },
  { title: 'USDC', number: true },
  { title: 'Took', number: true },
  { title: 'Payment' },
  { title: 'What was wrong' },
];

/** The purchases made by `coinslot canary`, newest first. */
export function canaryHtml(runs: readonly CanaryRun[], now: number, own: ReadonlySet<string>): string {
  const shown = runs.slice(0, MAX_SHOWN);
  const rows = shown.map(({ at, tookMs, operation, amount, payment, fault }) => [
    ago(at, now),
    badge(fault === undefined ? 'ok' : 'failed'),
    operation === undefined ? '–' : `<code>${escapeHtml(operation)}</code>`,
    amount === undefined ? '–' : toDecimal(BigInt(amount)),
    `${tookMs} ms`,
    payment === undefined ? '–' : paymentLink(payment),
    escapeHtml(fault ?? ''),
  ]);
  const none =
    'No canary has bought yet: “coinslot canary” buys once through PUBLIC_URL and compares answer, receipt and chain with the contract.';
  return `${grid('Purchases of the canary', COLUMNS, rows, none)}${summary(runs, own)}`;
}

function summary(runs: readonly CanaryRun[], own: ReadonlySet<string>): string {
  const [newest] = runs;
  if (!newest) return '';
  const bad = runs.filter(({ fault }) => fault !== undefined).length;
  const strange = own.has(newest.payer)
    ? ''
    : ` The canary’s wallet ${payerLink(newest.payer)} is counted as a buyer: set CANARY_KEYPAIR or OWN_WALLETS for the server, too.`;
  return `<p class="soft">Of the last ${runs.length}, ${bad === 0 ? 'none' : bad} failed.${strange}</p>`;
}
