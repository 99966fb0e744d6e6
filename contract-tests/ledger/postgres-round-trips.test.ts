import { expect } from 'chai';
import pg from 'pg';
import { execute, finish } from '../../src/ledger/engine.js';
import type { Engine } from '../../src/ledger/engine.js';
import { openPostgres } from '../../src/ledger/engines/postgres.js';
import { runTogether, sessionOf, Transaction } from '../../src/ledger/engines/postgres-transaction.js';
import { raw, sql } from '../../src/ledger/sql.js';
import { PLACES } from '../support/ledger-places.js';

/** A connection that records what it is sent, and gives these answers in turn: an error, or no rows. */
function connection(answers: (Error | undefined)[] = []) {
  const sent: string[] = [];
  const released: boolean[] = [];
  const client = {
    query: (query: string | { text: string }) => {
      sent.push(typeof query === 'string' ? query : query.text);
      const failed = answers[sent.length - 1];
      return failed ? Promise.reject(failed) : Promise.resolve({ rows: [] });
    },
    release: (broken = false) => void released.push(broken),
  } as unknown as pg.PoolClient;
  return { client, sent, released };
}

const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED';
const lost = (): Error => new Error('Connection terminated unexpectedly');
function refused(code: string): pg.DatabaseError {
  const error = new pg.DatabaseError('refused', 1, 'error');
  error.code = code;
  return error;
}

/** The outcome of an operation with two queries, the second of which is its last. */
async function outcomeOf(client: pg.PoolClient): Promise<string> {
  const transaction = new Transaction(client, sessionOf({ isPooled: false }));
  try {
    await transaction.run(sql`select ${1}`);
    await transaction.run({ ...sql`update t set a = ${1}`, last: true });
    await transaction.commit();
    return 'committed';
  } catch (error) {
    await transaction.abandon();
    return (error as { code?: string }).code ?? String(error);
  }
}

describe('an operation of the ledger takes few round trips on PostgreSQL', () => {
  it('sends BEGIN with the first query, and COMMIT with the last, without waiting between them', async () => {
    const { client, sent, released } = connection();
    const transaction = new Transaction(client, sessionOf({ isPooled: false }));
    const first = transaction.run(sql`select ${1}`);
    expect(sent).to.eql([BEGIN, 'select $1']);
    await first;
    const last = transaction.run({ ...sql`update t set a = ${1}`, last: true });
    expect(sent.slice(2)).to.eql(['update t set a = $1', 'COMMIT']);
    await last;
    await transaction.commit();
    expect(sent).to.have.length(4);
    expect(released).to.eql([false]);
  });

  it('sends the next queries of parallel operations together, and COMMIT with the last ones of all', async () => {
    const { client, sent } = connection();
    const transaction = new Transaction(client, sessionOf({ isPooled: false }));
    const change = (name: string) => () => finish({ sql: `update ${name}`, parameters: [] });
    const values = await runTogether(transaction, [[change('a'), change('b')], [change('c')]]);
    await transaction.commit();
    expect(sent).to.eql([BEGIN, 'update a', 'update c', 'update b', 'COMMIT']);
    expect(values).to.eql([[[], []], [[]]]);
  });

  it('sends neither BEGIN nor COMMIT for an operation of one query', async () => {
    const { client, sent } = connection();
    const transaction = new Transaction(client, sessionOf({ isPooled: false }));
    await transaction.run({ ...sql`update t set a = ${1}`, last: true });
    await transaction.commit();
    expect(sent).to.eql(['update t set a = $1']);
  });

  it('reports that nothing was written if PostgreSQL rejects the last query, and keeps the connection', async () => {
    const { client, released } = connection([undefined, undefined, refused('23505'), undefined]);
    expect(await outcomeOf(client)).to.equal('23505');
    expect(released).to.eql([false]);
  });

  for (const [what, error] of [
    ['the connection is lost', lost()],
    ['the server stops, which it may do after the commit', refused('57P01')],
  ] as const)
    it(`reports the outcome of the last query as unknown if ${what}`, async () => {
      const { client, released } = connection([undefined, undefined, error, lost()]);
      expect(await outcomeOf(client)).to.equal('unknown');
      expect(released).to.eql([true]);
    });

  it('reports the outcome as unknown if the answer to the commit is lost', async () => {
    const { client } = connection([undefined, undefined, undefined, lost()]);
    expect(await outcomeOf(client)).to.equal('unknown');
  });

  it('refuses to write after the last query, which would be another transaction', async () => {
    const { client } = connection();
    const transaction = new Transaction(client, sessionOf({ isPooled: false }));
    await transaction.run({ ...sql`update t set a = ${1}`, last: true });
    const late = await transaction.run(sql`update t set a = ${2}`).then(String, String);
    expect(late).to.include('an operation writes after its last query');
    expect(await transaction.run(sql`select a from t where a = ${1}`)).to.eql([]);
  });
});

for (const { name, make } of PLACES.filter(place => place.name === 'PostgreSQL'))
  (make ? describe : describe.skip)(`prepared statements on ${name}`, () => {
    let engines: Engine[];
    let remove: () => Promise<void>;
    beforeEach(async () => {
      const place = await make!();
      remove = place.remove;
      engines = [await openPostgres(place.url, 'beside'), await openPostgres(place.url, 'beside')];
      await engines[0]!.write(() => finish(raw('create table t (a int8)')));
    });
    afterEach(async () => {
      for (const engine of engines) await engine.close();
      await remove();
    });

    it('follow a schema that another server changes, inside and outside of transactions', async () => {
      const [ours, other] = engines as [Engine, Engine];
      const all = () => execute(sql<{ a: number }>`select * from t where a = ${1}`);
      const add = () => finish(sql<{ a: number }>`insert into t (a) values (${1}) returning *`);
      const several = <T>(one: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: 8 }, one));
      await several(() => ours.write(add));
      await several(() => ours.read(all));
      await other.write(() => finish(raw('alter table t add column b int8')));
      const read = await several(() => ours.read(all));
      expect(read[7]).to.have.length(8);
      expect(read[7]![0]).to.have.property('b', null);
      await several(() => ours.write(add));
      expect(await ours.write(all)).to.have.length(16);
    });
  });
