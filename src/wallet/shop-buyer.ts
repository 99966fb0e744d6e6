import { createHash } from 'node:crypto';
import type { Json } from '../contract/json.js';
import { orAbort } from '../net/deadline.js';
import { toAtomic } from '../price/amount.js';
import { readSecretKeyFile } from '../rails/solana/key-pair.js';
import {
  answerFilesOf,
  openWallet,
  statementOf,
  usualFolder,
  type Statement,
  type Wallet,
} from './open-wallet.js';
import { PaidTools } from './paid-tools.js';
import { Buyer, type Outcome } from './purchase.js';
import type { PendingPayment } from './purse.js';
import { overHttp, type ServerAnswer } from './shop-client.js';
import { endpointOf, payableUrl, Shop } from './shop-connection.js';

export type { Statement } from './open-wallet.js';
export type { StatementEvent, StatementLine } from './statement.js';

export type BuyerOptions = {
  /** The payer's key pair: a file as written by `solana-keygen`, readable only by its owner, or its 64 bytes. */
  keypair: string | Uint8Array;
  /** The most that one call may cost, in USDC. Default 0.05. */
  maxPrice?: string;
  /** The most that all calls of a day (UTC) may cost together, in USDC. Default 1.00. */
  budget?: string;
  /** A Solana RPC server; by default the public one for the network. */
  rpcUrl?: string;
  /** The folder for payments, by default `~/.coinslot/wallets/<address>`. Buyers that use the same folder share the budget. */
  folder?: string;
  /** How long a call may take, including all retries. Default 120 000. */
  timeoutMs?: number;
  /** How long one request may take. Default 60 000. */
  attemptMs?: number;
  /** Allows paying shops on other machines without TLS, although anyone on the network path could change the receiver. */
  allowHttp?: boolean;
};

/** A tool for a model; `inputSchema` is a JSON Schema. */
export type BuyerTool = {
  name: string;
  description: string;
  inputSchema: Json;
  /** Resolves to the text for the model: the answer and the cost, or why there is no answer. @throws PurseFault */
  call(args: Json, options?: { signal?: AbortSignal; abortSignal?: AbortSignal }): Promise<string>;
};

export type ShopBuyer = {
  /** Base58. */
  address: string;
  /**
   * `fetch` that pays a 402. It resolves to the answer that was bought, or to that of a call that costs nothing. If an earlier call with
   * the same method, URL and body has no answer yet, the call continues with that call's payment.
   * @throws PurchaseFault if there is no answer; it reports what happened to the money
   * @throws PurseFault if the folder can't be used: nothing was sent
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /**
   * The tools of a shop's MCP server. Their calls are paid for in the same way as with `coinslot mcp`.
   * @throws Error if the server does not list them
   */
  tools(shopUrl: string): Promise<BuyerTool[]>;
  /** The amounts spent, the calls without an answer, and the last 20 lines of the statement. */
  statement(lines?: number): Statement;
  close(): void;
};

/**
 * A call has no answer. `unpaid`: nothing was paid. `kept`: repeating the same call continues with the payment. `closed`: there will be
 * no answer; the payment counts as spent, and the next call is a new purchase.
 */
export class PurchaseFault extends Error {
  override readonly name = 'PurchaseFault';
  readonly kind: 'unpaid' | 'kept' | 'closed';
  /** Amount in atomic units of USDC. */
  readonly payment: Pick<PendingPayment, 'id' | 'amount' | 'payTo' | 'network'> | undefined;
  /** The shop's last answer, if there was one. */
  readonly response: Response | undefined;

  constructor(
    message: string,
    { kind, payment, response }: Pick<PurchaseFault, 'kind' | 'payment' | 'response'>,
  ) {
    super(message);
    this.kind = kind;
    this.payment = payment;
    this.response = response;
  }
}

const LINES = 20;
const NEVER = new AbortController().signal;

/** @throws PurseFault, and KeyPairFault if the file is not a key pair or can be read by others */
export async function createBuyer(options: BuyerOptions): Promise<ShopBuyer> {
  const { keypair, folder, rpcUrl, allowHttp = false } = options;
  const { maxPrice = '0.05', budget = '1.00', timeoutMs = 120_000, attemptMs = 60_000 } = options;
  const wallet = await openWallet(typeof keypair === 'string' ? readSecretKeyFile(keypair) : keypair, {
    folderOf: payer => folder ?? usualFolder(payer),
    rpcUrl,
    limits: { maxPrice: toAtomic(maxPrice), budget: toAtomic(budget) },
    timeoutMs,
    attemptMs,
  });
  const buyer = new Buyer(wallet);
  return {
    address: wallet.signer.address,
    fetch: async (input, init) => {
      const request = new Request(input, init);
      payableUrl(request.url, allowHttp);
      return responseOf(await orAbort(purchase(buyer, request), request.signal));
    },
    tools: shopUrl => toolsOf(wallet, new Shop(endpointOf(shopUrl, allowHttp))),
    statement: (lines = LINES) => statementOf(wallet, lines),
    close: () => wallet.purse.close(),
  };
}

async function purchase(buyer: Buyer, request: Request): Promise<Outcome<ServerAnswer>> {
  const { method, url, headers, redirect, signal } = request;
  const body = Buffer.from(await request.arrayBuffer());
  const name = createHash('sha256')
    .update(`${method} ${url}\n${headers.get('content-type') ?? ''}\n`)
    .update(body)
    .digest('hex');
  const init = { method, headers, redirect, ...(body.length > 0 ? { body } : {}) };
  const { origin, pathname } = new URL(url);
  return buyer.buy({ name, shop: origin, tool: `${method} ${pathname}`, signal, ...overHttp({ url, init }) });
}

/** @throws PurchaseFault */
function responseOf(outcome: Outcome<ServerAnswer>): Response {
  const { kind, answer } = outcome;
  if (kind === 'answered' || kind === 'unpriced') return asResponse(outcome.answer);
  const payment = kind === 'unpaid' ? undefined : outcome.payment;
  const next =
    kind === 'kept'
      ? ' The payment is kept: repeating the same call continues with it and does not pay twice.'
      : '';
  const response = answer && asResponse(answer);
  throw new PurchaseFault(`${outcome.error}${next}`, { kind, payment, response });
}

/** Statuses whose answers have no body, not even an empty one. */
const BODILESS = [204, 205, 304];

function asResponse({ status, headers, body }: ServerAnswer): Response {
  const own = new Headers(headers);
  // The body has already been decoded, so these headers no longer apply.
  for (const name of ['content-encoding', 'content-length', 'transfer-encoding']) own.delete(name);
  return new Response(BODILESS.includes(status) ? null : body, { status, headers: own });
}

async function toolsOf(wallet: Wallet, shop: Shop): Promise<BuyerTool[]> {
  const paid = new PaidTools({ ...wallet, shop, files: answerFilesOf(wallet) });
  return (await shop.tools()).map(({ name, description = '', inputSchema }) => ({
    name,
    description,
    inputSchema,
    async call(args, { signal, abortSignal } = {}) {
      const asked = { tool: name, args, signal: signal ?? abortSignal ?? NEVER, onProgress: () => {} };
      const { content } = await paid.call(asked);
      return content.flatMap(({ text }) => (typeof text === 'string' ? [text] : [])).join('\n');
    },
  }));
}
