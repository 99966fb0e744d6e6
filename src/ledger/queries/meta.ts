import type { Dialect } from '../engine.js';
import { list, one, raw, sql } from '../sql.js';
import type { Query } from '../sql.js';

type MetaRow = { key: string; value: string };

/** The ledger's own keys. All other keys begin with `note:`. */
const OWN_KEYS = raw(
  "'schema', 'pay_to', 'former_pay_to', 'network', 'retired', 'arriving', 'restored', 'least'",
);

/** The key of a note. */
export const noteKey = (key: string): string => `note:${key}`;

/** One row if there is a table of this name. */
export const tableExists = ({ name: engine }: Dialect, name: string): Query =>
  engine === 'postgres'
    ? sql`select 1 from information_schema.tables where table_schema = current_schema() and table_name = ${name}`
    : sql`select 1 from sqlite_master where type = 'table' and name = ${name}`;

export const ownMeta = () => sql<MetaRow>`select key, value from meta where key in (${OWN_KEYS})`;

/** The values copied to another ledger: the receivers and all keys that are not the ledger's own. */
export const COPIED_META = "key not in ('schema', 'least', 'network', 'retired', 'arriving')";

export const getMeta = ({ key }: { key: string }) =>
  one<{ value: string }>`select value from meta where key = ${key}`;

/** All texts whose keys begin with a prefix, in order. The prefix has no wildcard. */
export const metaOf = ({ prefix }: { prefix: string }) =>
  sql<MetaRow>`select key, value from meta where key like ${`${prefix}%`} order by key`;

export const deleteMeta = ({ keys }: { keys: readonly string[] }) =>
  sql`delete from meta where key in (${list(keys)})`;

export const setMeta = ({ key, value }: MetaRow) =>
  sql`
    insert into meta (key, value) values (${key}, ${value}) on conflict (key) do update set value = excluded.value`;

/** Stores a text unless there is one. @returns the one that is stored now */
export const keepMeta = ({ key, value }: MetaRow) =>
  one<{ value: string }>`
    insert into meta (key, value) values (${key}, ${value})
    on conflict (key) do update set value = meta.value returning value`;

/** Binds the ledger to its receiver unless it is bound. @returns the receiver to which it is bound now */
export const bindReceiver = ({ payTo }: { payTo: string }) =>
  one<{ value: string }>`
    insert into meta (key, value) values ('pay_to', ${payTo})
    on conflict (key) do update set value = meta.value returning value`;

export const receiverBound = () => one<{ value: string }>`select value from meta where key = 'pay_to'`;

/** Everything that is not the ledger's own. */
export const deleteNotes = () => sql`delete from meta where key like 'note:%'`;

/** Records that a restored ledger was compared with the chain. */
export const endRestoration = () => sql`delete from meta where key = 'restored'`;

/** The condition of a sale: the ledger is not bound to another receiver. */
export const isReceiver = (payTo: string): Query =>
  sql`not exists (select 1 from meta where key = 'pay_to' and value <> ${payTo})`;
