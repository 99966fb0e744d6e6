import '../../rails/solana/silence-bigint-warning.js';
import { Keypair } from '@solana/web3.js';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { commandLine, startCommand } from '../../config/command-line.js';
import { fileNameOf } from '../../contract/file-name.js';
import { isSoldStatus } from '../../contract/sold-status.js';
import { toAtomic, toDecimal } from '../../price/amount.js';
import { Buyer, sentence, type Call, type Outcome } from '../../wallet/purchase.js';
import { openWallet } from '../../wallet/open-wallet.js';
import { PurseFault } from '../../wallet/purse.js';
import {
  BuyFault,
  errorOf,
  findOperation,
  overHttp,
  parseJson,
  reasonOf,
  receiptOf,
  requestOf,
  send,
  type Listing,
  type ServerAnswer,
} from '../../wallet/shop-client.js';
import { adoptOldPayment } from './old-payments.js';
import { replaceLine, writeData, writeErr, writeOut } from '../terminal.js';

const USAGE = `Usage: ${commandLine('buy')} <operationId> '<json body>' [options]
For example: ${commandLine('buy')} summarize '{"text":"Any text of a few sentences."}'
Operations: those that the server lists in /openapi.json. Parameters of the path and the query are members of the JSON, too.

  --url URL          URL of the server (default: the server of the sandbox in STATE_DIR)
  --keypair FILE     keypair file of the payer, in the format of solana-keygen (default: the sandbox's buyer)
  --max-price USDC   the highest price to pay (default 1.00)
  --out FILE         file for an answer that is not text (default <operationId>-<time> with an extension)
  --timeout SECONDS  how long to keep sending the same payment (default 120)
  --json             print one JSON object: price, payer, receipt and answer, or error
  --help             print this text

Environment: STATE_DIR, the state folder of the server, which contains the sandbox's buyer (default .coinslot); payments without an
answer are kept in its folder wallets. SOLANA_RPC_URL (default: the public server for the network).

The answer is written to stdout, everything else to stderr (with --json, nothing). Exit status 0 means that the answer was received.`;

/** The daily budget is unlimited, because only --max-price limits this command. */
const NO_BUDGET = 2n ** 63n;

type Order = {
  operationId: string;
  body: string;
  url: string;
  /** Called only for paid calls. */
  keypair: () => Uint8Array;
  maxPrice: bigint;
  out: string | undefined;
  timeoutMs: number;
  rpcUrl: string | undefined;
};

type SandboxFile = { url: string; rpcUrl: string };

/** npm changes to the package's folder, but relative paths refer to the caller's folder. */
const callersFolder = process.env.INIT_CWD ?? process.cwd();
const stateDir = resolve(process.env.STATE_DIR ?? '.coinslot');

/** The object that --json prints at the end; undefined without --json. */
let report: Record<string, unknown> | undefined;

function tell(line: string): void {
  if (!report) writeErr(`${line}\n`);
}

/** What has happened to the money so far, for a user who interrupts. */
let money = 'Nothing was paid.';

/** Ctrl-C. */
function interrupted(): never {
  const message = `Interrupted. ${money}`;
  tell(`${process.stderr.isTTY ? '\n' : ''}${message}`);
  if (report) writeOut(`${JSON.stringify({ ...report, error: message })}\n`);
  process.exit(130);
}

/** Shows a fact to the user, and records it for --json. */
function note(label: string, shown: string, facts: Record<string, unknown>): void {
  tell(`${`${label}:`.padEnd(8)} ${shown}`);
  if (report) Object.assign(report, facts);
}

function readOrder(): Order | undefined {
  const { values, positionals } = parseArguments();
  if (values.json) report = {};
  const [operationId, body = '{}', ...rest] = positionals;
  if (values.help) return undefined;
  if (!operationId) throw new BuyFault(USAGE);
  if (rest.length)
    throw new BuyFault(
      `Unexpected argument '${rest[0]}': quote the JSON body, so that it is one argument.\n\n${USAGE}`,
    );
  const sandbox = readJson<SandboxFile>(join(stateDir, 'sandbox.json'));
  const url = readUrl(values.url ?? sandbox?.url ?? 'http://127.0.0.1:8402');
  // Another server may use another chain, which the sandbox's RPC does not serve.
  const sandboxRpc = url === sandbox?.url ? sandbox.rpcUrl : undefined;
  return {
    operationId,
    body,
    url,
    keypair: () => readKeypair(values.keypair),
    maxPrice: readPrice(values['max-price']),
    out: values.out,
    timeoutMs: Math.ceil(readSeconds(values.timeout) * 1000),
    rpcUrl: process.env.SOLANA_RPC_URL?.split(',')[0] ?? sandboxRpc,
  };
}

