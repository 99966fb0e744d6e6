import '../../rails/solana/silence-bigint-warning.js';
import { readFileSync } from 'node:fs';
import { join, resolve as resolvePath } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { LedgerFault, messageOf } from '../../ledger/fault.js';
import { openLedgerReader } from '../../ledger/store.js';
import { csvLines, startOfDay } from './csv.js';
import type { AuditOptions } from './audit.js';
import { answerKeys } from './change-keys.js';
import { backUp, restore } from './backup.js';
import { height } from './chain-height.js';
import { commandLine } from '../../config/command-line.js';
import { readFeePayer, type FeePayerConfig } from '../../config/facilitator-settings.js';
import { GivenFault, GivenValues } from '../../config/given-values.js';
import { ConfigFault, SettingReader } from '../../config/setting-reader.js';
import { plain, table, toJson } from './print.js';
import type { Report } from './print.js';
import { ownWalletsIn } from './own-wallets.js';
import { list, owed, show, summary } from './reports.js';
import { rejectOrder, remove } from './remove.js';
import { retry } from './retry.js';
import { throughReplica } from './through-replica.js';
import { explorerOf, EXPLORERS, type Explorer } from '../../rails/solana/explorer.js';
import { OperatorFault } from '../../operator/operator-fault.js';
import type { ReportSource } from '../../operator/find-payment.js';
import { writeData, writeErr } from '../terminal.js';

const USAGE = `Usage: ${commandLine('ledger')} <command> [options]

  summary                       revenue per operation and UTC day, and payments by state
  list                          the newest payments
  list <text>                   the payments that match <text> (see show)
      --state STATE             claimed, settling, released, delivered, owed or refunded
      --payer ADDRESS  --operation ID  --limit N   (default 50, at most 1000)
  show <payment>                all data of one payment except its answer; <payment> is its id or at least the first
                                8 digits of it, the transaction that paid or refunded it, a refund, the payer, the
                                payment-identifier or the X-Request-Id. If several match, they are listed
      --transaction             include the signed transaction, while the ledger still has it
  owed                          paid calls without an answer: payer, amount, since when, and why
  export                        payments as CSV on stdout
      --from DAY  --to DAY      UTC days like 2026-01-31, both included
      --format movements        instead, one line per movement of money: sales, refunds, network fees; or
                                json, hledger, beancount, stripe
      --rates FILE              a file or URL with lines like 2026-01-31,USDC,EUR,0.86: adds the value in that currency
  statement <month>             the books of a month like 2026-01: balance, sales, refunds, fees, balance, compared
                                with the receiver's balance on chain
      --rates FILE  --no-chain  as above; reads only the ledger
      --limit N                 list at most N transactions of the receiver (default 1000000)
  retry <payment>               starts another attempt at a failed order, even after its last attempt; a running
                                server works on it within seconds
  reject <payment>              ends the work on an owed order for good and deletes its request; then refund it
      --reason TEXT             the reason that its buyer sees
  remove <payment or payer>     deletes request and answer, for a payer also its address; records of payments and refunds stay
  refund <payment>              reserves a refund of an owed or delivered payment and prints the link that pays it
                                (Solana Pay): open it with the wallet that pays. Running it again prints the same link
      --amount USDC             a part of the payment; default: all of it not yet refunded
      --reason TEXT             stored with the refund
      --keypair FILE            send it once with this wallet's key (a file of the Solana CLI) and record it; after a
                                crash, run it again: it sends the same transaction. FEE_PAYER_KEYPAIR pays the fee,
                                or else the wallet
      --wait                    wait up to ten minutes until it is paid; a running server notices it, too
      --cancel                  cancel it. Anyone with the link can still pay it, and that is recorded, too
      --tx SIG                  records that you refunded a payment or a part of it with your own
                                transaction SIG, if the chain shows the refund at finalized (read through
                                SOLANA_RPC_URL or the sandbox)
  receiver                      the address that receives the payments of this ledger, and earlier ones
  receiver <address>            makes another address the receiver; owed payments are kept and listed
  move --to TARGET              moves the ledger, for instance to PostgreSQL, and retires the old one. Put a URL with a
                                password into a file and its path into MOVE_TO_FILE, instead of --to
      --from SOURCE             a file or URL (default: the ledger of this configuration)
  verify                        compares the ledger with the chain, through SOLANA_RPC_URL or the sandbox
      --limit N                 number of transactions to check (default 10000, at most 100000)
  adopt                         adds payments that verify finds on chain but not as paid in the ledger; they are then owed
      --limit N  --from DAY     as above; nothing before this UTC day
  backup <file>                 copies an SQLite ledger, even while a server runs; overwrites no file
  restore <file>                replaces a lost ledger with a backup; run adopt afterwards
  answer-keys --change          changes the secret of answer keys while servers run
      --leaked                  earlier keys stop working within half a minute instead of after 30 days
  height                        the greatest block height that any server of this ledger has seen
      --reset                   forget it, if an RPC server reported a wrong height and sales have stopped

  --json                        JSON output (all commands except export)
  --help                        print this text

With OWN_WALLETS, summary and export show sales to your own wallets separately. With DATABASE_READ_URL, summary, list,
export, statement and verify read a replica. The ledger is DATABASE_URL, or else ledger.db in STATE_DIR (.coinslot).
All commands except move, restore and receiver <address> can run while a server is running.
Exit status 0: done; 1: not done, or verify found differences.`;

