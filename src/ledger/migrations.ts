import type { Compilable } from 'kysely';
import { sql } from './kysely.js';
import type { Kysely } from './kysely.js';
import type { Dialect } from './engine.js';
import type { Tables } from './schema.js';

type Db = Kysely<Tables>;
type Migration = (db: Db, dialect: Dialect) => Compilable[];

/** One entry per schema version, applied in order and never edited once released. */
export const MIGRATIONS: readonly Migration[] = [
  (db, dialect) => [...tables(db, dialect), ...orderTables(db), ...indexes(db)],
];

/** Holds the version, so it must be there before any migration. */
export function metaTable(db: Db): Compilable {
  return db.schema
    .createTable('meta')
    .ifNotExists()
    .addColumn('key', 'text', column => column.primaryKey())
    .addColumn('value', 'text', column => column.notNull());
}

// SQLite reads `bigint` as its own integer, so one spelling serves both engines.
function tables(db: Db, dialect: Dialect): Compilable[] {
  const payments = db.schema
    .createTable('payments')
    .addColumn('id', 'text', column => column.primaryKey())
    .addColumn('operation', 'text', column => column.notNull())
    .addColumn('request_hash', 'text', column => column.notNull())
    .addColumn('request', 'text')
    .addColumn('payer', 'text', column => column.notNull())
    .addColumn('amount', 'text', column => column.notNull())
    .addColumn('network', 'text', column => column.notNull())
    .addColumn('x402_version', 'bigint', column => column.notNull())
    .addColumn('signed_transaction', 'text', column => column.notNull())
    .addColumn('identifier', 'text')
    .addColumn('flow', 'text', column => column.notNull())
    .addColumn('state', 'text', column => column.notNull())
    .addColumn('claim', 'bigint', column => column.notNull())
    .addColumn('owner', 'text', column => column.notNull())
    .addColumn('lease_until', 'bigint', column => column.notNull())
    .addColumn('caller_until', 'bigint', column => column.notNull())
    .addColumn('runs', 'bigint', column => column.notNull())
    .addColumn('asks', 'bigint', column => column.notNull())
    .addColumn('claim_slot', 'bigint', column => column.notNull())
    .addColumn('claim_height', 'bigint', column => column.notNull())
    .addColumn('settlement', 'text')
    .addColumn('reason', 'text')
    .addColumn('alias_of', 'text')
    .addColumn('created_at', 'bigint', column => column.notNull())
    .addColumn('settling_at', 'bigint')
    .addColumn('settled_at', 'bigint')
    .addColumn('decided_at', 'bigint')
    .addColumn('written_at', 'bigint')
    .addColumn('audited_at', 'bigint')
    .addColumn('answer_expires_at', 'bigint');
  const answers = db.schema
    .createTable('answers')
    .addColumn('payment', 'text', column =>
      column.primaryKey().references('payments.id').onDelete('cascade').notNull(),
    )
    .addColumn('status', 'bigint', column => column.notNull())
    .addColumn('headers', 'text', column => column.notNull())
    .addColumn('size', 'bigint', column => column.notNull())
    .addColumn('saved_at', 'bigint', column => column.notNull())
    // Last, so that SQLite reads the other columns without walking through the body.
    .addColumn('body', sql.raw(dialect.bytes), column => column.notNull());
  const payers = db.schema
    .createTable('payers')
    .addColumn('payer', 'text', column => column.primaryKey())
    .addColumn('known', 'bigint', column => column.notNull())
    .addColumn('delivered_at', 'bigint', column => column.notNull())
    .addColumn('refused_at', 'bigint');
  return [payments, answers, payers];
}

function orderTables(db: Db): Compilable[] {
  const orders = db.schema
    .createTable('orders')
    .addColumn('payment', 'text', column => column.primaryKey().references('payments.id').notNull())
    .addColumn('request', 'text', column => column.notNull())
    .addColumn('wanted', 'bigint', column => column.notNull())
    .addColumn('deadline', 'bigint', column => column.notNull())
    .addColumn('attempts', 'bigint', column => column.notNull())
    .addColumn('intent', 'text')
    .addColumn('created_at', 'bigint', column => column.notNull())
    .addColumn('finished_at', 'bigint');
  const replies = db.schema
    .createTable('replies')
    .addColumn('payment', 'text', column => column.notNull().references('orders.payment'))
    .addColumn('reply', 'text', column => column.notNull())
    .addColumn('number', 'bigint', column => column.notNull())
    .addColumn('text', 'text', column => column.notNull())
    .addColumn('sentiment', 'text', column => column.notNull())
    .addColumn('respondent', 'text', column => column.notNull())
    .addColumn('inferred', 'bigint', column => column.notNull())
    .addColumn('house', 'bigint', column => column.notNull())
    .addColumn('created_at', 'bigint', column => column.notNull())
    .addColumn('rejected_at', 'bigint')
    .addPrimaryKeyConstraint('replies_key', ['payment', 'reply'])
    .addUniqueConstraint('replies_respondent', ['payment', 'respondent']);
  return [orders, replies];
}

/** Partial indexes: finished payments are kept for ever and must not weigh on the work of the moment. */
function indexes(db: Db): Compilable[] {
  return [
    db.schema
      .createIndex('payments_open')
      .on('payments')
      .columns(['payer', 'state'])
      .where(sql.ref('written_at'), 'is', null),
    db.schema
      .createIndex('payments_undecided')
      .on('payments')
      .columns(['state'])
      .where(sql.ref('decided_at'), 'is', null),
    db.schema
      .createIndex('payments_identifier')
      .on('payments')
      .columns(['payer', 'identifier'])
      .where(sql.ref('identifier'), 'is not', null),
    db.schema
      .createIndex('payments_answered')
      .on('payments')
      .columns(['answer_expires_at'])
      .where(sql.ref('answer_expires_at'), 'is not', null),
    db.schema
      .createIndex('payments_unaudited')
      .on('payments')
      .columns(['settled_at'])
      .where(sql<boolean>`settled_at is not null and audited_at is null`),
    db.schema
      .createIndex('orders_open')
      .on('orders')
      .columns(['created_at'])
      .where(sql<boolean>`finished_at is null`),
    db.schema.createIndex('payments_created').on('payments').columns(['created_at', 'id']),
  ];
}
