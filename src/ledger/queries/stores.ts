import type { Dialect } from '../engine.js';
import { one, sql } from '../sql.js';
import type { Query } from '../sql.js';

/** The record of an operation's store. `tables` (with their keys) and `migrations` are JSON. */
export type StoreRow = { name: string; version: number; tables: string; migrations: string };

export const findStore = ({ name }: { name: string }) =>
  one<StoreRow>`select * from stores where name = ${name}`;

export const allStores = () => sql<StoreRow>`select * from stores order by name`;

export const recordStore = ({ name, version, tables, migrations }: StoreRow) =>
  sql`
    insert into stores (name, version, tables, migrations) values (${name}, ${version}, ${tables}, ${migrations})
    on conflict (name) do update set version = excluded.version, tables = excluded.tables, migrations = excluded.migrations`;

/** Returns one row if the table exists and has the column. */
export const columnExists = ({ name: engine }: Dialect, table: string, column: string): Query =>
  engine === 'postgres'
    ? sql`select 1 from information_schema.columns
        where table_schema = current_schema() and table_name = ${table} and column_name = ${column}`
    : sql`select 1 from pragma_table_info(${table}) where name = ${column}`;
