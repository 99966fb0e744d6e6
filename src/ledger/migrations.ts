import type { Dialect } from './engine.js';

type Migration = (dialect: Dialect) => readonly string[];

/** One entry per schema version, applied in order and never edited once released. */
export const MIGRATIONS: readonly Migration[] = [
  firstTables,
  aliasesApart,
  refundsOfTheirOwn,
  callersCounted,
  idsAsBytes,
  receiverOfSalesOnly,
  salesInOrder,
  extensionsOfOrders,
  attemptsOfOrders,
  methodsByName,
  storesOfOperations,
  releasedToWatch,
  outboxOfEvents,
  repaymentsInParts,
  usesOfQuotas,
  requestsOfPayments,
  settlementsByTheirStart,
];

/** The schema version this program writes. */
export const SCHEMA_VERSION = MIGRATIONS.length;

/**
 * Servers that know this schema version or a later one can use a ledger of the current version, and keep running while another server
 * migrates it, because all later migrations only add things that these servers do not need. A migration that removes something must raise
 * this number, and comes at least one release after the last version that needs it.
 */
export const OLDEST_BESIDE = 12;

/** Tables that are no longer used, because an operation has copied their rows to its own tables. They are kept for one release. */
export const FORMER_TABLES = [{ table: 'replies', key: ['payment', 'reply'] }] as const;

/** Holds the schema version, so it must exist before any migration. */
export const META_TABLE = 'create table if not exists meta (key text primary key, value text not null)';

/** How many characters of a transaction signature are indexed. Queries compare the whole signature as well. */
export const START_DIGITS = 12;
export const SETTLEMENT_START = `substr(settlement, 1, ${START_DIGITS})`;

// SQLite treats `bigint` as its integer type, so the same SQL works for both engines.
function firstTables({ bytes }: Dialect): string[] {
  return [
    `create table payments (id text primary key, operation text not null, request_hash text not null, request text,
       payer text not null, amount text not null, network text not null, x402_version bigint not null,
       signed_transaction text not null, identifier text, flow text not null, state text not null, claim bigint not null,
       owner text not null, lease_until bigint not null, caller_until bigint not null, runs bigint not null,
       asks bigint not null, claim_slot bigint not null, claim_height bigint not null, settlement text, reason text,
       alias_of text, created_at bigint not null, settling_at bigint, settled_at bigint, decided_at bigint,
       written_at bigint, audited_at bigint, answer_expires_at bigint)`,
    // The body is the last column, so that SQLite can read the others without reading it.
    `create table answers (payment text not null primary key references payments (id) on delete cascade,
       status bigint not null, headers text not null, size bigint not null, saved_at bigint not null, body ${bytes} not null)`,
    `create table payers (payer text primary key, known bigint not null, delivered_at bigint not null, refused_at bigint)`,
    `create table orders (payment text primary key references payments (id), request text not null, wanted bigint not null,
       deadline bigint not null, attempts bigint not null, intent text, created_at bigint not null, finished_at bigint)`,
    `create table replies (payment text not null references orders (payment), reply text not null, number bigint not null,
       text text not null, sentiment text not null, respondent text not null, inferred bigint not null,
       house bigint not null, created_at bigint not null, rejected_at bigint,
       constraint replies_key primary key (payment, reply), constraint replies_respondent unique (payment, respondent))`,
    // Partial indexes, because finished payments are kept forever and must not slow down queries for current ones.
    'create index payments_open on payments (payer, state) where written_at is null',
    'create index payments_undecided on payments (state) where decided_at is null',
    'create index payments_identifier on payments (payer, identifier) where identifier is not null',
    'create index payments_answered on payments (answer_expires_at) where answer_expires_at is not null',
    'create index payments_unaudited on payments (settled_at) where settled_at is not null and audited_at is null',
    'create index orders_open on orders (created_at) where finished_at is null',
    'create index payments_created on payments (created_at, id)',
  ];
}

/**
 * Creates an index without aliases, in which claims are looked up, and one for counting the aliases of a
 * payment.
 */
function aliasesApart(): string[] {
  return [
    'drop index payments_open',
    'create index payments_open on payments (payer, state) where written_at is null and alias_of is null',
    'create index payments_aliases on payments (alias_of) where alias_of is not null',
  ];
}

