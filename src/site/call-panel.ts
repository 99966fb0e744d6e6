import { formName } from '../contract/answer-forms.js';
import type { Contract, PricedOperation } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import { follow, objectOf } from '../contract/references.js';
import { escapeHtml } from '../pages/escape.js';
import type { Explorer } from '../rails/solana/explorer.js';
import { callFields, callShape } from './call-form.js';

/** The chain on which the calls of a page are paid. */
export type Paying = {
  network: 'sandbox' | 'devnet' | 'mainnet';
  /** Whether this server has a wallet that pays (only in the sandbox). */
  hasWallet: boolean;
  /** A mint of the sandbox's chain, used because the mints in a contract's examples do not exist there. */
  sampleMint?: string;
  /** Undefined if there is no public page about a transaction. */
  explorer: Explorer | undefined;
};

export const MONEY = {
  sandbox: 'Play money on a local Solana chain: nothing here costs anything.',
  devnet: 'Test money: USDC on Solana devnet.',
  mainnet: 'USDC on Solana.',
};

/** The scripts of a page that sells; `buy.js` imports the others. */
export const SELLING_SCRIPTS = [
  'buy.js',
  'kept-payments.js',
  'read-call.js',
  'shown-answer.js',
  'solana-payment.js',
] as const;

const ADDRESS = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/;

/** A form that calls an operation, without payment or paid with a wallet, and shows the answer. */
export function callPanel(operation: PricedOperation, paying: Paying): string {
  const { id, price, pricing } = operation;
  const { network, hasWallet, sampleMint, explorer } = paying;
  const onThisChain = (value: unknown): unknown => {
    if (sampleMint === undefined || value === undefined) return value;
    const replaced = (_name: string, each: unknown): unknown =>
      typeof each === 'string' && ADDRESS.test(each) ? sampleMint : each;
    return JSON.parse(JSON.stringify(value, replaced)) as unknown;
  };
  const data = {
    operation: id,
    call: JSON.stringify(callShape(operation)),
    price: price.shown,
    most: String(pricing.most.atomic),
    network,
    ...(explorer ? { explorer: explorer.transaction('TRANSACTION') } : {}),
  };
  const attributes = Object.entries(data).map(([name, value]) => `data-${name}="${escapeHtml(value)}"`);
  return `<section class="buy" aria-label="Make the call" ${attributes.join(' ')}${hasWallet ? ' data-sandbox-wallet' : ''}>
<form>
${callFields(operation, onThisChain)}
</form>
<p class="actions pay"></p>
<noscript><p class="hint">Calling and paying from this page needs JavaScript. Any x402 client can pay, too.</p></noscript>
<p class="hint no-wallet" hidden>To pay here, install a Solana wallet in this browser: <a href="https://phantom.com/download" rel="noreferrer">Phantom</a>,
<a href="https://solflare.com/download" rel="noreferrer">Solflare</a> or <a href="https://backpack.app/download" rel="noreferrer">Backpack</a>. Its button then appears here.</p>
<p class="say" role="status" aria-live="polite"></p>
<div class="result" tabindex="-1"></div>
</section>`;
}

const SIZE = {
  binary: 'The bytes of the file.',
  none: 'Success, without content.',
  json: 'See the API reference for its fields.',
  text: 'See the API reference for its fields.',
};

/** The contract's example of the answer; for an answer that is not text, its type and the examples of its headers. */
export function answerExample(operation: PricedOperation, contract: Contract): string {
  const { id, answers } = operation;
  const [form] = answers;
  const { kind, example } = form;
  const title = `You get <span class="soft">${escapeHtml(formName(form))}</span>`;
  // An empty text is a valid answer, but there is nothing to show.
  const text =
    example === undefined || example === ''
      ? [...headerExamples(contract, operation), SIZE[kind]].join('\n')
      : typeof example === 'string'
        ? example
        : JSON.stringify(example, null, 2);
  return codeBlock(title, text, `${id} answer`);
}

export function describedAt({ document }: Contract, { path, method }: PricedOperation): Json {
  return objectOf(objectOf(objectOf(document.paths)[path])[method.toLowerCase()]);
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

/** @param title HTML; `name` is the scrolling text's name for screen readers */
export function codeBlock(title: string, text: string, name: string, id?: string): string {
  const named = id === undefined ? '' : ` id="${id}"`;
  return `<figure><figcaption>${title}</figcaption><pre tabindex="0" role="group" aria-label="${escapeHtml(name)}" data-copy${named}>${escapeHtml(text)}</pre></figure>`;
}
