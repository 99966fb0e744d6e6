import { execute } from './engine.js';
import type { Dialect, TransactionBody } from './engine.js';
import { LedgerFault } from './fault.js';
import { META_TABLE, MIGRATIONS, OLDEST_BESIDE, SCHEMA_VERSION } from './migrations.js';
import { deleteNotes, ownMeta, setMeta, tableExists } from './queries/meta.js';
import { servers, serversBehind } from './queries/server-presence.js';
import { raw, sql } from './sql.js';

/** The receiver and the network for which a server is configured. */
export type ServerIdentity = { payTo: string; network: string };

/** An arbitrary number that must be the same in all versions of this program. */
export const MIGRATION_LOCK = 8402;

/**
 * Brings the schema up to date in one transaction. Idempotent. Until the first sale, starting on another network changes the ledger's
 * network.
 * @returns the ledger's own keys
 * @throws LedgerFault `open` if the ledger is newer than this program, retired, another receiver's, or in use by servers of an earlier
 * version
 */
export function* migrate(dialect: Dialect, identity: ServerIdentity): TransactionBody<Map<string, string>> {
  if (dialect.concurrentWriters) yield* execute(sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`);
  yield* execute(raw(META_TABLE));
  const meta = yield* readMeta();
  const version = checkVersion(meta);
  refuseMoved(meta);
  if (version < SCHEMA_VERSION) yield* upgrade(dialect, version, meta.get('network') ?? identity.network);
  const upgraded = yield* readMeta();
  if (upgraded.get('network') !== identity.network && (yield* isFree(dialect, upgraded)))
    return yield* changeNetwork(identity.network);
  checkIdentity(upgraded, identity);
  return upgraded;
}

/** Whether the ledger has sold nothing yet and no other server uses it. */
function* isFree(dialect: Dialect, meta: ReadonlyMap<string, string>): TransactionBody<boolean> {
  if (meta.has('pay_to')) return false;
  if (!dialect.concurrentWriters) return true;
  const [present] = yield* execute(servers());
  return present !== undefined && present.servers <= 1;
}

/** Assigns a ledger without sales to another network. Deletes its notes, such as the block height, which are wrong for that network. */
function* changeNetwork(network: string): TransactionBody<Map<string, string>> {
  yield* execute(setMeta({ key: 'network', value: network }));
  yield* execute(deleteNotes());
  const meta = yield* readMeta();
  if (!meta.has('pay_to')) return meta;
  throw new LedgerFault(
    'open',
    'Another server has just made the first sale of this ledger, maybe on another network. Nothing was changed. Start this server again.',
  );
}

function* upgrade(dialect: Dialect, version: number, network: string): TransactionBody<void> {
  if (version > 0 && dialect.concurrentWriters) yield* refuseServersBehind();
  if (dialect.concurrentWriters) {
    yield* execute(raw('set local statement_timeout = 0'));
    // While the migration waits to lock a table, all other statements on that table queue behind it.
    yield* execute(raw("set local lock_timeout = '5s'"));
  }
  for (const steps of MIGRATIONS.slice(version))
    for (const step of steps(dialect)) yield* execute({ ...raw(step), slow: true });
  yield* execute(setMeta({ key: 'schema', value: String(SCHEMA_VERSION) }));
  yield* execute(setMeta({ key: 'least', value: String(OLDEST_BESIDE) }));
  yield* execute(setMeta({ key: 'network', value: network }));
}

/** Servers older than `OLDEST_BESIDE` would write rows that this version can't read. Those that start later reject the new schema themselves. */
function* refuseServersBehind(): TransactionBody<void> {
  const [behind] = yield* execute(serversBehind({ least: OLDEST_BESIDE }));
  if (!behind || behind.servers === 0) return;
  throw new LedgerFault(
    'open',
    `The ledger has an older schema, and ${behind.servers} running server(s) of an earlier version use it. Stop them, then start ` +
      'this one, which will bring the ledger up to date. Nothing was changed.',
  );
}

/**
 * Checks that a ledger can be read by this program, without changing it.
 * @throws LedgerFault `open`
 */
export function* checkReadable(): TransactionBody<void> {
  const meta = yield* readMeta();
  if (checkVersion(meta) < SCHEMA_VERSION)
    throw new LedgerFault(
      'open',
      'The ledger has an older schema. Start the server once to bring it up to date.',
    );
}

/**
 * Inspects a ledger as a starting server would, without changing anything.
 * @returns `none`: there is no ledger yet; `older`: it has an older schema, which a starting server would migrate;
 * otherwise the ledger's own keys
 * @throws LedgerFault `open` if the server would refuse to start
 */
export function* inspect(
  dialect: Dialect,
  identity: ServerIdentity,
): TransactionBody<'none' | 'older' | Map<string, string>> {
  if ((yield* execute(tableExists(dialect, 'meta'))).length === 0) return 'none';
  const meta = yield* readMeta();
  const version = checkVersion(meta);
  refuseMoved(meta);
  if (version === 0) return 'none';
  if (version < SCHEMA_VERSION) return 'older';
  refuseRestored(meta);
  checkIdentity(meta, identity);
  return meta;
}

/**
 * Payments made after the backup are missing from a restored ledger, so their buyers would be asked to pay again.
 * @throws LedgerFault `open` if the ledger was restored and has not been compared with the chain since
 */
export function refuseRestored(meta: ReadonlyMap<string, string>): void {
  const restored = meta.get('restored');
  if (restored === undefined) return;
  throw new LedgerFault(
    'open',
    `This ledger was restored at ${restored} and may lack payments that were made after its backup. Add them from the chain first: ` +
      'npm run ledger -- adopt. Then start the server.',
  );
}

/** Reads the ledger's own entries in the table `meta`; the others are notes. */
export function* readMeta(): TransactionBody<Map<string, string>> {
  const rows = yield* execute(ownMeta());
  return new Map(rows.map(row => [row.key, row.value]));
}

/** A ledger with a newer schema is accepted if its entry `least` says that this version can use it. */
function checkVersion(meta: ReadonlyMap<string, string>): number {
  const text = meta.get('schema') ?? '0';
  const version = Number(text);
  const least = Number(meta.get('least') ?? text);
  if (Number.isSafeInteger(version) && Math.min(version, least) <= SCHEMA_VERSION) return version;
  throw new LedgerFault(
    'open',
    `The ledger has schema version ${text}; this program supports versions up to ${SCHEMA_VERSION}. Run the newer program. The only way ` +
      'back to this one is a backup from before the upgrade. Nothing was changed.',
  );
}

/** @throws LedgerFault `open` if the ledger was moved, or is the target of an interrupted move */
function refuseMoved(meta: ReadonlyMap<string, string>): void {
  const retired = meta.get('retired');
  if (retired !== undefined)
    throw new LedgerFault('open', `This ledger is retired: it was copied to ${retired}. Use that one.`);
  const arriving = meta.get('arriving');
  if (arriving !== undefined)
    throw new LedgerFault(
      'open',
      `The move of ${arriving} into this ledger was not finished. Run it again, with DATABASE_URL set to that ledger: npm run ledger -- move --to <this ledger>.`,
    );
}

/** @throws LedgerFault `open` if the ledger has sales for another receiver, or belongs to another network */
function checkIdentity(meta: ReadonlyMap<string, string>, { payTo, network }: ServerIdentity): void {
  const bound = meta.get('pay_to');
  const itsNetwork = meta.get('network') ?? network;
  if ((bound ?? payTo) === payTo && itsNetwork === network) return;
  const procedure =
    itsNetwork === network
      ? ` To change the receiver and keep owed payments, stop every server and run: npm run ledger -- receiver ${payTo}`
      : '';
  throw new LedgerFault(
    'open',
    `This ledger belongs to ${bound === undefined ? '' : `PAY_TO ${bound} on `}${itsNetwork}; the server is configured for ${payTo} on ` +
      `${network}. Correct PAY_TO and NETWORK, or set STATE_DIR or DATABASE_URL to another ledger.${procedure}`,
  );
}
