import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { bareType, bodyKindOf } from '../../contract/body-types.js';
import type { PricedOperation } from '../../contract/contract.js';
import type { Routes } from '../../contract/routes.js';
import { isSoldStatus } from '../../contract/sold-status.js';
import type { Method } from '../../methods/method.js';
import type { Methods } from '../../methods/methods.js';
import type { Terms } from '../../methods/x402/requirements.js';
import type { Rail } from '../../rails/rail.js';
import { TransactionChecker } from '../../rails/solana/transaction.js';
import { checkPayment, type PaymentCheck } from '../../sale/check-payment.js';
import { MOCK_RPC_PATH } from './mock-document.js';
import { answerRpc, randomBlockhash } from './stub-chain.js';
import { tone } from './tone.js';

/** `prismUrl`: where Prism serves the document of this mock. */
export type FrontParts = { routes: Routes; terms: Terms; methods: Methods; prismUrl: string };

type Answer = { status: number; headers: Record<string, string>; body: Buffer };

const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Prism never answers some requests. */
const PRISM_DEADLINE_MS = 15_000;
const UNPAID = 'This is a mock: no money moves. Repeat the call with any payment to get an example answer';
const REFUSED = 'This is a mock, and the caller preferred 402: no money moves';
/** Addresses without a known key: the fee payer that the mock offers, and the payer shown for an unreadable payment. */
const FEE_PAYER = 'GVJJ7rdGiXr5xaYbRwRbjfaJL7fmwRygFi1H6aGqDveb';
const PAYER = 'CKPKJWNdJEqa81x7CkZ14BVPiY6y16Sxs7owznqtWYp5';
/** A fake signature of the usual length, which shows that the receipt is from a mock. */
const TRANSACTION = `mock${'1'.repeat(83)}`;
const JSON_TYPE = 'application/json; charset=utf-8';
const OPEN: Record<string, string> = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Headers': '*',
  'Access-Control-Expose-Headers': '*',
  'Cache-Control': 'no-store',
  'X-Mock': 'true',
};
const NOT_PASSED_ON =
  /^(host|connection|keep-alive|transfer-encoding|content-length|content-encoding|expect)$/;
const RECEIPTS = /^((x-)?payment-response|answer-receipt)$/;

/**
 * The server of a mock. It charges as the real server does, without a chain: a paid call gets its price or, if it carries any payment, an
 * example and a receipt. `Prefer: code=N` chooses any other answer. Prism generates the answers.
 */
export function createFront(parts: FrontParts): Server {
  return createServer((request, response) => {
    void answerOf(parts, request)
      .catch((error: unknown) => unavailable(String(error)))
      .then(answer => send(response, answer))
      .catch(() => response.destroy());
  });
}

async function answerOf(parts: FrontParts, request: IncomingMessage): Promise<Answer> {
  const { method = 'GET', url = '/' } = request;
  const [path = '', query = ''] = url.split('?', 2);
  const body = await bodyOf(request);
  if (path === MOCK_RPC_PATH) return json(200, answerRpc(parts.terms.asset, parsed(body)));
  const route = parts.routes.match(method, path);
  const priced = route.kind === 'operation' ? route.priced : undefined;
  if (!priced) return askPrism(parts, request, body);
  const preferred = preferredStatus(request);
  const paid = parts.methods.areIn(request.rawHeaders);
  if (preferred === 402 || (preferred === undefined && !paid))
    return challengeFor(parts.methods, priced, query, paid ? REFUSED : UNPAID);
  return paidAnswer(parts, request, body, priced);
}

function challengeFor(methods: Methods, priced: PricedOperation, query: string, error: string): Answer {
  const asked = methods.askedBy(query);
  const hints = { feePayer: FEE_PAYER, recentBlockhash: randomBlockhash() };
  // Only the first method's challenge states the error.
  const said = asked === methods.first ? error : undefined;
  const { headers, body } = methods.challenges(asked, priced, hints, said);
  return { status: 402, headers: { ...headers, 'Content-Type': JSON_TYPE }, body };
}

