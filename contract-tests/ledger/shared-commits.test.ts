import { expect } from 'chai';
import { raw, sql } from '../../src/ledger/sql.js';
import { execute, finish } from '../../src/ledger/engine.js';
import type { TransactionBody } from '../../src/ledger/engine.js';
import { SHARED_LOCK_MS, SharedCommits } from '../../src/ledger/engines/shared-commits.js';
import type { Chain, Shared } from '../../src/ledger/engines/shared-commits.js';
import { openPostgres } from '../../src/ledger/engines/postgres.js';
import { LedgerFault } from '../../src/ledger/fault.js';
import { PLACES } from '../support/ledger-places.js';

const operation = () => finish(raw('select 1'));

type Runs = { fails?: Error; taken?: string };

/**
 * Commits that are held until the test ends them. Every operation returns the name of its payment. `taken`: the payer
 * that another server has locked.
 */
function heldCommits({ fails, taken }: Runs = {}) {
  const batches: string[] = [];
  const apart: string[] = [];
  const ends: (() => void)[] = [];
  const ended = (): Promise<void> => new Promise(resolve => ends.push(resolve));
  const namesOf = (chain: Chain): string[] => chain.map(({ payment }) => payment);
  const commits = new SharedCommits({
    together: async chains => {
      batches.push(chains.map(chain => namesOf(chain).join('-')).join(' '));
      await ended();
      if (fails) throw fails;
      return chains.map(chain =>
        chain.some(({ payer }) => payer === taken && taken) ? undefined : namesOf(chain),
      );
    },
    apart: async chain => {
      apart.push(namesOf(chain).join('-'));
      await ended();
      return namesOf(chain);
    },
  });
  const add = (payment: string, more: Partial<Shared> = {}): Promise<unknown> =>
    commits.add({ payment, operation, ...more });
  const end = async (): Promise<void> => {
    for (let turn = 0; turn < 100 && ends.length === 0; turn++) await new Promise(setImmediate);
    const [first] = ends.splice(0, 1);
    if (!first) throw new Error('nothing was begun');
    first();
    await new Promise(setImmediate);
    await new Promise(setImmediate);
  };
  return { add, apart, batches, commits, end };
}

describe('operations that share a commit', () => {
  it('are those that are requested while another commit is under way, in the order of their payments', async () => {
    const { add, apart, batches, end } = heldCommits();
    const first = add('x');
    await new Promise(setImmediate);
    const others = [add('c'), add('a'), add('b')];
    await end();
    expect(await first).to.equal('x');
    await end();
    expect(await Promise.all(others)).to.eql(['c', 'a', 'b']);
    expect({ apart, batches }).to.eql({ apart: ['x'], batches: ['a b c'] });
  });

  it('run one after another if they belong to one payment or one payer, in the order of their requests', async () => {
    const { add, batches, end } = heldCommits();
    const all = [
      add('a', { payer: 'P' }),
      add('b'),
      add('c', { payer: 'P' }),
      add('d', { payer: 'Q' }),
      add('a'),
      add('b'),
    ];
    await end();
    expect(await Promise.all(all)).to.eql(['a', 'b', 'c', 'd', 'a', 'b']);
    expect(batches).to.eql(['a-c-a b-b d']);
  });

  it('wait for the next commit if their payment and their payer are in two sequences that run in parallel', async () => {
    const { add, apart, batches, end } = heldCommits();
    const all = [add('a', { payer: 'P' }), add('b'), add('b', { payer: 'P' }), add('b')];
    for (let n = 0; n < 2; n++) await end();
    await Promise.all(all);
    expect({ apart, batches }).to.eql({ apart: ['b-b'], batches: ['a b'] });
  });

  it('leave a payer that another server has locked to a commit of its own, which waits alone', async () => {
    const { add, apart, batches, end } = heldCommits({ taken: 'P' });
    const [taken, free] = [add('a', { payer: 'P' }), add('b', { payer: 'Q' })];
    await end();
    expect(await free).to.equal('b');
    const later = [add('c', { payer: 'P' }), add('d', { payer: 'R' }), add('e')];
    await new Promise(resolve => setTimeout(resolve, SHARED_LOCK_MS + 50));
    expect({ apart, batches }).to.eql({ apart: ['a'], batches: ['a b', 'd e'] });
    for (let n = 0; n < 3; n++) await end();
    expect(await Promise.all([taken, ...later])).to.eql(['a', 'c', 'd', 'e']);
    expect(apart).to.eql(['a', 'c']);
  });

  it('are limited to 64 per transaction, 8 per payer, and 4 MB', async () => {
    const { add, apart, batches, end } = heldCommits();
    const size = 1.5 * 1024 * 1024;
    const all = [...'abc'].map(payment => add(payment, { bytes: size }));
    for (let n = 0; n < 9; n++) all.push(add(`p${n}`, { payer: 'P' }));
    for (let n = 0; n < 70; n++) all.push(add(`d${n}`));
    for (let n = 0; n < 2; n++) await end();
    await Promise.all(all);
    expect(apart).to.eql([]);
    expect(batches.map(batch => batch.split(/[ -]/).length)).to.eql([64, 18]);
    expect(batches[0]).to.match(/^a b .*p0-p1-p2-p3-p4-p5-p6-p7$/);
  });

  it('all have an unknown outcome if the commit was not confirmed', async () => {
    const { add, end } = heldCommits({ fails: new LedgerFault('unknown', 'lost') });
    const both = [add('a'), add('b')].map(each => each.then(String, (error: LedgerFault) => error.code));
    await end();
    expect(await Promise.all(both)).to.eql(['unknown', 'unknown']);
  });

  it('wait in a limited queue', async () => {
    const { add, end, commits } = heldCommits();
    const all = Array.from({ length: 2_000 }, (_, n) => add(`a${n}`));
    expect(() => add('b')).to.throw(LedgerFault, 'Too many operations are waiting for the ledger.');
    for (let batch = 0; batch < 2_000 / 64; batch++) await end();
    await commits.idle();
    expect(await Promise.all(all)).to.have.length(2_000);
  });
});

