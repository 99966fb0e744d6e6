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
 * Servers from this schema version on can use a ledger of the current version, and keep running while another server migrates it: every
 * later migration only adds parts that they do not need. A migration that removes something comes a release later, and raises this
 * number.
 */
export const OLDEST_BESIDE = 12;

/** Tables that are no longer written: an operation's store has taken over their rows. They are kept for one release. */
export const FORMER_TABLES = [{ table: 'replies', key: ['payment', 'reply'] }] as const;

/** Holds the schema version, so it must exist before any migration. */
export const META_TABLE = 'create table if not exists meta (key text primary key, value text not null)';

/** Enough of the name of a transfer to find it among all. The names themselves are compared, too. */
export const START_DIGITS = 12;
export const SETTLEMENT_START = `substr(settlement, 1, ${START_DIGITS})`;

// SQLite reads `bigint` as its own integer, so one spelling serves both engines.
function firstTables({ bytes }: Dialect): string[] {
  return [
    `create table payments (id text primary key, operation text not null, request_hash text not null, request text,
       payer text not null, amount text not null, network text not null, x402_version bigint not null,
       signed_transaction text not null, identifier text, flow text not null, state text not null, claim bigint not null,
       owner text not null, lease_until bigint not null, caller_until bigint not null, runs bigint not null,
       asks bigint not null, claim_slot bigint not null, claim_height bigint not null, settlement text, reason text,
       alias_of text, created_at bigint not null, settling_at bigint, settled_at bigint, decided_at bigint,
       written_at bigint, audited_at bigint, answer_expires_at bigint)`,
    // The body is last, so that SQLite reads the other columns without walking through it.
    `create table answers (payment text not null primary key references payments (id) on delete cascade,
       status bigint not null, headers text not null, size bigint not null, saved_at bigint not null, body ${bytes} not null)`,
    `create table payers (payer text primary key, known bigint not null, delivered_at bigint not null, refused_at bigint)`,
    `create table orders (payment text primary key references payments (id), request text not null, wanted bigint not null,
       deadline bigint not null, attempts bigint not null, intent text, created_at bigint not null, finished_at bigint)`,
    `create table replies (payment text not null references orders (payment), reply text not null, number bigint not null,
       text text not null, sentiment text not null, respondent text not null, inferred bigint not null,
       house bigint not null, created_at bigint not null, rejected_at bigint,
       constraint replies_key primary key (payment, reply), constraint replies_respondent unique (payment, respondent))`,
    // Partial indexes: finished payments are kept for ever and must not weigh on the work of the moment.
    'create index payments_open on payments (payer, state) where written_at is null',
    'create index payments_undecided on payments (state) where decided_at is null',
    'create index payments_identifier on payments (payer, identifier) where identifier is not null',
    'create index payments_answered on payments (answer_expires_at) where answer_expires_at is not null',
    'create index payments_unaudited on payments (settled_at) where settled_at is not null and audited_at is null',
    'create index orders_open on orders (created_at) where finished_at is null',
    'create index payments_created on payments (created_at, id)',
  ];
}

/** Claims are looked up in an index without aliases; the aliases of one payment can be counted. */
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
 * Who waits for a payment. The search for equal payments reads rows whose answer was not written to the newest caller, and rows with
 * several callers, for which the time of writing matters. `unwritten` says the same as `written_to` and `callers`, in a column of its
 * own, because PostgreSQL can't estimate how few rows differ in two columns and would walk through all of them.
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
 * 32 bytes instead of 64 hex digits: ids are in most indexes. SQLite keeps bytes as they are in columns that are declared as text, so
 * only their values change there; PostgreSQL changes the columns, and for that lets go of the references for a moment.
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

/** A ledger belongs to a receiver from its first sale on. Earlier versions bound it when it was created. */
function receiverOfSalesOnly(): string[] {
  return [
    "delete from meta where key = 'pay_to' and not exists (select 1 from payments where settling_at is not null)",
  ];
}

/** Sales of a time can be read without those before it. */
function salesInOrder(): string[] {
  return [
    'create index payments_settled on payments (settled_at, id) where settled_at is not null and alias_of is null',
  ];
}

/** An order that too few people answered gets a second deadline, once per opening. */
function extensionsOfOrders(): string[] {
  return ['alter table orders add column extended bigint not null default 0'];
}

/**
 * When an order may be worked on again, the number of attempts, and the last failure. Orders that failed before this migration can be
 * retried when their buyer asks.
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

/** How a payment was carried, by name. `x402_version` is still written, for servers of the version before. */
function methodsByName(): string[] {
  return ['alter table payments add column method text'];
}

/**
 * Operations have stores of their own, and report how much of an order is done. `replies` and `orders.intent` stay as they were: the
 * store of brandFeedback takes them over at its first start.
 */
function storesOfOperations(): string[] {
  return [
    'create table stores (name text primary key, version bigint not null, tables text not null, migrations text not null)',
    'alter table orders add column done bigint not null default 0',
    `update orders set done = (select count(*) from replies where replies.payment = orders.payment and rejected_at is null)
       where wanted > 0`,
  ];
}

/** Released payments that may still land are found without all those that can't. */
function releasedToWatch(): string[] {
  return [
    "create index payments_released on payments (settling_at, id) where state = 'released' and audited_at is null",
  ];
}

/**
 * Events for the operator: `targets` are the places that get them, `outbox` the events of each, in order. A target with `until` is
 * temporary; `kinds` is empty, or lists the wanted kinds, each between spaces.
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
 * Refunds can be partial, and are under way before they land. `refunds` has the records of earlier versions, and every full refund of an
 * owed payment. `repaid` and `repaying` are sums over the repayments of a payment that landed, and that are under way. The other indexes
 * find a payment by the ids that people quote.
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

/** The used amount of each limit, until a time. */
function usesOfQuotas(): string[] {
  return [
    'create table uses (name text primary key, used bigint not null, ends_at bigint not null)',
    'create index uses_ended on uses (ends_at)',
  ];
}

/** The id of the last request that brought a payment, which people quote to ask about it. */
function requestsOfPayments(): string[] {
  return [
    'alter table payments add column request_id text',
    'create index payments_request_ids on payments (request_id) where request_id is not null',
  ];
}

/** No released version made or used the index of whole names, which takes four times as much. */
function settlementsByTheirStart(): string[] {
  return [
    'drop index if exists payments_settlement',
    `create index if not exists payments_settlement_start on payments (${SETTLEMENT_START}) where settlement is not null`,
  ];
}
