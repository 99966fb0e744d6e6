import { formName } from '../contract/answer-forms.js';
import type { Contract, PricedOperation } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import { follow, objectOf } from '../contract/references.js';
import { toDecimal } from '../price/amount.js';
import { escapeHtml } from '../pages/escape.js';
import { ICON, pageFrame } from '../pages/page-frame.js';
import { MCP_PATH } from '../contract/reserved-names.js';
import type { Methods } from '../methods/methods.js';
import type { Terms } from '../methods/x402/requirements.js';
import { STATUS_MEANINGS } from '../documents/status-meanings.js';
import { inline, paragraphs, type OwnWords } from './own-words.js';
import { bodyOf, exampleHeaders, examplePath, snippetsFor } from './snippets.js';
import { quotaText } from '../contract/read-quota.js';
import { whenCharged } from './what-it-costs.js';

export type LandingParts = {
  contract: Contract;
  terms: Terms;
  methods: Methods;
  words: OwnWords;
  /** The human site, if that is elsewhere. */
  siteUrl: string;
  network: 'sandbox' | 'devnet' | 'mainnet';
  /** Whether the page has a wallet that pays: in the sandbox only. */
  hasWallet: boolean;
  /** A mint of the sandbox's chain: the examples of a contract name mints that it does not have. */
  sampleMint?: string;
  /** Free documents of this server to link to: path and name. */
  links: [path: string, name: string][];
};

const MONEY = {
  sandbox: 'Play money on a local Solana chain: nothing here costs anything.',
  devnet: 'Test money: USDC on Solana devnet.',
  mainnet: 'USDC on Solana.',
};

/** The page for browsers at `/`. It works without its script; the script adds copying, the status, and trying. */
export function landingPage(parts: LandingParts): string {
  const { contract, words } = parts;
  const name = escapeHtml(words.name);
  const body = `<a class="skip" href="#main">Skip to the content</a>
<header class="bar"><div class="wide">
<a class="brand" href="/">${logo(words)}<span>${name}</span></a>
<nav aria-label="Page"><a href="#operations">Operations</a><a href="#pay">How to pay</a><a href="#status">Status</a><a href="/docs">API reference</a></nav>
</div></header>
<main id="main">
${hero(parts)}
<section id="operations" aria-labelledby="h-operations"><div class="wide">
<h2 id="h-operations">What is sold</h2>
${priceList(contract.paid)}
${contract.paid.map(operation => card(operation, parts)).join('\n')}
${words.details}
</div></section>
${howToPay(parts)}
${status(parts)}
</main>
${footer(parts)}`;
  const head = `<meta name="description" content="${escapeHtml(words.summary)}">\n${ICON}`;
  return pageFrame({
    title: words.name,
    head,
    style: '/site/style.css',
    script: '/site/page.js',
    isPublic: true,
    body,
  });
}

function logo({ logo: own, name }: OwnWords): string {
  if (own) return `<img src="${escapeHtml(own.src)}" alt="${escapeHtml(own.alt)}" height="32">`;
  return `<span class="coin" aria-hidden="true">${escapeHtml([...name][0] ?? '')}</span>`;
}

function hero({ contract: { paid }, words, network, terms }: LandingParts): string {
  const [first] = paid;
  const amounts = paid.map(({ pricing }) => pricing.least).sort((a, b) => (a.atomic < b.atomic ? -1 : 1));
  const from = amounts[0] ? `From ${toDecimal(amounts[0].atomic)} USDC a call. ` : '';
  const shown = first
    ? `<div class="terminal" role="img" aria-label="A call without payment is answered 402 Payment Required, with the price.">
<p><b>$</b> curl -X ${first.method} ${escapeHtml(terms.publicUrl + examplePath(first))}</p>
<p class="warm">402 Payment Required</p>
<p>price: ${escapeHtml(first.price.shown)}</p>
<p><b>$</b> … the same call, with a signed payment</p>
<p class="good">200 OK</p>
</div>`
    : '';
  return `<section class="hero"><div class="wide split">
<div>
<h1>${inline(words.summary)}</h1>
<div class="lead">${words.lead}</div>
<p class="facts"><strong>${from}No account, no API key.</strong> ${MONEY[network]}</p>
<p class="actions"><a class="button" href="#${first ? anchor(first) : 'operations'}">${first ? 'Try a call' : 'See what is sold'}</a> <a class="button quiet" href="/docs">Read the API reference</a></p>
</div>
${shown}
</div></section>`;
}

/** The id of an operation's part of the page. */
export function anchor({ id }: PricedOperation): string {
  return `op-${encodeURIComponent(id)}`;
}

function priceList(paid: PricedOperation[]): string {
  if (paid.length === 0) return '<p>Nothing is sold at the moment.</p>';
  const rows = paid.map(
    operation => `<tr><th scope="row"><a href="#${anchor(operation)}">${inline(operation.summary)}</a></th>
<td><code>${operation.method} ${escapeHtml(operation.path)}</code></td><td class="price">${escapeHtml(operation.price.shown)}</td></tr>`,
  );
  return `<div class="scroll" tabindex="0" role="region" aria-labelledby="h-prices"><table class="prices">
<caption id="h-prices">Prices of a call</caption>
<thead><tr><th scope="col">Operation</th><th scope="col">Call</th><th scope="col" class="price">Price</th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody></table></div>`;
}

