import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { record, table } from './figures.js';
import { BRIEF } from './fleet.js';
import { introduce, paid, PREPARED } from './measure.js';
import { rounds, seconds } from './pace.js';
import { freePort, Partner, startOurs } from './processes.js';

/** @typedef {import('./measure.js').Bench} Bench */

/** @returns {string | undefined} the folder of the newest PostgreSQL programs */
function programs() {
  const installed = '/usr/lib/postgresql';
  if (!existsSync(installed)) return undefined;
  const versions = readdirSync(installed).filter(name => Number(name) >= 15);
  const newest = versions.sort((a, b) => Number(b) - Number(a))[0];
  return newest && join(installed, newest, 'bin');
}

/** PostgreSQL refuses to run as root. @param {string[]} command */
function run(command) {
  const root = process.getuid?.() === 0;
  const [program, ...args] = root ? ['runuser', '-u', 'postgres', '--', ...command] : command;
  execFileSync(program, args, { stdio: 'ignore', cwd: '/' });
}

/** Starts a PostgreSQL cluster with default settings, which include fsync. */
async function startPostgres(bin) {
  const folder = mkdtempSync(join(tmpdir(), 'coinslot-bench-'));
  chmodSync(folder, 0o777);
  const data = join(folder, 'data');
  const port = await freePort();
  const control = join(bin, 'pg_ctl');
  run([join(bin, 'initdb'), '-D', data, '-U', 'bench', '-A', 'trust']);
  run([
    control,
    '-D',
    data,
    '-w',
    '-l',
    join(folder, 'log'),
    '-o',
    `-p ${port} -h 127.0.0.1 -k ${folder}`,
    'start',
  ]);
  return {
    url: name => {
      run([join(bin, 'createdb'), '-h', '127.0.0.1', '-p', String(port), '-U', 'bench', name]);
      return `postgres://bench@127.0.0.1:${port}/${name}`;
    },
    stop: () => {
      run([control, '-D', data, '-m', 'fast', 'stop']);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Compares one server process with two, on one PostgreSQL. @param {Bench} bench */
export async function postgres(bench) {
  const bin = programs();
  if (!bin)
    return bench.report.skip(
      'one against two processes on PostgreSQL',
      'no PostgreSQL 15 or newer is installed',
    );
  const database = await startPostgres(bin);
  const second = new Partner('load.js');
  try {
    const of = table('Paid calls on PostgreSQL, 64 connections for each process', 'calls/s');
    const how = url => ({ core: null, env: { DATABASE_URL: url } });
    const { server: alone } = await startOurs(bench.stubs, how(database.url('alone')));
    const shared = database.url('shared');
    const pair = [await startOurs(bench.stubs, how(shared)), await startOurs(bench.stubs, how(shared))];
    const [one, other] = pair.map(({ server }) => server);
    other.nextPayment = PREPARED / 2;
    for (const server of [alone, one, other]) await introduce(bench, server, BRIEF);
    const job = { ...BRIEF, connections: 64, seconds: seconds(5, 2) };
    const rate = result => result.answers / result.seconds;
    for (let round = 0; round < rounds(5, 2); round++) {
      record(of, 'one process', rate(await paid(bench, alone, job)));
      const both = await Promise.all([paid(bench, one, job), paid({ ...bench, load: second }, other, job)]);
      record(of, 'two processes', rate(both[0]) + rate(both[1]));
    }
    of.notes.push(
      'No process is pinned to a core here: servers, database, stubs and load generators share them.',
    );
    bench.report.add(of);
    await Promise.all([alone, one, other].map(server => server.stop()));
  } finally {
    second.end();
    database.stop();
  }
}