function parseArguments() {
  const text = { type: 'string' } as const;
  const options = {
    url: text,
    keypair: text,
    'max-price': text,
    out: text,
    timeout: text,
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  } as const;
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    const option = /'(-[^']*)'/.exec(reasonOf(error))?.[1];
    throw new BuyFault(
      `${option ? `There is no option ${option}, or its value is missing.` : reasonOf(error)}\n\n${USAGE}`,
    );
  }
}

function readUrl(text: string): string {
  if (/^https?:/.test(text) && URL.canParse(text)) return text.replace(/(?<!\/)\/+$/, '');
  throw new BuyFault(`--url ${text} is not an http(s) URL.`);
}

function readKeypair(file: string | undefined): Uint8Array {
  const path = file === undefined ? join(stateDir, 'buyer.json') : resolve(callersFolder, file);
  const numbers = readJson<number[]>(path);
  if (Array.isArray(numbers) && numbers.length === 64) return Uint8Array.from(numbers);
  if (file !== undefined && !existsSync(path)) throw new BuyFault(`--keypair: there is no file ${path}.`);
  if (file !== undefined) throw new BuyFault(`${path} is not a keypair file (a JSON array of 64 numbers).`);
  throw new BuyFault(
    `There is no sandbox buyer in ${path}: start a server with ${startCommand()}, set STATE_DIR to that of the running server, or use --keypair.`,
  );
}

function readPrice(text = '1.00'): bigint {
  try {
    return toAtomic(text);
  } catch (error) {
    throw new BuyFault(`--max-price ${reasonOf(error)}`);
  }
}

function readSeconds(text = '120'): number {
  const seconds = Number(text);
  if (seconds > 0 && seconds <= 86_400) return seconds;
  throw new BuyFault('--timeout must be a number of seconds, more than 0 and at most 86400');
}

function readJson<T>(path: string): T | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as T;
  } catch {
    return undefined;
  }
}