const DEFAULT_AUDITED = 10_000;
const MAX_STATED = 1_000_000;

/** npm changes to the package's folder, but relative paths refer to the caller's folder. */
const callersFolder = process.env.INIT_CWD ?? process.cwd();
const given = new GivenValues(process.env);
const stateDir = (): string => resolvePath(given.of('STATE_DIR') ?? '.coinslot');
/** Commands connect to the database directly, not through a pooler. */
const databaseUrl = (): string =>
  given.of('DATABASE_DIRECT_URL') ?? given.of('DATABASE_URL') ?? `file:${stateDir()}/ledger.db`;
const ownWallets = (): string[] => ownWalletsIn(given);

/** The explorer that `show` links transactions to. A sandbox's ledger is also marked as devnet, so NETWORK decides. */
function explorerHere(): Explorer | undefined {
  const wanted = given.of('EXPLORER') ?? 'solscan';
  const network = given.of('NETWORK');
  const name = EXPLORERS.find(each => each === wanted) ?? 'none';
  return network === 'mainnet' || network === 'devnet' ? explorerOf(name, network) : undefined;
}

const [TEXT, SWITCH] = [{ type: 'string' }, { type: 'boolean' }] as const;
const OPTIONS = {
  state: TEXT,
  payer: TEXT,
  operation: TEXT,
  limit: TEXT,
  transaction: SWITCH,
  from: TEXT,
  to: TEXT,
  tx: TEXT,
  amount: TEXT,
  reason: TEXT,
  format: TEXT,
  rates: TEXT,
  'no-chain': SWITCH,
  wait: SWITCH,
  cancel: SWITCH,
  keypair: TEXT,
  reset: SWITCH,
  change: SWITCH,
  leaked: SWITCH,
  json: SWITCH,
  help: { type: 'boolean', short: 'h' },
} as const;

type OpenLedger = Awaited<ReturnType<typeof openLedgerReader>>;
type Values = ReturnType<typeof parse>['values'];
type Option = keyof typeof OPTIONS;

type Command = {
  options: readonly Option[];
  /** Whether the command takes a payment id, an address or a file. */
  named?: boolean;
  run: (values: Values, name: string | undefined) => Promise<Report | undefined>;
};

const COMMANDS: Record<string, Command> = {
  summary: { options: [], run: () => withReports(reader => summary(reader, ownWallets())) },
  list: {
    options: ['state', 'payer', 'operation', 'limit'],
    named: true,
    run: (values, text) => withReports(reader => list(reader, values, text)),
  },
  show: {
    options: ['transaction'],
    named: true,
    run: (values, name) =>
      withBooks(reader => show(reader, name, values.transaction === true, explorerHere())),
  },
  owed: { options: [], run: () => withBooks(reader => owed(reader, Date.now())) },
  export: {
    options: ['from', 'to', 'format', 'rates'],
    run: values => withReports(reader => writeExport(reader, values)),
  },
  statement: {
    options: ['rates', 'no-chain', 'limit'],
    named: true,
    run: (values, month) => withReports(reader => statement(reader, month, values)),
  },
  refund: {
    options: ['tx', 'amount', 'reason', 'wait', 'cancel', 'keypair'],
    named: true,
    run: (values, name) => withBooks(reader => refund(reader, name, values)),
  },
  reject: {
    options: ['reason'],
    named: true,
    run: (values, name) => withBooks(reader => rejectOrder(reader, name, values.reason)),
  },
  remove: { options: [], named: true, run: (_, name) => withBooks(reader => remove(reader, name)) },
  retry: { options: [], named: true, run: (_, name) => withBooks(reader => retry(reader, name)) },
  receiver: { options: [], named: true, run: (_, address) => receiver(address) },
  move: { options: ['from', 'to'], run: move },
  copy: { options: ['from', 'to'], run: renamed },
  'answer-keys': {
    options: ['change', 'leaked'],
    run: values => withBooks(reader => answerKeys(reader, values)),
  },
  height: { options: ['reset'], run: values => withBooks(reader => height(reader, values.reset === true)) },
  verify: { options: ['limit'], run: values => withReports(reader => verify(reader, values.limit)) },
  adopt: { options: ['limit', 'from'], run: values => withBooks(reader => adopt(reader, values)) },
  backup: { options: [], named: true, run: (_, file) => backUp(databaseUrl(), inCallersFolder(file)) },
  restore: { options: [], named: true, run: (_, file) => restore(databaseUrl(), inCallersFolder(file)) },
};