function card(operation: PricedOperation, parts: LandingParts): string {
  const { id, method, path, price, summary, tags, request } = operation;
  const { description } = describedAt(parts.contract, operation);
  const free = operation.free ? `. ${escapeHtml(quotaText(operation.free))}` : '';
  const sent = request
    ? block('You send', JSON.stringify(request.example, null, 2), `${id} request`)
    : asked(operation);
  return `<article class="card" id="${anchor(operation)}" aria-labelledby="h-${anchor(operation)}">
<div class="top">
<div><h3 id="h-${anchor(operation)}">${inline(summary)}</h3>
<p class="call"><code>${method} ${escapeHtml(path)}</code>${tags.map(tag => ` <span class="tag">${escapeHtml(tag)}</span>`).join('')}</p></div>
<p class="cost"><strong>${escapeHtml(price.shown)}</strong> <span>${whenCharged(operation.flow)}${free}</span></p>
</div>
${typeof description === 'string' && description.trim() !== summary ? paragraphs(description) : ''}
<div class="split even">${sent}${answer(operation, parts)}</div>
${tryIt(operation, parts)}
</article>`;
}

function describedAt({ document }: Contract, { path, method }: PricedOperation): Json {
  return objectOf(objectOf(objectOf(document.paths)[path])[method.toLowerCase()]);
}

function asked(operation: PricedOperation): string {
  return block('You call', `${operation.method} ${examplePath(operation)}`, `${operation.id} call`);
}

const SIZE = {
  binary: 'The bytes of the file.',
  none: 'A success without content.',
  json: 'See the API reference for its fields.',
  text: 'See the API reference for its fields.',
};

/** The example of the answer as the contract has it; of an answer that is no text, its type and the examples of its headers. */
function answer(operation: PricedOperation, parts: LandingParts): string {
  const { id, answers } = operation;
  const [form] = answers;
  const { kind, example } = form;
  const title = `You get <span class="soft">${escapeHtml(formName(form))}</span>`;
  // An empty text is an answer, too, and nothing to look at.
  if (example !== undefined && example !== '')
    return block(
      title,
      typeof example === 'string' ? example : JSON.stringify(example, null, 2),
      `${id} answer`,
    );
  const size = SIZE[kind];
  return block(title, [...headerExamples(parts.contract, operation), size].join('\n'), `${id} answer`);
}

function headerExamples(contract: Contract, operation: PricedOperation): string[] {
  const { status } = operation.answers[0];
  const sold = follow(contract.document, objectOf(describedAt(contract, operation).responses)[status]);
  return Object.entries(objectOf(sold.headers)).flatMap(([name, header]) => {
    const { example } = follow(contract.document, header);
    return typeof example === 'string' && !/^(PAYMENT-|X-PAYMENT-|Location$|X-Request-Id$)/i.test(name)
      ? [`${name}: ${example}`]
      : [];
  });
}

/** @param title HTML; `name` is what a screen reader calls the scrolling text */
function block(title: string, text: string, name: string): string {
  return `<figure><figcaption>${title}</figcaption><pre tabindex="0" role="group" aria-label="${escapeHtml(name)}" data-copy>${escapeHtml(text)}</pre></figure>`;
}

const ADDRESS = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/;

function tryIt(operation: PricedOperation, { hasWallet, sampleMint }: LandingParts): string {
  const { id, method, price, request } = operation;
  const own = escapeHtml(id);
  const onThisChain = (_name: string, value: unknown): unknown =>
    sampleMint !== undefined && typeof value === 'string' && ADDRESS.test(value) ? sampleMint : value;
  const json = JSON.stringify(request?.example, onThisChain, 2);
  const { body: sent = '', type, sendsJson } = bodyOf(operation);
  // Nobody types bytes into a page.
  if (typeof sent === 'object') return '';
  const example = sendsJson ? json : sent;
  const body = request
    ? `<label for="body-${own}">${sendsJson ? 'JSON body' : 'Body'}</label>
<textarea id="body-${own}" name="body" rows="6" spellcheck="false">${escapeHtml(example)}</textarea>`
    : '';
  const pay = hasWallet
    ? `<button type="button" data-pay>Pay ${escapeHtml(price.shown)} with the sandbox wallet</button>`
    : '';
  return `<details class="try" hidden data-operation="${own}" data-method="${method}" data-headers="${escapeHtml(JSON.stringify({ ...exampleHeaders(operation), ...type }))}">
<summary>Try it: ${inline(operation.summary)}</summary>
<form>
<label for="path-${own}">Path</label>
<input id="path-${own}" name="path" value="${escapeHtml(examplePath(operation))}" spellcheck="false" autocomplete="off">
${body}
<p class="actions"><button type="button" class="quiet" data-ask>Call without paying</button> ${pay}</p>
</form>
<p class="say" role="status" aria-live="polite"></p>
<ol class="trace"></ol>
</details>`;
}

