import type { Contract, PricedOperation } from '../contract/contract.js';
import { escapeHtml } from '../pages/escape.js';
import { answerExample, callPanel, describedAt, MONEY, type Paying } from './call-panel.js';
import { inline, paragraphs, type OwnWords } from './own-words.js';
import { sitePage } from './site-frame.js';
import { whenCharged } from './what-it-costs.js';

export type PaywallParts = Paying & { contract: Contract; words: OwnWords };

/** The page of a paid operation, which browsers get at its URL instead of the JSON challenge. */
export function paywallPage(operation: PricedOperation, parts: PaywallParts): string {
  const { contract, words, network } = parts;
  const { method, path, price, summary, pricing } = operation;
  const { description } = describedAt(contract, operation);
  const about =
    typeof description === 'string' && description.trim() !== summary ? paragraphs(description) : '';
  const main = `<section class="paywall"><div class="wide split">
<div>
<p class="call"><code>${method} ${escapeHtml(path)}</code></p>
<h1>${inline(summary)}</h1>
<p class="price-tag"><strong>${escapeHtml(price.shown)}</strong> <span>${whenCharged(operation)}</span></p>
${pricing.terms === undefined ? '' : `<p class="hint">The price depends on the call: ${inline(pricing.terms)}</p>`}
${about}
${answerExample(operation, contract)}
<p class="hint">${MONEY[network]} No account needed. You are never charged twice for a call, and not at all if it fails.</p>
</div>
<div class="card">
<h2>Try it</h2>
${callPanel(operation, parts)}
</div>
</div></section>`;
  return sitePage(words, {
    title: `${summary} – ${words.name}`,
    main,
    links: [
      ['/#operations', 'All operations'],
      ['/#pay', 'How programs pay'],
      ['/docs', 'API reference'],
    ],
    head: `<meta name="description" content="${escapeHtml(`${summary}: ${price.shown} a call`)}">\n`,
    script: '/site/buy.js',
  });
}
