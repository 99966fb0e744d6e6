import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import pg from 'pg';
import { Replica, type ReplicaState } from '../../src/ledger/replica.js';
import { openLedger, type Ledger } from '../../src/ledger/store.js';
import { findFreePort } from '../../src/http/listen.js';
import { until } from '../support/faults.js';
import { delivered, OWNER, payment } from '../support/ledgers.js';

const INSTALLED = '/usr/lib/postgresql';

/** PostgreSQL's programs, if they are installed. */
function programs(): string | undefined {
  const versions = existsSync(INSTALLED) ? readdirSync(INSTALLED).filter(name => Number(name) >= 15) : [];
  const newest = versions.sort((a, b) => Number(b) - Number(a))[0];
  return newest && join(INSTALLED, newest, 'bin');
}

/** PostgreSQL refuses to run as root. */
function run(...command: string[]): void {
  const [program = '', ...args] =
    process.getuid?.() === 0 ? ['runuser', '-u', 'postgres', '--', ...command] : command;
  execFileSync(program, args, { stdio: 'ignore', cwd: '/' });
}

describe('a replica of a ledger in PostgreSQL', () => {
  const bin = programs();
  const pieces = { folder: '', ports: [0, 0] as [number, number] };
  let ledger: Ledger;
  let replica: Replica;
  let changes: ReplicaState[];

  const url = (port: number): string => `postgres://postgres@127.0.0.1:${port}/postgres`;
  const control = (name: string, ...rest: string[]): void =>
    run(join(bin ?? '', 'pg_ctl'), '-D', join(pieces.folder, name), '-w', ...rest);
  const start = (name: string, port: number): void =>
    control(
      name,
      '-l',
      join(pieces.folder, `${name}.log`),
      '-o',
      `-p ${port} -h 127.0.0.1 -k ${pieces.folder}`,
      'start',
    );

  before(async function () {
    if (bin === undefined) return this.skip();
    this.timeout(60_000);
    pieces.folder = mkdtempSync(join(tmpdir(), 'coinslot-replica-'));
    chmodSync(pieces.folder, 0o777);
    pieces.ports = [await findFreePort('127.0.0.1', 0), await findFreePort('127.0.0.1', 0)];
    run(
      join(bin, 'initdb'),
      '-D',
      join(pieces.folder, 'primary'),
      '-U',
      'postgres',
      '-A',
      'trust',
      '--no-sync',
    );
    start('primary', pieces.ports[0]);
    const source = `host=127.0.0.1 port=${pieces.ports[0]} user=postgres`;
    run(
      join(bin, 'pg_basebackup'),
      '-d',
      source,
      '-D',
      join(pieces.folder, 'standby'),
      '-R',
      '-X',
      'stream',
      '-c',
      'fast',
      '--no-sync',
    );
    start('standby', pieces.ports[1]);
  });
  after(() => {
    if (bin === undefined) return;
    for (const name of ['standby', 'primary']) control(name, '-m', 'immediate', 'stop');
    rmSync(pieces.folder, { recursive: true, force: true });
  });
  beforeEach(async () => {
    ledger = await openLedger({ url: url(pieces.ports[0]), ...OWNER });
    // The standby gets the tables a moment after the primary.
    await until('the standby has the ledger', async () => (await tablesOfReplica()) > 0);
    changes = [];
    replica = new Replica({
      url: url(pieces.ports[1]),
      primary: ledger,
      onChange: state => changes.push(state),
    });
  });
  afterEach(async () => {
    await replica.close();
    await ledger.close();
  });

  async function onReplica(statement: string): Promise<pg.QueryResult> {
    const client = new pg.Client(url(pieces.ports[1]));
    await client.connect();
    const result = await client.query(statement);
    await client.end();
    return result;
  }
  const tablesOfReplica = async (): Promise<number> =>
    (await onReplica("select from pg_tables where tablename = 'payments'")).rowCount ?? 0;

  const sold = async (): Promise<string> => {
    const request = payment();
    await delivered(ledger, request);
    return request.id;
  };
  const listed = async (): Promise<string[]> =>
    (await replica.reports.listSales({})).sales.map(({ id }) => id);

  it('returns the sales, both as a list and in slices, and reports its lag', async () => {
    const id = await sold();
    const state = await replica.state();
    expect(state).to.have.property('lagMs').that.is.below(1_000);
    expect(await listed()).to.include(id);
    const moved: string[] = [];
    for await (const slice of replica.reports.movedSales({ from: 0, to: Number.MAX_SAFE_INTEGER }))
      moved.push(...slice.map(each => each.payment));
    expect(moved).to.include(id);
    expect((await replica.reports.counts()).delivered).to.deep.equal((await ledger.counts()).delivered);
    expect(changes).to.deep.equal([state]);
  });

  it('is read while it lags a little, and not while it lags ten seconds: then the primary is read', async function () {
    this.timeout(30_000);
    const first = await sold();
    await replica.state();
    await onReplica('select pg_wal_replay_pause()');
    try {
      const second = await sold();
      await sleep(2_100);
      expect(await replica.state())
        .to.have.property('lagMs')
        .that.is.within(500, 9_999);
      expect(await listed())
        .to.include(first)
        .and.not.to.include(second);
      await sleep(10_000);
      expect(await replica.state())
        .to.have.property('unusable')
        .that.matches(/behind the primary/);
      expect(await listed()).to.include.members([first, second]);
    } finally {
      await onReplica('select pg_wal_replay_resume()');
    }
    await sleep(2_100);
    expect(await replica.state()).to.have.property('lagMs');
    expect(changes.map(each => 'lagMs' in each)).to.deep.equal([true, false, true]);
  });

  it('is not read if it is down, is not a replica or belongs to another ledger, and never makes a report fail', async function () {
    this.timeout(30_000);
    const id = await sold();
    for (const [wrong, why] of [
      ['postgres://postgres@127.0.0.1:1/postgres', /reached/],
      [url(pieces.ports[0]), /not a replica/],
    ] as const) {
      const other = new Replica({ url: wrong, primary: ledger });
      expect(await other.state())
        .to.have.property('unusable')
        .that.matches(why);
      expect((await other.reports.newestSales(1))[0]?.id).to.equal(id);
      await other.close();
    }
    control('standby', '-m', 'immediate', 'stop');
    await sleep(2_100);
    expect((await replica.reports.newestSales(1))[0]?.id).to.equal(id);
    start('standby', pieces.ports[1]);
    await sleep(2_100);
    expect(await replica.state()).to.have.property('lagMs');
  });
});