/** Buys one call and shows its final answer. */
async function buy(order: Order): Promise<void> {
  const listing = await findOperation(order.url, order.operationId);
  if (!listing.priced) return show(order, await send(listing.url, { method: listing.method }));
  if (!listing.mock) {
    const keypair = order.keypair();
    return pay(order, listing, keypair, address => join(stateDir, 'wallets', address));
  }
  // The payment is signed with an empty wallet, so that nothing is paid even if the server is not a mock.
  note('Mock', 'nothing is paid, and the answer is an example', { mock: true });
  const folder = mkdtempSync(join(tmpdir(), 'coinslot-buy-'));
  try {
    const { rpcUrl } = listing.mock;
    await pay({ ...order, rpcUrl }, listing, Keypair.generate().secretKey, () => folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param folderOf the folder in which a payer's wallet keeps its payments */
async function pay(
  order: Order,
  listing: Listing,
  keypair: Uint8Array,
  folderOf: (payer: string) => string,
): Promise<void> {
  const { rpcUrl, maxPrice, timeoutMs, operationId, body, url } = order;
  const limits = { maxPrice, budget: NO_BUDGET };
  const wallet = await openWallet(keypair, { folderOf, rpcUrl, limits, timeoutMs });
  const { purse, signer } = wallet;
  const name = createHash('sha256').update(`${listing.method} ${listing.url}\n${body}`).digest('hex');
  const named = { name, shop: url, tool: operationId };
  await adoptOldPayment(stateDir, { ...named, url: listing.url, body, keypair }, purse);
  const http = overHttp(requestOf(listing, body));
  const call: Call<ServerAnswer> = {
    ...named,
    ...http,
    signal: new AbortController().signal,
    send: (payment, withinMs) => withProgress(listing, () => http.send(payment, withinMs)),
    onPrice(amount) {
      note('Price', `${toDecimal(amount)} USDC`, { priceUsdc: toDecimal(amount) });
      note('Payer', signer.address, { payer: signer.address });
    },
    onKept(_payment, resumed) {
      if (resumed) tell('Continuing with a payment that was signed earlier for this call.');
      money = `The payment is saved in ${purse.folder}. Run the same command again to get the answer without paying twice.`;
    },
    onWait: (error, waitMs) =>
      tell(
        `Waiting: ${withoutAdvice(error)} Sending the same payment again in ${Math.ceil(waitMs / 1000)} s.`,
      ),
    deliver: answer => show(order, answer),
  };
  end(order, await new Buyer(wallet).buy(call));
}

/** Reports the outcome of a purchase without an answer. */
function end(order: Order, outcome: Outcome<ServerAnswer>): void {
  const { kind, answer } = outcome;
  if (kind === 'answered') return;
  if (kind === 'unpriced') return show(order, answer);
  if (kind === 'unpaid') throw new BuyFault(outcome.error);
  if (kind === 'closed')
    throw new BuyFault(`${outcome.error}\nRunning the same command again is a new purchase.`);
  const charged = answer && receiptOf(answer)?.success ? 'was charged and is kept' : 'is kept';
  const next = `The payment ${charged}: run the same command again to continue without paying twice.`;
  const waited = `No answer within ${order.timeoutMs / 1000} s: ${withoutAdvice(outcome.error)}`;
  if (outcome.waiting) throw new BuyFault(`${waited}\n${next}`);
  throw new BuyFault(answer ? failure(answer, next) : `${sentence(outcome.error)}\n${next}`);
}

function failure(answer: ServerAnswer, next: string): string {
  const error = errorOf(answer);
  return answer.status === 400
    ? `The server rejected the call: ${withMoney(error)} Correct it and run the command again.`
    : `The server answered ${answer.status}: ${error} ${next}`;
}

/** If a call takes more than two seconds, shows on a terminal how many seconds have passed, and what it is waiting for. */
async function withProgress<T>({ upfront }: Listing, task: () => Promise<T>): Promise<T> {
  if (report || !process.stderr.isTTY) return task();
  const startedAt = Date.now();
  const what = upfront ? 'paid before the work, which can take minutes' : 'for the answer';
  const timer = setInterval(() => {
    const seconds = Math.round((Date.now() - startedAt) / 1000);
    if (seconds >= 2)
      replaceLine(`Waiting: ${what}; ${seconds} s (Ctrl-C keeps the payment for the next try)`);
  }, 1000);
  try {
    return await task();
  } finally {
    clearInterval(timer);
    replaceLine('');
  }
}

function show(order: Order, answer: ServerAnswer): void {
  const receipt = receiptOf(answer);
  if (receipt?.success)
    note('Receipt', receipt.transaction || '(none)', { receipt: receipt.transaction || null });
  if (!isSoldStatus(answer.status)) throw new BuyFault(failure(answer, 'Nothing was paid.'));
  const type = answer.headers.get('content-type') ?? '';
  if (report) report.contentType = type;
  if (answer.body.length === 0)
    return note('Answer', `${answer.status}, without content`, { status: answer.status });
  const json = /[/+]json(;|$)/.test(type) && parseJson(answer.body) !== undefined;
  if (json || type.startsWith('text/')) print(answer.body.toString('utf8'), json);
  else save(order, answer.body, type);
}

function print(text: string, json: boolean): void {
  if (report) {
    report.answer = json ? JSON.parse(text) : text;
    return;
  }
  const shown = json && process.stdout.isTTY ? JSON.stringify(JSON.parse(text), null, 2) : text;
  writeData(`${shown}\n`);
}

function save({ out, operationId }: Order, body: Buffer, type: string): void {
  const time = new Date().toISOString().replace(/[:.]/g, '-');
  const name = out ?? fileNameOf(`${operationId}-${time}`, type);
  const file = resolve(callersFolder, name);
  try {
    writeFileSync(file, body);
  } catch (error) {
    throw new BuyFault(
      `The answer could not be saved: ${reasonOf(error)}. The payment is kept: run the same command with another --out; it does not pay twice.`,
    );
  }
  const { length: bytes } = body;
  note(type.startsWith('audio/') ? 'Audio' : 'File', `${file} (${bytes} bytes)`, { file, bytes });
}

/** Removes the server's advice on what to do next, because this command follows it automatically. */
function withoutAdvice(error: string): string {
  return error
    .replace(/(: |\. )?(You were not charged; )?(send|correct)[^.]*\.?$/i, '.')
    .replace(/([^.])$/, '$1.');
}

/** The error without its advice, but with its statement about the charge, because only the server knows whether this payment was charged before. */
function withMoney(error: string): string {
  const said = withoutAdvice(error);
  const isLost = /not charged/i.test(error) && !/not charged/i.test(said);
  return isLost ? `${said} You were not charged.` : said;
}

async function run(order: Order): Promise<void> {
  const { operationId, url } = order;
  note('Calling', `${operationId} at ${url}, paying at most ${toDecimal(order.maxPrice)} USDC`, {
    operationId,
    url,
  });
  await buy(order);
}

process.once('SIGINT', interrupted);
try {
  const order = readOrder();
  if (!order) writeOut(`${USAGE}\n`);
  else await run(order);
} catch (error) {
  const message =
    error instanceof BuyFault || error instanceof PurseFault
      ? error.message
      : `The call failed: ${reasonOf(error)}`;
  tell(message);
  if (report) report.error = message;
  process.exitCode = 1;
}
if (report) writeOut(`${JSON.stringify(report)}\n`);
