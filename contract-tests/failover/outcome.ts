import { PublicKey, type Keypair } from '@solana/web3.js';
import { compareWithChain } from '../../src/cli/ledger/audit.js';
import { openLedgerReader, type Payment } from '../../src/ledger/store.js';
import { until } from '../support/faults.js';
import type { TestChain } from '../support/test-chain.js';
import type { Buyers } from './buyers.js';

/** The lease of a claim, plus time in which further primaries may be lost. */
const RESOLVED_MS = 300_000;
const SETTLED = ['delivered', 'owed', 'refunded'];
/** Longer than a settlement takes to become final. */
const LATER_MS = 300_000;

type Reader = Awaited<ReturnType<typeof openLedgerReader>>;

/** A reader that opens a connection for each read, because primaries are lost. */
export async function withReader<T>(url: string, work: (reader: Reader) => Promise<T>): Promise<T> {
  const reader = await openLedgerReader({ url });
  return work(reader).finally(() => reader.close());
}

/** What a run lost or duplicated, and where books and chain differ, once none of its payments is in progress. */
export async function faultsOf(
  chain: TestChain,
  ledger: string,
  payers: Keypair[],
  { purchases }: Buyers,
): Promise<string[]> {
  let listed: Payment[] = [];
  const isResolved = async (): Promise<boolean> => {
    listed = await withReader(ledger, reader => rowsOf(reader, payers));
    return listed.every(({ state }) => state !== 'settling');
  };
  // Another primary may be lost meanwhile.
  await until('nothing is unresolved', () => isResolved().catch(() => false), RESOLVED_MS);
  const rows = new Map(listed.map(row => [row.id, row]));
  const landed = chain.landed(payers);
  const faults: string[] = [...differences(rows, landed)];
  for (const { text, payments, answered } of purchases) {
    const paid = payments.filter(id => landed.has(id));
    const states = paid.map(id => rows.get(id)?.state);
    if (paid.length > 1) faults.push(`${text} was paid ${paid.length} times`);
    if (answered !== undefined && !states.includes('delivered'))
      faults.push(`${text} was answered and is ${states.join() || 'unpaid'}`);
  }
  return faults;
}

async function rowsOf(reader: Reader, payers: Keypair[]): Promise<Payment[]> {
  const listed = payers.map(({ publicKey }) => reader.list({ payer: publicKey.toBase58() }));
  return (await Promise.all(listed)).flat();
}

function* differences(rows: Map<string, Payment>, landed: Map<string, number>): Generator<string> {
  for (const [id, times] of landed) {
    const state = rows.get(id)?.state ?? 'unknown';
    if (times > 1) yield `${id} landed ${times} times`;
    if (!SETTLED.includes(state)) yield `${id} landed and is ${state}`;
  }
  for (const { id, state, aliasOf } of rows.values())
    if (SETTLED.includes(state) && aliasOf === null && !landed.has(id))
      yield `${id} is ${state} and never landed`;
}

/** The result of `coinslot ledger verify` once everything is final, and whether the receiver's balance equals the books. */
export async function auditOf(
  chain: TestChain,
  reader: Reader,
): Promise<{ transfers: number; faults: string[] }> {
  const sold = chain.sandbox.chain.slot('processed');
  await until('all is final', () => chain.sandbox.chain.slot('finalized') > sold);
  const options = { rpcUrls: [chain.sandbox.rpc.url], maxTransactions: 100_000, now: Date.now() + LATER_MS };
  const { tally } = await compareWithChain(reader, await reader.identity(), options);
  const faults = tally.differences.map(({ kind, payment, detail }) => `${kind} ${payment}: ${detail}`);
  const { delivered, owed } = await reader.counts();
  const account = chain.tokenAccount(new PublicKey(chain.terms.payTo));
  const { value } = await chain.connection.getTokenAccountBalance(account, 'processed');
  const booked = delivered.amount + owed.amount;
  if (BigInt(value.amount) !== booked)
    faults.push(`the receiver has ${value.amount}, the books say ${booked}`);
  return { transfers: tally.transfers, faults };
}
