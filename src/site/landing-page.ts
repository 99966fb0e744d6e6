import type { Contract, PricedOperation } from '../contract/contract.js';
import { objectOf } from '../contract/references.js';
import { MCP_PATH, REFERENCE_PATH } from '../contract/reserved-names.js';
import { STATUS_MEANINGS } from '../documents/status-meanings.js';
import type { Methods } from '../methods/methods.js';
import type { Terms } from '../methods/x402/requirements.js';
import { escapeHtml } from '../pages/escape.js';
import { toDecimal } from '../price/amount.js';
import { answerExample, callPanel, codeBlock, MONEY, type Paying } from './call-panel.js';
import { inline, type OwnWords } from './own-words.js';
import { sitePage } from './site-frame.js';
import { agentPrompt, examplePath, mcpSettings, snippetsFor, walletCommands } from './snippets.js';
import { socialTags } from './social-card.js';
import { whenCharged } from './what-it-costs.js';

export type LandingParts = Paying & {
  contract: Contract;
  terms: Terms;
  methods: Methods;
  words: OwnWords;
  /** The operator's own website, if there is one. */
  siteUrl: string;
  /** Free documents of this server to link to: path and name. */
  links: [path: string, name: string][];
};

/** Longer lists have collapsible groups by tag, and a search. */
const SHORT_LIST = 12;
/** Up to this many operations are listed next to the headline. */
const LISTED_ON_TOP = 6;

/** The page for browsers at `/`. It works without its scripts; they add copy buttons, the status, the search, and calls from the page. */
export function landingPage(parts: LandingParts): string {
  const { contract, words, terms } = parts;
  const { paid } = contract;
  const isShort = paid.length <= LISTED_ON_TOP;
  const main = `${hero(parts, isShort ? operationList(paid) : '')}
${isShort ? '' : `<section id="operations" aria-labelledby="h-operations"><div class="wide">\n<h2 id="h-operations">What is sold</h2>\n${operationList(paid)}\n</div></section>`}
${firstCall(parts)}
${howToPay(parts)}
${status(parts)}`;
  return sitePage(words, {
    title: words.name,
    head: `<meta name="description" content="${escapeHtml(words.summary)}">\n${socialTags(words, terms.publicUrl)}`,
    links: [
      ['#operations', 'Operations'],
      ['#pay', 'How to pay'],
      ['#status', 'Status'],
      [REFERENCE_PATH, 'API reference'],
    ],
    script: '/site/buy.js',
    isPublic: true,
    main,
    footer: footer(parts),
  });
}

function hero({ contract: { paid }, words, network }: LandingParts, list: string): string {
  const [first] = paid;
  const amounts = paid.map(({ pricing }) => pricing.least).sort((a, b) => (a.atomic < b.atomic ? -1 : 1));
  const from = amounts[0] ? `From ${toDecimal(amounts[0].atomic)} USDC a call. ` : '';
  const action = first
    ? `<p class="actions"><a class="button" href="#try">Try a call</a></p>`
    : '<p>Nothing is sold at the moment.</p>';
  return `<section class="hero"><div class="wide split">
<div>
<h1>${inline(words.summary)}</h1>
${words.lead === '' ? '' : `<div class="lead">${words.lead}</div>`}
<p class="facts"><strong>${from}No account, no API key.</strong> ${MONEY[network]}</p>
${action}
</div>
${list === '' ? '' : `<div id="operations">\n${list}\n</div>`}
</div></section>`;
}

/** All operations, each once, with a link to its page. */
function operationList(paid: PricedOperation[]): string {
  if (paid.length === 0) return '';
  if (paid.length <= SHORT_LIST) return `<ul class="operations">\n${paid.map(row).join('\n')}\n</ul>`;
  const groups = new Map<string, PricedOperation[]>();
  for (const operation of paid) {
    const tag = operation.tags[0] ?? 'Others';
    groups.set(tag, [...(groups.get(tag) ?? []), operation]);
  }
  const folded = [...groups].map(
    ([tag, all], index) => `<details class="group"${index === 0 && all.length <= SHORT_LIST ? ' open' : ''}>
<summary>${escapeHtml(tag)} <span class="soft">${all.length}</span></summary>
<ul class="operations">
${all.map(row).join('\n')}
</ul></details>`,
  );
  return `<div class="search" hidden><label for="search">Search ${paid.length} operations</label>
<input type="search" id="search" autocomplete="off" spellcheck="false"><p class="hint" id="found" role="status"></p></div>
<div class="groups">
${folded.join('\n')}
</div>`;
}

function row(operation: PricedOperation): string {
  const { method, path, price, summary } = operation;
  return `<li><a href="${escapeHtml(examplePath(operation))}"><span>${inline(summary)}</span> <strong>${escapeHtml(price.shown)}</strong> <code>${method} ${escapeHtml(path)}</code></a></li>`;
}

function firstCall(parts: LandingParts): string {
  const [first] = parts.contract.paid;
  if (!first) return '';
  const { method, path, price, summary } = first;
  return `<section id="try" class="tinted" aria-labelledby="h-try"><div class="wide">
<h2 id="h-try">Try it: ${inline(summary)}</h2>
<p class="call"><code>${method} ${escapeHtml(path)}</code> · <strong>${escapeHtml(price.shown)}</strong>, ${whenCharged(first)}</p>
<div class="split even">
${answerExample(first, parts.contract)}
<div class="card">${callPanel(first, parts)}</div>
</div>
</div></section>`;
}

/** The cheapest operation that answers immediately, as an example that anyone can run. */
function shownInCode(paid: PricedOperation[]): PricedOperation | undefined {
  const quick = paid.filter(({ flow }) => flow === 'authorization');
  const among = quick.length > 0 ? quick : paid;
  const json = among.filter(({ answers }) => answers[0].kind === 'json');
  return [...(json.length > 0 ? json : among)].sort((a, b) => Number(a.price.atomic - b.price.atomic))[0];
}