function refundsOfTheirOwn(): string[] {
  return [
    `create table refunds (payment text primary key references payments (id), signature text not null, amount text not null,
       slot bigint not null, refunded_at bigint not null, constraint refunds_signature unique (signature))`,
  ];
}

/**
 * Counts the requests that wait for a payment. The search for payments for the same call reads rows whose answer was not written to the newest
 * caller, and rows with several callers, for which the time of writing matters. `unwritten` could be calculated from `written_to` and
 * `callers`, but PostgreSQL can't estimate how few rows differ in two columns and would scan all of them.
 */
function callersCounted(): string[] {
  return [
    'alter table payments add column callers bigint not null default 1',
    'alter table payments add column written_to bigint',
    'alter table payments add column unwritten bigint not null default 1',
    'update payments set written_to = 1, unwritten = 0 where written_at is not null',
    'drop index payments_open',
    'create index payments_open on payments (payer, state) where decided_at is null and alias_of is null',
    `create index payments_unwritten on payments (payer, request_hash)
       where unwritten = 1 and alias_of is null and identifier is null`,
    'create index payments_rewritten on payments (payer, written_at) where callers > 1 and written_at is not null',
  ];
}

/** Columns that hold payment ids, by table. */
const ID_COLUMNS = [
  ['payments', 'id'],
  ['payments', 'alias_of'],
  ['answers', 'payment'],
  ['orders', 'payment'],
  ['replies', 'payment'],
  ['refunds', 'payment'],
] as const;

const REFERENCES = [
  ['answers', 'payments (id) on delete cascade'],
  ['orders', 'payments (id)'],
  ['replies', 'orders (payment)'],
  ['refunds', 'payments (id)'],
] as const;

/**
 * Stores ids as 32 bytes instead of 64 hex digits, because most indexes contain them. SQLite stores bytes
 * unchanged in text columns, so only the values change there. On PostgreSQL, the types of the columns change,
 * so the foreign keys are dropped and created again.
 */
function idsAsBytes({ name }: Dialect): string[] {
  if (name === 'sqlite')
    return [
      'pragma defer_foreign_keys = on',
      ...ID_COLUMNS.map(([table, column]) => `update ${table} set ${column} = unhex(${column})`),
    ];
  return [
    ...REFERENCES.map(([table]) => `alter table ${table} drop constraint ${table}_payment_fkey`),
    ...ID_COLUMNS.map(
      ([table, column]) =>
        `alter table ${table} alter column ${column} type bytea using decode(${column}, 'hex')`,
    ),
    ...REFERENCES.map(
      ([table, to]) =>
        `alter table ${table} add constraint ${table}_payment_fkey foreign key (payment) references ${to}`,
    ),
  ];
}

/** The first sale binds a ledger to its receiver. Earlier versions bound it when they created it. */
function receiverOfSalesOnly(): string[] {
  return [
    "delete from meta where key = 'pay_to' and not exists (select 1 from payments where settling_at is not null)",
  ];
}

/** An index for reading the sales of a period without the earlier ones. */
function salesInOrder(): string[] {
  return [
    'create index payments_settled on payments (settled_at, id) where settled_at is not null and alias_of is null',
  ];
}

/**
 * Records whether an order was extended. If too few people answered an order by its deadline, the deadline is extended, but only once each
 * time the order is opened.
 */
function extensionsOfOrders(): string[] {
  return ['alter table orders add column extended bigint not null default 0'];
}

/**
 * Adds columns to orders: the time from which work may be started again, the number of attempts, and the last
 * failure. Orders that failed before this migration can be retried when their buyer asks.
 */
function attemptsOfOrders(): string[] {
  return [
    'alter table orders add column next_attempt_at bigint default 0',
    'alter table orders add column tries bigint not null default 1',
    'alter table orders add column starts bigint not null default 0',
    'alter table orders add column failure text',
    'update orders set next_attempt_at = finished_at where finished_at is not null',
  ];
}

/**
 * Adds the name of the payment method. `x402_version` is still written, for servers of the previous version.
 */
function methodsByName(): string[] {
  return ['alter table payments add column method text'];
}

