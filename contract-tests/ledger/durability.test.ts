import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { durabilityOf } from '../../src/ledger/durability.js';
import { until } from '../support/faults.js';
import { PLACES } from '../support/ledger-places.js';
import { POSTGRES_BIN } from '../support/postgres-programs.js';

const MEMORY = '/dev/shm';

describe('durability of a SQLite ledger', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'durability-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const levelsOf = async (url: string, budget: number): Promise<string[]> =>
    (await durabilityOf(url, budget)).map(({ level, found }) => `${level} ${found}`);

  it("is tested in the ledger's folder, and no file is left there", async () => {
    const [disk, space] = await levelsOf(`file:${folder}/ledger.db`, 1);
    const { type } = await statfs(folder);
    if (type !== 0x01021994) expect(disk).to.match(/^ok a file in .* was written and synced/);
    expect(space).to.match(/^ok .* MB left/);
    expect(await readdir(folder)).to.deep.equal([]);
  });

  it('needs space for the answers that may be stored', async () => {
    const [, space] = await durabilityOf(`file:${folder}/ledger.db`, Number.MAX_SAFE_INTEGER);
    expect(space).to.have.property('level', 'warning');
    expect(space?.todo).to.include('ANSWER_STORE_MB');
  });

  it('is reported as missing if the folder is in memory', async function () {
    if (!existsSync(MEMORY) || (await statfs(MEMORY)).type !== 0x01021994) return this.skip();
    const [disk] = await durabilityOf(`file:${MEMORY}/ledger.db`, 1);
    expect(disk).to.have.property('level', 'error');
    expect(disk?.todo).to.include('STATE_DIR');
  });

  it("can't be tested without a folder, and is reported as missing if nothing can be written there", async () => {
    expect(await levelsOf(`file:${folder}/missing/ledger.db`, 1)).to.have.length(1);
    await writeFile(join(folder, 'file'), '');
    const [disk] = await durabilityOf(`file:${folder}/file/ledger.db`, 1);
    expect(disk).to.have.property('level', 'error');
  });
});

const postgres = PLACES.find(({ name }) => name === 'PostgreSQL')?.make;
/** Receives PostgreSQL's write-ahead log, as a standby does. */
const STANDBY = join(POSTGRES_BIN, 'pg_receivewal');
if (postgres)
  describe('durability of a PostgreSQL ledger', () => {
    let url: URL;
    let remove: () => Promise<void>;
    beforeEach(async () => {
      const place = await postgres();
      url = new URL(place.url);
      ({ remove } = place);
    });
    afterEach(() => remove());
    const setting = (name: string): void =>
      url.searchParams.set('options', `${url.searchParams.get('options')} -c${name}`);

    it('is reported as missing if commits are confirmed before they are on disk', async () => {
      setting('synchronous_commit=off');
      const found = await durabilityOf(url.href, 1);
      expect(found.map(({ todo }) => todo)).to.include('set synchronous_commit=on');
      for (const { level } of found) expect(level).to.equal('error');
    });

    it('is reported with a warning if commits are confirmed before a standby has them', async function () {
      if (!existsSync(STANDBY)) return this.skip();
      const folder = await mkdtemp(join(tmpdir(), 'standby-'));
      const main = `host=${url.hostname} port=${url.port} user=${url.username}`;
      const standby = spawn(STANDBY, ['-D', folder, '-d', main, '--no-loop'], { stdio: 'ignore' });
      const warnings = async (): Promise<string[]> =>
        (await durabilityOf(url.href, 1)).flatMap(({ level, found }) => (level === 'warning' ? found : []));
      try {
        await until('the standby is there', async () => (await warnings()).length > 0);
        expect((await warnings()).join()).to.match(/before its standbys have it .* a failover may lose/);
      } finally {
        standby.kill('SIGKILL');
        await rm(folder, { recursive: true, force: true });
      }
    });
  });
