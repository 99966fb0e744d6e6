import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { openLedger, openLedgerReader } from '../../src/ledger/store.js';
import { describeInCi } from '../support/extent.js';
import { freePort } from '../support/free-port.js';
import { delivered, faultOf, OWNER, payment } from '../support/ledgers.js';

const run = promisify(execFile);
const PAGE = fileURLToPath(new URL('../../../docs/how-to/backup.md', import.meta.url));
const LIB = '/usr/lib/postgresql';
const [version] = existsSync(LIB) ? readdirSync(LIB).sort((a, b) => Number(b) - Number(a)) : [];

/** The blocks of the page in one language, in order. */
function blocks(language: string): string[] {
  const found = readFileSync(PAGE, 'utf8').matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'));
  return [...found].map(([, text = '']) => text);
}

describeInCi('docs/how-to/backup.md on PostgreSQL', function () {
  this.timeout(120_000);
  let folder: string;
  let port: number;
  let url: string;
  let env: Record<string, string>;

  /** Runs commands as PostgreSQL's system user, never as root. */
  async function bash(script: string, more: Record<string, string> = {}): Promise<string> {
    const command = ['bash', '-euo', 'pipefail', '-c', script];
    const [program = '', ...args] =
      process.getuid?.() === 0 ? ['runuser', '-u', 'postgres', '--', ...command] : command;
    const { stdout } = await run(program, args, { cwd: '/', env: { ...env, ...more } });
    return stdout.trim();
  }

  before(async function () {
    if (version === undefined) return this.skip();
    folder = await mkdtemp(join(tmpdir(), 'coinslot-pitr-'));
    port = await freePort();
    url = `postgres://postgres@127.0.0.1:${port}/postgres`;
    const [BACKUPS, PGDATA] = [join(folder, 'backups'), join(folder, 'data')];
    env = {
      PATH: `${LIB}/${version}/bin:${process.env['PATH']}`,
      DATABASE_URL: url,
      BACKUPS,
      PGDATA,
      LC_ALL: 'C',
    };
    await mkdir(join(BACKUPS, 'wal'), { recursive: true });
    if (process.getuid?.() === 0) {
      const ids = await Promise.all(['-u', '-g'].map(which => run('id', [which, 'postgres'])));
      const [uid = 0, gid = 0] = ids.map(({ stdout }) => Number(stdout));
      for (const each of [folder, BACKUPS, join(BACKUPS, 'wal')]) await chown(each, uid, gid);
    }
    await chmod(folder, 0o755);
    const settings = `${blocks('ini')[0]}port = ${port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '${folder}'\n`;
    await writeFile(join(folder, 'settings'), settings, { mode: 0o644 });
    await bash(
      'initdb -D "$PGDATA" -A trust -U postgres >/dev/null; cat "$0/settings" >>"$PGDATA/postgresql.conf"; pg_ctl -D "$PGDATA" -w -l "$0/log" start >/dev/null'.replaceAll(
        '$0',
        folder,
      ),
    );
  });
  after(async () => {
    if (version === undefined) return;
    await bash('pg_ctl -D "$PGDATA" -m immediate stop').catch(() => '');
    await rm(folder, { recursive: true, force: true });
  });

  const sell = async (count: number): Promise<string[]> => {
    const ledger = await openLedger({ url, ...OWNER });
    const requests = Array.from({ length: count }, () => payment());
    for (const request of requests) await delivered(ledger, request);
    await ledger.close();
    return requests.map(({ id }) => id);
  };
  const sold = async (of = url): Promise<string[]> => {
    const reader = await openLedgerReader({ url: of });
    const rows = await reader.list({ state: 'delivered' });
    await reader.close();
    return rows.map(({ id }) => id);
  };
  const refused = async (of = url): Promise<string> =>
    (await faultOf(openLedger({ url: of, ...OWNER }))).message;

  it('restores a ledger from a dump, and from the log up to a point in time; no server opens either before `adopt`', async () => {
    const [dump = '', restore = '', base = '', ...recovery] = [
      ...blocks('bash').slice(0, 1),
      // The first of these blocks has two commands: one restores into an empty database, the other marks the ledger as restored.
      ...blocks('bash').slice(1, 4),
    ];
    const first = await sell(3);
    await bash(dump);
    await bash('createdb -h 127.0.0.1 -p "$PORT" -U postgres restored', { PORT: String(port) });
    const restored = `postgres://postgres@127.0.0.1:${port}/restored`;
    await bash(restore, { DATABASE_URL: restored });
    expect(await sold(restored)).to.have.members(first);
    expect(await refused(restored))
      .to.include('restored at')
      .and.include('adopt');

    await bash(base);
    const second = await sell(3);
    const psql = (command: string) => bash('psql -Atd "$DATABASE_URL" -c "$COMMAND"', { COMMAND: command });
    const moment = await psql('select now()');
    const third = await sell(3);
    expect(await sold()).to.have.members([...first, ...second, ...third]);
    await psql('select pg_switch_wal()');
    await bash(
      'until psql -Atd "$DATABASE_URL" -c "select last_archived_wal is not null from pg_stat_archiver" | grep -q t; do sleep 0.2; done',
    );
    await bash('pg_ctl -D "$PGDATA" -w -m fast stop >/dev/null; mv "$PGDATA" "$PGDATA.lost"');
    await bash(recovery.join('\n').replace('--wait start', `--wait --log=${folder}/log start >/dev/null`), {
      MOMENT: moment,
    });
    expect(await sold()).to.have.members([...first, ...second]);
    expect(await refused()).to.include('adopt');
    const reader = await openLedgerReader({ url });
    await reader.endRestoration();
    await reader.close();
    await sell(1);
  });
});