/** Prism's answer, with a receipt for this call, this mock's address in its links, and a playable sound in place of an example. */
async function paidAnswer(
  parts: FrontParts,
  request: IncomingMessage,
  body: Buffer,
  priced: PricedOperation,
): Promise<Answer> {
  const answer = await askPrism(parts, request, body);
  const { publicUrl } = parts.terms;
  const kept = Object.entries(answer.headers).filter(([name]) => !RECEIPTS.test(name));
  const headers = Object.fromEntries(kept);
  if (headers.location && URL.canParse(headers.location))
    headers.location = publicUrl + new URL(headers.location).pathname;
  const settled = isSoldStatus(answer.status) || (answer.status >= 500 && priced.flow === 'upfront');
  const receipt = settled ? await receiptFor(parts, request, priced) : {};
  const audio = answer.status === 200 && (headers['content-type'] ?? '').startsWith('audio/wav');
  return { status: answer.status, headers: { ...headers, ...receipt }, body: audio ? tone() : answer.body };
}

/** The receipt for a payment. A mock accepts any payment, even an unreadable one. */
async function receiptFor(
  { terms, methods }: FrontParts,
  { headers }: IncomingMessage,
  priced: PricedOperation,
): Promise<Record<string, string>> {
  const check = await checkPayment(methods, railOf(terms), { headers }, priced);
  const receipt = {
    success: true,
    payer: 'payment' in check ? check.payment.checked.payer : PAYER,
    transaction: TRANSACTION,
    amount: priced.price.atomic.toString(),
  };
  return methodOf(check, methods).receiptHeaders(receipt, { sold: true });
}

/** Checks payments like the real rail, but moves no money. */
function railOf({ asset, payTo }: Terms): Pick<Rail, 'check'> {
  const checker = new TransactionChecker();
  return { check: (transaction, amount) => checker.check(transaction, { asset, payTo, amount }) };
}

function methodOf(check: PaymentCheck, methods: Methods): Method {
  if ('payment' in check) return check.payment.method;
  return check.kind === 'refused' ? check.method : methods.first;
}

async function askPrism(parts: FrontParts, request: IncomingMessage, body: Buffer): Promise<Answer> {
  const { method = 'GET', url = '/' } = request;
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined && !NOT_PASSED_ON.test(name)) headers.set(name, String(value));
  // Prism never responds to a body that is declared as JSON but is not.
  const isJson = bodyKindOf(bareType(request.headers['content-type'] ?? JSON_TYPE)) === 'json';
  const sound = body.length === 0 || !isJson || parsed(body) !== undefined;
  if (!sound) headers.set('prefer', 'code=400');
  const sent = sound ? body : Buffer.from('{}');
  const response = await fetch(parts.prismUrl + url, {
    method,
    headers,
    redirect: 'manual',
    signal: AbortSignal.timeout(PRISM_DEADLINE_MS),
    ...(sent.length > 0 && method !== 'GET' && method !== 'HEAD' ? { body: sent } : {}),
  });
  const answered = [...response.headers].filter(([name]) => !NOT_PASSED_ON.test(name));
  return {
    status: response.status,
    headers: Object.fromEntries(answered),
    body: Buffer.from(await response.arrayBuffer()),
  };
}

/** `Prefer: code=N`, as Prism reads it. */
function preferredStatus({ headers }: IncomingMessage): number | undefined {
  const code = /(?:^|[,;\s])code\s*=\s*"?(\d{3})/i.exec(String(headers.prefer ?? ''))?.[1];
  return code === undefined ? undefined : Number(code);
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_BODY_BYTES) throw new Error(`a mock accepts bodies of at most ${MAX_BODY_BYTES} bytes`);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

function json(status: number, value: unknown): Answer {
  return { status, headers: { 'Content-Type': JSON_TYPE }, body: Buffer.from(JSON.stringify(value)) };
}

function unavailable(why: string): Answer {
  const answer = json(503, { error: `The mock could not answer: ${why}` });
  return { ...answer, headers: { ...answer.headers, 'Retry-After': '1' } };
}

function send(response: ServerResponse, { status, headers, body }: Answer): void {
  const own = Object.fromEntries(Object.entries(headers).filter(([name]) => !/^access-control-/i.test(name)));
  response.writeHead(status, { ...OPEN, ...own, 'Content-Length': body.length });
  response.end(body);
}
