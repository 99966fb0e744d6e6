import type { Dialect } from '../engine.js';
import { list, one, raw, sql } from '../sql.js';
import type { Query } from '../sql.js';

type MetaRow = { key: string; value: string };

/** The keys that the ledger itself uses. All others begin with `note:`. */
const OWN_KEYS = raw(
  "'schema', 'pay_to', 'former_pay_to', 'network', 'retired', 'arriving', 'restored', 'least'",
);

export const noteKey = (key: string): string => `note:${key}`;

/** Returns one row if the table exists. */
export const tableExists = ({ name: engine }: Dialect, name: string): Query =>
  engine === 'postgres'
    ? sql`select 1 from information_schema.tables where table_schema = current_schema() and table_name = ${name}`
    : sql`select 1 from sqlite_master where type = 'table' and name = ${name}`;

export const ownMeta = () => sql<MetaRow>`select key, value from meta where key in (${OWN_KEYS})`;

/** The entries that are copied to another ledger: the receivers, whether it was restored, and all notes. */
export const COPIED_META = "key not in ('schema', 'least', 'network', 'retired', 'arriving')";

export const getMeta = ({ key }: { key: string }) =>
  one<{ value: string }>`select value from meta where key = ${key}`;

/** All entries whose keys begin with a prefix, in order. The prefix must not contain wildcards. */
export const metaOf = ({ prefix }: { prefix: string }) =>
  sql<MetaRow>`select key, value from meta where key like ${`${prefix}%`} order by key`;

export const deleteMeta = ({ keys }: { keys: readonly string[] }) =>
  sql`delete from meta where key in (${list(keys)})`;

export const setMeta = ({ key, value }: MetaRow) =>
  sql`
    insert into meta (key, value) values (${key}, ${value}) on conflict (key) do update set value = excluded.value`;

/** Stores a value unless the key has one. @returns the stored value */
export const keepMeta = ({ key, value }: MetaRow) =>
  one<{ value: string }>`
    insert into meta (key, value) values (${key}, ${value})
    on conflict (key) do update set value = meta.value returning value`;

/** Binds the ledger to a receiver unless it already is bound. @returns the receiver to which it is bound now */
export const bindReceiver = ({ payTo }: { payTo: string }) =>
  one<{ value: string }>`
    insert into meta (key, value) values ('pay_to', ${payTo})
    on conflict (key) do update set value = meta.value returning value`;

export const receiverBound = () => one<{ value: string }>`select value from meta where key = 'pay_to'`;

export const deleteNotes = () => sql`delete from meta where key like 'note:%'`;

/** Records that a restored ledger was compared with the chain. */
export const endRestoration = () => sql`delete from meta where key = 'restored'`;

/** Whether the ledger may sell for this receiver: it is bound to this one, or to none yet. Checked by every sale. */
export const isReceiver = (payTo: string): Query =>
  sql`not exists (select 1 from meta where key = 'pay_to' and value <> ${payTo})`;
