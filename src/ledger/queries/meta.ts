import { one, raw, sql } from '../sql.js';

type MetaRow = { key: string; value: string };

/** The ledger's own keys. All other keys begin with `note:`. */
const OWN_KEYS = raw("'schema', 'pay_to', 'network', 'retired', 'arriving'");

export const ownMeta = () => sql<MetaRow>`select key, value from meta where key in (${OWN_KEYS})`;

/** What is copied to another ledger. */
export const NOT_OWN_META = `key not in (${OWN_KEYS.sql})`;

export const getMeta = ({ key }: { key: string }) =>
  one<{ value: string }>`select value from meta where key = ${key}`;

export const setMeta = ({ key, value }: MetaRow) =>
  sql`
    insert into meta (key, value) values (${key}, ${value}) on conflict (key) do update set value = excluded.value`;