for (const { name, make } of PLACES.filter(place => place.name === 'PostgreSQL'))
  (make ? describe : describe.skip)(`operations that share a commit on ${name}`, () => {
    type Row = { a: number; b: number; x: string };
    let place: Awaited<ReturnType<NonNullable<typeof make>>>;
    let engine: Awaited<ReturnType<typeof openPostgres>>;
    beforeEach(async () => {
      place = await make!();
      engine = await openPostgres(place.url, 'beside');
      await engine.write(() => finish(raw('create table t (a int8 primary key, b int8 not null)')));
    });
    afterEach(async () => {
      await engine.close();
      await place.remove();
    });

    function* add(a: number, b: number | null): TransactionBody<Row | undefined> {
      yield* execute(sql`select ${a}`);
      const [row] = yield* finish(
        sql<Row>`insert into t (a, b) values (${a}, ${b}) returning a, b, pg_current_xact_id()::text as x`,
      );
      return row;
    }
    const rows = (): Promise<Row[]> => engine.read(() => execute(sql<Row>`select a, b from t order by a`));

    it('have the same transaction id', async () => {
      const made = await Promise.all([1, 2, 3].map(a => engine.write(() => add(a, a), { payment: `${a}` })));
      expect(new Set(made.map(row => row?.x)).size).to.equal(1);
      expect(await rows()).to.eql([1, 2, 3].map(a => ({ a, b: a })));
    });

    it('do not fail because another operation in the commit fails', async () => {
      const made = await Promise.all(
        [1, 2, 3].map(a =>
          engine
            .write(() => add(a, a === 2 ? null : a), { payment: `${a}` })
            .then(
              row => row?.a,
              (error: LedgerFault) => error.code,
            ),
        ),
      );
      expect(made).to.eql([1, 'failed', 3]);
      expect(await rows()).to.eql([1, 3].map(a => ({ a, b: a })));
    });

    it('do not wait long for an operation that another server blocks', async () => {
      const other = await openPostgres(place.url, 'beside');
      let release = (): void => undefined;
      const held = other.transact(async run => {
        await run(sql`select pg_advisory_xact_lock(hashtextextended(${'P'}, 0))`);
        await new Promise<void>(resolve => (release = resolve));
      });
      while (String(release) === '() => undefined') await new Promise(setImmediate);
      const order: number[] = [];
      const write = (a: number, payer: string): Promise<unknown> =>
        engine.write(() => add(a, a), { payment: `${a}`, payer }).then(() => order.push(a));
      const first = [write(1, 'P'), write(2, 'Q'), write(3, 'R')];
      await Promise.all(first.slice(1));
      await write(4, 'S');
      expect(order).to.have.members([2, 3, 4]);
      release();
      await Promise.all([held, ...first]);
      await other.close();
      expect(order.at(-1)).to.equal(1);
      expect(SHARED_LOCK_MS).to.be.below(1_000);
    });
  });