/** The protocols other than x402. */
function otherWays({ all, first }: Methods): string {
  const others = all.filter(({ protocol }) => protocol !== first.protocol);
  const phrases = others.flatMap(method => method.documents().phrase ?? []);
  return phrases.length === 0
    ? ''
    : ` Or pay by ${escapeHtml(phrases.join(' or '))}: the same 402 has its challenge.`;
}

type Tab = { id: string; label: string; parts: { id: string; label: string; note: string; code: string }[] };

function howToPay({ contract: { paid }, terms, methods, words, hasWallet }: LandingParts): string {
  const operation = shownInCode(paid);
  if (!operation) return '';
  const code = snippetsFor(operation, terms);
  const of = (...ids: string[]): Tab['parts'] => code.filter(({ id }) => ids.includes(id));
  const prompt = {
    id: 'prompt',
    label: 'Agent prompt',
    note: 'Give this to an agent that has a wallet.',
    code: agentPrompt(operation, terms, words.name),
  };
  const settings = {
    id: 'mcp-settings',
    label: 'MCP settings',
    note: `The tools of this shop, for an MCP host. The payment for a call goes in _meta["x402/payment"].`,
    code: mcpSettings(terms, words.name),
  };
  const hosts = {
    id: 'mcp-hosts',
    label: 'A host with a wallet',
    note: "Run the line for your host. It shows the changes to that host's settings, and asks before writing them.",
    code: walletCommands(terms),
  };
  const tabs: Tab[] = [
    { id: 'agent', label: 'Agent prompt', parts: [prompt] },
    { id: 'code', label: 'Code', parts: of('typescript', 'python', 'curl') },
    { id: 'mcp', label: 'MCP', parts: [settings, hosts, ...of('mcp')] },
  ];
  const keys = hasWallet
    ? '<code>KEYPAIR</code> is <code>buyer.json</code> in the state folder (<code>.coinslot</code>), <code>RPC_URL</code> the <code>rpcUrl</code> in <code>sandbox.json</code> next to it.'
    : '<code>KEYPAIR</code> is a key file as <code>solana-keygen</code> writes it, whose wallet holds USDC; <code>RPC_URL</code> a Solana RPC server.';
  const rows = STATUS_MEANINGS.map(
    ([answered, meaning]) => `<tr><th scope="row">${answered}</th><td>${inline(meaning)}</td></tr>`,
  ).join('\n');
  return `<section id="pay" aria-labelledby="h-pay"><div class="wide">
<h2 id="h-pay">How to pay</h2>
<p>Call: the answer is 402 with a price. Sign one of the offered payments. Send the same call with the payment.${otherWays(methods)}</p>
<div class="tabs">
<fieldset><legend class="hidden">How to pay</legend>
${tabs.map(({ id, label }, index) => `<label><input type="radio" name="tab" value="${id}" id="tab-${id}"${index === 0 ? ' checked' : ''}> ${label}</label>`).join('\n')}
</fieldset>
${tabs.map(({ id, parts }) => `<div class="tab of-${id}">\n${snippetBlocks(parts)}\n</div>`).join('\n')}
</div>
<p class="hint">In code, ${keys}</p>
<details><summary>What each answer means for your money</summary>
<div class="scroll" tabindex="0" role="region" aria-label="What each answer means for your money"><table>
<thead><tr><th scope="col">Status</th><th scope="col">Meaning</th></tr></thead>
<tbody>
${rows}
</tbody></table></div></details>
</div></section>`;
}

/** A single block is shown as it is; of several, all but the first are collapsed. */
function snippetBlocks(parts: Tab['parts']): string {
  return parts
    .map(({ id, label, note, code }, index) => {
      const block = codeBlock(inline(note), code, label, `snippet-${id}`);
      return parts.length === 1
        ? block
        : `<details name="${parts[0]?.id ?? ''}"${index === 0 ? ' open' : ''}><summary>${escapeHtml(label)}</summary>\n${block}\n</details>`;
    })
    .join('\n');
}

function status({ contract: { free } }: LandingParts): string {
  const path = free.find(({ id }) => id === 'getHealth')?.path;
  const now = path
    ? `<p id="health" role="status" data-health="${escapeHtml(path)}"><a href="${escapeHtml(path)}">Current status</a></p>
<ul id="backends" class="backends"></ul>`
    : '<p>This page was served by the running service.</p>';
  return `<section id="status" class="tinted" aria-labelledby="h-status"><div class="wide">
<h2 id="h-status">Status</h2>
${now}
</div></section>`;
}

function footer({ words, links, contract, siteUrl, terms }: LandingParts): string {
  const { version, contact } = objectOf(contract.document.info);
  const { email } = objectOf(contact);
  const items = [
    ...links.map(([path, name]) => `<li><a href="${escapeHtml(path)}">${escapeHtml(name)}</a></li>`),
    `<li><code>${escapeHtml(terms.publicUrl + MCP_PATH)}</code></li>`,
    ...(siteUrl === terms.publicUrl ? [] : [`<li><a href="${escapeHtml(siteUrl)}">Site</a></li>`]),
    ...(typeof email === 'string'
      ? [`<li><a href="mailto:${escapeHtml(email)}">${escapeHtml(email)}</a></li>`]
      : []),
  ];
  return `<footer><div class="wide">
<p>${escapeHtml(words.name)} ${typeof version === 'string' ? escapeHtml(version) : ''}</p>
<ul>
${items.join('\n')}
</ul>
</div></footer>`;
}