/**
 * Operations get tables of their own (stores), and report how many parts of an order are done. `replies` and `orders.intent` stay: the
 * operation brandFeedback copies them to its own tables when it first starts.
 */
function storesOfOperations(): string[] {
  return [
    'create table stores (name text primary key, version bigint not null, tables text not null, migrations text not null)',
    'alter table orders add column done bigint not null default 0',
    `update orders set done = (select count(*) from replies where replies.payment = orders.payment and rejected_at is null)
       where wanted > 0`,
  ];
}

/**
 * An index for finding the released payments whose transfer may still land, without reading those whose
 * transfer can't.
 */
function releasedToWatch(): string[] {
  return [
    "create index payments_released on payments (settling_at, id) where state = 'released' and audited_at is null",
  ];
}

/**
 * Events for the operator. `targets` are the places to which they are delivered, `outbox` has the events of each target, in order. A target
 * with `until` is temporary. `kinds` is empty for all kinds of events, or lists the wanted ones, each between spaces.
 */
function outboxOfEvents({ name }: Dialect): string[] {
  const number =
    name === 'postgres'
      ? 'bigint generated by default as identity primary key'
      : 'integer primary key autoincrement';
  return [
    'create table targets (name text primary key, kinds text not null, until bigint)',
    `create table outbox (seq ${number}, id text not null, target text not null, kind text not null, subject text not null,
       facts text not null, created_at bigint not null, ends_at bigint not null, attempts bigint not null default 0,
       next_attempt_at bigint not null, lease_until bigint not null default 0, done_at bigint, outcome text, answer text,
       constraint outbox_event unique (id, target))`,
    'create index outbox_waiting on outbox (target, seq) where done_at is null',
    'create index outbox_subjects on outbox (target, subject, seq) where done_at is null',
    'create index outbox_done on outbox (done_at) where done_at is not null',
  ];
}

/**
 * Refunds can be partial, and are recorded before they are sent. `refunds` keeps the records of earlier versions, and still gets every full
 * refund of an owed payment. `repaid` and `repaying` are the sums of a payment's repayments that landed and that are under way. The indexes
 * on `payments` find a payment by the ids that people quote.
 */
function repaymentsInParts({ bytes }: Dialect): string[] {
  return [
    `create table repayments (id text primary key, payment ${bytes} not null references payments (id), amount text not null,
       receiver text not null, way text not null, state text not null, cause text not null, reason text, after bigint not null,
       evidence text, signature text, position bigint, created_at bigint not null, decided_at bigint, slot bigint, landed_at bigint,
       source text, failure text, constraint repayments_signature unique (signature))`,
    'create index repayments_payment on repayments (payment)',
    'create index repayments_open on repayments (created_at, id) where decided_at is null',
    'create index repayments_landed on repayments (landed_at, id) where landed_at is not null',
    "alter table payments add column repaid text not null default '0'",
    "alter table payments add column repaying text not null default '0'",
    'alter table payments add column repaid_by text',
    `update payments set repaid = amount, repaid_by = (select signature from refunds where refunds.payment = payments.id)
       where state = 'refunded'`,
    `create index payments_settlement_start on payments (${SETTLEMENT_START}) where settlement is not null`,
    'create index payments_identifiers on payments (identifier) where identifier is not null',
    'create index payments_of_payer on payments (payer, settled_at) where settled_at is not null',
  ];
}

/** A table of how much of each quota is used up in the current period, and when that period ends. */
function usesOfQuotas(): string[] {
  return [
    'create table uses (name text primary key, used bigint not null, ends_at bigint not null)',
    'create index uses_ended on uses (ends_at)',
  ];
}

/**
 * Adds the id of the last request that presented a payment. People quote it when they ask about the payment.
 */
function requestsOfPayments(): string[] {
  return [
    'alter table payments add column request_id text',
    'create index payments_request_ids on payments (request_id) where request_id is not null',
  ];
}

/** Replaces an index of whole signatures, which is four times as large and which no released version created or used. */
function settlementsByTheirStart(): string[] {
  return [
    'drop index if exists payments_settlement',
    `create index if not exists payments_settlement_start on payments (${SETTLEMENT_START}) where settlement is not null`,
  ];
}
