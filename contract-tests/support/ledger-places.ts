import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { ClaimRequest, Ledger, Refund } from '../../src/ledger/store.js';

const database = process.env['TEST_DATABASE_URL'];
const pooler = process.env['TEST_POOLER_URL'];
export const isBehindPooler = pooler !== undefined;

/**
 * The payer of most payments. Each process has its own, because PostgreSQL locks a payer for the whole database, and other processes
 * run tests in other schemas of it, some of which hold a payer's lock for longer than a caller stays alive.
 */
export const PAYER = `Payer111 of ${process.pid}`;

/** A place where a test can open ledgers: a file, or a schema of a database. */
export type LedgerPlace = { url: string; remove: () => Promise<void> };

export async function sqlitePlace(): Promise<LedgerPlace> {
  const folder = await mkdtemp(join(tmpdir(), 'coinslot-ledger-'));
  return { url: `file:${folder}/ledger.db`, remove: () => rm(folder, { recursive: true, force: true }) };
}

/**
 * Makes a schema, whose name is also the application_name of its sessions, because tests in other processes use the
 * same database (THESE_SESSIONS).
 */
export async function postgresPlace(base: string): Promise<LedgerPlace> {
  const schema = `t${randomUUID().replaceAll('-', '')}`;
  const run = async (command: string): Promise<void> => {
    const client = new pg.Client({ connectionString: base });
    await client.connect();
    await client.query(command);
    await client.end();
  };
  await run(`create schema ${schema}`);
  if (isBehindPooler)
    await run(`create role ${schema} superuser login; alter role ${schema} set search_path = ${schema}`);
  const url = new URL(base);
  url.searchParams.set('options', `-csearch_path=${schema}`);
  url.searchParams.set('application_name', schema);
  const ofRole = isBehindPooler ? `; drop owned by ${schema}; drop role ${schema}` : '';
  return { url: url.href, remove: () => run(`drop schema ${schema} cascade${ofRole}`) };
}

/** How a server opens the ledger of a place: through the pooler if the tests run behind one (`make test-pooler`). */
export function forServer(url: string): { url: string; directUrl?: string } {
  if (pooler === undefined || !url.startsWith('postgres:')) return { url };
  const pooled = new URL(pooler);
  const name = new URL(url).searchParams.get('application_name') ?? '';
  pooled.username = name;
  pooled.searchParams.set('application_name', name);
  return { url: pooled.href, directUrl: url };
}

/** The settings with which a server opens the ledger at a place. */
export function databaseSettings(place: LedgerPlace): Record<string, string> {
  const { url, directUrl } = forServer(place.url);
  return { DATABASE_URL: url, ...(directUrl === undefined ? {} : { DATABASE_DIRECT_URL: directUrl }) };
}

/** A condition on pg_stat_activity that selects the sessions of the same place as the one that runs the query. */
export const THESE_SESSIONS = `application_name = current_setting('application_name')`;

/** The engines to test on; PostgreSQL only if TEST_DATABASE_URL names a server. */
export const PLACES: { name: string; make?: () => Promise<LedgerPlace> }[] = [
  { name: 'SQLite', make: sqlitePlace },
  { name: 'PostgreSQL', ...(database ? { make: () => postgresPlace(database) } : {}) },
];

/** Runs a suite on SQLite and on PostgreSQL; without a PostgreSQL server, its tests on PostgreSQL are skipped. */
export function onEachEngine(
  title: string,
  suite: (make: () => Promise<LedgerPlace>, engine: string) => void,
): void {
  for (const { name, make } of PLACES) {
    if (make) describe(`${title} on ${name}`, () => suite(make, name));
    else
      describe.skip(`${title} on ${name} (set TEST_DATABASE_URL=postgres://… to run these)`, () =>
        suite(sqlitePlace, name));
  }
}

export function claimRequest(overrides: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    id: randomBytes(32).toString('hex'),
    operation: 'brandFeedback',
    requestHash: 'a'.repeat(64),
    payer: PAYER,
    amount: 500_000n,
    network: 'solana:test',
    method: 'x402-v2',
    evidence: 'AAAA',
    flow: 'upfront',
    request: '{"brand":"Acme"}',
    after: 1_000,
    position: 900,
    leaseMs: 60_000,
    limits: { maxUnsettledPerPayer: 100_000, maxUnsettledAmountPerPayer: 10n ** 17n, maxRuns: 3 },
    ...overrides,
  };
}

/** A refund as it would be found on the chain. Each call returns one with a new transaction. */
export function aRefund(overrides: Partial<Refund> = {}): Refund {
  const signature = `refund-${randomUUID()}`;
  return { signature, amount: 500_000n, slot: 2_000, refundedAt: Date.now(), ...overrides };
}

/** Brings a new payment into the given state. @returns its id */
export async function paymentIn(
  ledger: Ledger,
  state: 'claimed' | 'settling' | 'owed' | 'delivered' | 'released',
  overrides: Partial<ClaimRequest> & { settlement?: string } = {},
): Promise<string> {
  const { settlement = 'sig', ...rest } = overrides;
  const request = claimRequest(rest);
  const claimed = await ledger.claim(request);
  if (claimed.kind !== 'claimed') throw new Error(`expected a claim, got ${claimed.kind}`);
  const { claim, caller } = claimed;
  const { id } = request;
  if (state === 'claimed') return id;
  if (state === 'delivered')
    await ledger.saveAnswer(id, claim, {
      status: 200,
      headers: {},
      body: Buffer.from('{"secret":"answer body"}'),
    });
  await ledger.settle(id, claim, { newestLocal: 1 });
  if (state === 'owed') await ledger.owe(id, claim, { settlement });
  if (state === 'delivered')
    await ledger.deliver(id, claim, { settlement, answerExpiresAt: Date.now() + 600_000 });
  if (state === 'released') await ledger.release(id, claim, 'refused');
  await ledger.removeCaller(caller);
  await ledger.extendLease(id, claim, 0);
  return id;
}