const STEPS: [string, string][] = [
  [
    'Call',
    'Send the call without a payment. The answer is 402 with a challenge: price, token, network and receiver.',
  ],
  [
    'Sign',
    'Let an x402 client sign the payment. Signing moves no money, and the seller pays the network fee.',
  ],
  [
    'Send again',
    'Send the same call with the payment in the header PAYMENT-SIGNATURE. You get the answer and a receipt.',
  ],
];

/** The cheapest operation whose answer is there at once, as an example that everybody can run. */
function shownInCode(paid: PricedOperation[]): PricedOperation | undefined {
  const quick = paid.filter(({ flow }) => flow === 'authorization');
  const among = quick.length > 0 ? quick : paid;
  const json = among.filter(({ answers }) => answers[0].kind === 'json');
  return [...(json.length > 0 ? json : among)].sort((a, b) => Number(a.price.atomic - b.price.atomic))[0];
}

/** The protocols beside the one that the steps show. */
function otherWays({ all, first }: Methods): string {
  const others = all.filter(({ protocol }) => protocol !== first.protocol);
  const phrases = others.flatMap(method => method.documents().phrase ?? []);
  return phrases.length === 0
    ? ''
    : `<p>Or pay by ${escapeHtml(phrases.join(' or '))}: the same 402 has its challenge.</p>`;
}

function howToPay({ contract: { paid }, terms, methods, hasWallet }: LandingParts): string {
  const operation = shownInCode(paid);
  if (!operation) return '';
  const snippets = snippetsFor(operation, terms);
  const steps = STEPS.map(([title, text]) => `<li><h3>${title}</h3><p>${text}</p></li>`).join('\n');
  const choices = snippets
    .map(
      ({ id, label }, index) =>
        `<label><input type="radio" name="language" value="${id}" id="choose-${id}"${index === 0 ? ' checked' : ''}> ${label}</label>`,
    )
    .join('\n');
  const blocks = snippets
    .map(
      ({
        id,
        label,
        note,
        code,
      }) => `<figure class="snippet of-${id}"><figcaption>${escapeHtml(note)}</figcaption>
<pre tabindex="0" role="group" aria-label="Code for ${label}" data-copy id="snippet-${id}">${escapeHtml(code)}</pre></figure>`,
    )
    .join('\n');
  const keys = hasWallet
    ? 'In this sandbox, <code>KEYPAIR</code> is <code>buyer.json</code> in the state folder (<code>.coinslot</code>), and <code>RPC_URL</code> is the <code>rpcUrl</code> in <code>sandbox.json</code>, beside it.'
    : '<code>KEYPAIR</code> is a key file as <code>solana-keygen</code> writes it, whose wallet holds USDC. <code>RPC_URL</code> is the URL of a Solana RPC server.';
  const rows = STATUS_MEANINGS.map(
    ([answered, meaning]) => `<tr><th scope="row">${answered}</th><td>${inline(meaning)}</td></tr>`,
  ).join('\n');
  return `<section id="pay" class="tinted" aria-labelledby="h-pay"><div class="wide">
<h2 id="h-pay">How to pay, in three steps</h2>
<ol class="steps">
${steps}
</ol>
${otherWays(methods)}
<div class="code">
<fieldset><legend>Code that buys “${inline(operation.summary)}” (${escapeHtml(operation.price.shown)})</legend>
${choices}
</fieldset>
${blocks}
<p class="soft">${keys}</p>
</div>
<h3>What each answer means for your money</h3>
<div class="scroll" tabindex="0" role="region" aria-label="What each answer means for your money"><table>
<thead><tr><th scope="col">Status</th><th scope="col">Meaning</th></tr></thead>
<tbody>
${rows}
</tbody></table></div>
<p>Agents that speak MCP find the same operations, at the same prices, as tools at <code>${escapeHtml(terms.publicUrl + MCP_PATH)}</code>.</p>
</div></section>`;
}

function status({ contract: { free } }: LandingParts): string {
  const path = free.find(({ id }) => id === 'getHealth')?.path;
  const now = path
    ? `<p id="health" role="status" data-health="${escapeHtml(path)}"><a href="${escapeHtml(path)}">Current status</a></p>
<ul id="backends" class="backends"></ul>`
    : '<p>This page was served by the running service.</p>';
  return `<section id="status" aria-labelledby="h-status"><div class="wide">
<h2 id="h-status">Status</h2>
${now}
</div></section>`;
}

function footer({ words, links, contract, siteUrl, terms }: LandingParts): string {
  const { version, contact } = objectOf(contract.document.info);
  const { email } = objectOf(contact);
  const items = [
    ...links.map(([path, name]) => `<li><a href="${escapeHtml(path)}">${escapeHtml(name)}</a></li>`),
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