function parse() {
  try {
    return parseArgs({ options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw new OperatorFault(`${messageOf(error)}\n\n${USAGE}`);
  }
}

async function withBooks<T>(work: (reader: OpenLedger) => Promise<T>): Promise<T> {
  const reader = await openLedgerReader({ url: databaseUrl() });
  try {
    const { retired } = await reader.identity();
    if (retired !== undefined)
      writeErr(`This ledger is retired and out of date: it was moved to ${plain(retired)}.\n`);
    return await work(reader);
  } finally {
    await reader.close();
  }
}

const withReports = <T>(work: (reader: ReportSource) => Promise<T>): Promise<T> =>
  withBooks(reader => throughReplica(reader, given.of('DATABASE_READ_URL'), work));

/** If the reader of the pipe closes it, as `head` does, the export ends without an error. */
async function writeExport(reader: ReportSource, { from, to, format, rates }: Values): Promise<undefined> {
  const range = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
  if (format === undefined && rates !== undefined)
    throw new OperatorFault('--rates needs --format: without it, the export has no column for values.');
  const text =
    format === undefined
      ? csvLines(reader, range, new Set(ownWallets()))
      : (await import('./export-movements.js')).exportedMovements(reader, {
          ...range,
          format,
          rates: inFolder(rates),
        });
  for await (const piece of text) if (!(await write(piece))) break;
  return undefined;
}

async function statement(
  reader: ReportSource,
  month: string | undefined,
  { rates, limit, 'no-chain': isOffline = false }: Values,
): Promise<Report> {
  const { statement: make } = await import('./month-statement.js');
  const most = atMost(limit, MAX_STATED, MAX_STATED);
  return make(reader, month, {
    rates: inFolder(rates),
    chain: isOffline ? undefined : { rpcUrls: rpcUrls(), most },
  });
}

/** @returns false if the pipe is closed */
function write(text: string): Promise<boolean> {
  return new Promise((done, fail) => {
    writeData(text, error => {
      if (!error) done(true);
      else if ((error as NodeJS.ErrnoException).code === 'EPIPE') done(false);
      else fail(error);
    });
  });
}

async function refund(reader: ReportSource, name: string | undefined, values: Values): Promise<Report> {
  const refunds = await import('./refund.js');
  const feePayer = (): FeePayerConfig => {
    const read = new SettingReader(process.env);
    const config = readFeePayer(read);
    read.finish();
    return config;
  };
  return refunds.refund(reader, name, values, { rpcUrls, feePayer, folder: callersFolder });
}

async function receiver(address: string | undefined): Promise<Report> {
  const { setReceiver, showReceiver } = await import('./receiver.js');
  return address === undefined ? withBooks(showReceiver) : setReceiver(databaseUrl(), address, withBooks);
}

async function renamed(): Promise<never> {
  throw new OperatorFault(
    `The command copy is now called move: ${commandLine('ledger')} move --to TARGET. Nothing was changed.`,
  );
}

async function move({ from, to: named }: Values): Promise<Report> {
  const to = named ?? given.of('MOVE_TO');
  if (to === undefined)
    throw new OperatorFault(
      'Say where to move the ledger: --to with a postgres:// URL or a file, or MOVE_TO_FILE with a file that holds the URL.',
    );
  if (named !== undefined && /^\w+:\/\/[^:@/?]*:[^@/?]+@/.test(named))
    writeErr(
      '--to has a password, which every user of this machine can read in the list of processes: name a file with the URL in MOVE_TO_FILE.\n',
    );
  const { moveLedger } = await import('../../ledger/move-ledger.js');
  const moved = await moveLedger({
    from: from === undefined ? databaseUrl() : ledgerUrl(from),
    to: ledgerUrl(to),
  });
  const { successor, tables, resumed } = moved;
  return {
    data: moved,
    lines: [
      ...table(
        ['table', 'rows', 'hash'],
        tables.map(each => [each.table, each.rows, each.hash.slice(0, 16)]),
      ),
      '',
      resumed ? 'An interrupted move was verified and completed.' : 'Every row was compared with its copy.',
      `The old ledger is retired. Start the servers with DATABASE_URL=${successor} (and its password, if it has one).`,
    ],
  };
}

/** A URL as it is, or the path of a file relative to the caller's folder. */
function inFolder(source: string | undefined): string | undefined {
  return source !== undefined && /^https?:/.test(source) ? source : inCallersFolder(source);
}

/** @returns undefined if no file was given */
function inCallersFolder(file: string | undefined): string | undefined {
  return file === undefined ? undefined : resolvePath(callersFolder, file);
}

/** Accepts a URL or the path of a file. */
function ledgerUrl(text: string): string {
  if (/^postgres(ql)?:\/\//.test(text)) return text;
  const path = text.startsWith('file://') ? fileURLToPath(text) : text.replace(/^file:/, '');
  return `file:${resolvePath(callersFolder, path)}`;
}

// Loaded here because few commands need the chain's libraries, which are slow to load.
async function verify(reader: ReportSource, limit: string | undefined): Promise<Report> {
  const { audit, MAX_TRANSACTIONS } = await import('./audit.js');
  return audit(reader, auditOptions(limit, MAX_TRANSACTIONS));
}

async function adopt(reader: OpenLedger, { limit, from }: Values): Promise<Report> {
  const { MAX_TRANSACTIONS } = await import('./audit.js');
  const { adopt: takeIn } = await import('./adopt.js');
  return takeIn(reader, {
    ...auditOptions(limit, MAX_TRANSACTIONS),
    payTo: given.of('PAY_TO'),
    from: from === undefined ? 0 : startOfDay('--from', from),
    own: ownWallets(),
  });
}

function auditOptions(limit: string | undefined, most: number): AuditOptions {
  const maxTransactions = atMost(limit, DEFAULT_AUDITED, most);
  return { rpcUrls: rpcUrls(), maxTransactions, now: Date.now() };
}

function atMost(limit: string | undefined, fallback: number, most: number): number {
  const number = limit === undefined ? fallback : Number(limit);
  if (Number.isInteger(number) && number >= 1 && number <= most) return number;
  throw new OperatorFault(`--limit must be a whole number from 1 to ${most}.`);
}

function rpcUrls(): string[] {
  const urls = (given.of('SOLANA_RPC_URL') ?? sandboxRpc() ?? '').split(',').map(url => url.trim());
  if (urls.every(url => /^https?:\/\/./.test(url) && URL.canParse(url))) return urls;
  throw new OperatorFault(
    'Set SOLANA_RPC_URL to the http(s) URL of a Solana RPC server for the network of this ledger.',
  );
}

function sandboxRpc(): string | undefined {
  try {
    const info = JSON.parse(readFileSync(join(stateDir(), 'sandbox.json'), 'utf8')) as { rpcUrl?: unknown };
    return typeof info.rpcUrl === 'string' ? info.rpcUrl : undefined;
  } catch {
    return undefined;
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parse();
  const [name = '', payment, ...rest] = positionals;
  if (values.help) return void (await write(`${USAGE}\n`));
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command || rest.length > 0 || (payment !== undefined && !command.named))
    throw new OperatorFault(USAGE);
  const json = name === 'export' ? [] : ['json'];
  const stray = Object.keys(values).find(option => ![...command.options, ...json].includes(option));
  if (stray !== undefined) throw new OperatorFault(`${name} has no option --${stray}.\n\n${USAGE}`);
  const report = await command.run(values, payment);
  if (!report) return;
  await write(`${values.json ? toJson(report.data) : report.lines.join('\n')}\n`);
  if (report.ok === false) process.exitCode = 1;
}

// Each write reports its own error. Without this listener, the stream's error event would end the process first.
process.stdout.on('error', () => undefined);
try {
  await main();
} catch (error) {
  // Only messages are printed, because stack traces may contain URLs with credentials.
  const known = [OperatorFault, LedgerFault, GivenFault, ConfigFault].some(fault => error instanceof fault);
  const lines = messageOf(error).split('\n').map(plain).join('\n');
  writeErr(`${known ? '' : 'The command failed: '}${lines}\n`);
  process.exitCode = 1;
}
