import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { backUpLedger, restoreLedger } from '../../src/ledger/sqlite-backup.js';
import { openLedger, openLedgerReader, type Ledger } from '../../src/ledger/store.js';
import { delivered, faultOf, OWNER, payment } from '../support/ledgers.js';

describe('a backup of a ledger in SQLite', () => {
  let folder: string;
  let url: string;
  let copy: string;
  let ledger: Ledger | undefined;
  const AT = '2026-11-24T00:00:00.000Z';

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coinslot-backup-'));
    url = `file:${folder}/ledger.db`;
    copy = join(folder, 'copy.db');
    ledger = await openLedger({ url, ...OWNER });
  });
  afterEach(async () => {
    await ledger?.close();
    await rm(folder, { recursive: true, force: true });
  });

  const sell = async (count: number): Promise<string[]> => {
    const requests = Array.from({ length: count }, () => payment());
    for (const request of requests) await delivered(ledger!, request);
    return requests.map(({ id }) => id);
  };
  const soldIn = async (place: string): Promise<string[]> => {
    const reader = await openLedgerReader({ url: place });
    const rows = await reader.list({ state: 'delivered' });
    await reader.close();
    return rows.map(({ id }) => id);
  };
  const restore = (from = copy, to = url) => restoreLedger({ from, url: to, at: AT });

  it('is a consistent snapshot of a ledger that a server is writing to, and the server continues', async () => {
    const before = await sell(20);
    const writing = sell(40);
    await backUpLedger({ url, to: copy });
    const after = await writing;
    const kept = await soldIn(`file:${copy}`);
    expect(kept).to.include.members(before);
    expect(await soldIn(url)).to.have.members([...before, ...after]);
    expect((await stat(copy)).mode & 0o777, 'only its owner may read it').to.equal(0o600);
    expect((await readdir(folder)).filter(name => name.includes('part'))).to.deep.equal([]);
  });

  it('replaces no file, and leaves nothing behind when it fails', async () => {
    await writeFile(copy, 'mine');
    expect((await faultOf(backUpLedger({ url, to: copy }))).message).to.include('already exists');
    expect(await readFile(copy, 'utf8')).to.equal('mine');
    expect((await faultOf(backUpLedger({ url, to: join(folder, 'no', 'x.db') }))).message).to.include(
      'folder',
    );
    expect(
      (await faultOf(backUpLedger({ url: `file:${folder}/none.db`, to: `${copy}2` }))).message,
    ).to.include('There is no ledger');
    expect(await readdir(folder)).to.not.include('copy.db2');
  });

  it('is restored if there is no ledger yet, and refuses servers until the chain has been checked for payments that it lacks', async () => {
    const sold = await sell(5);
    await backUpLedger({ url, to: copy });
    await sell(3);
    await ledger!.close();
    ledger = undefined;
    for (const name of await readdir(folder))
      if (name !== 'copy.db') await rm(join(folder, name), { force: true });
    const { file, newest } = await restore();
    expect(file).to.equal(join(folder, 'ledger.db'));
    expect(newest).to.be.a('number');
    expect(await soldIn(url)).to.have.members(sold);
    const fault = await faultOf(openLedger({ url, ...OWNER }));
    expect(fault.message).to.include(`restored at ${AT}`).and.include('adopt');
    const reader = await openLedgerReader({ url });
    await reader.endRestoration();
    await reader.close();
    ledger = await openLedger({ url, ...OWNER });
    expect((await readdir(folder)).filter(name => name.includes('restored'))).to.deep.equal([]);
  });

  it('is not restored over payments, or while a server is running', async () => {
    await sell(2);
    await backUpLedger({ url, to: copy });
    expect((await faultOf(restore())).message).to.include('in use by another running server');
    const kept = await sell(1);
    await ledger!.close();
    ledger = undefined;
    expect((await faultOf(restore())).message)
      .to.include('There are payments in')
      .and.include('Nothing was changed');
    expect(await soldIn(url)).to.include.members(kept);
    expect((await faultOf(restore(join(folder, 'ledger.db')))).message).to.include('is the ledger itself');
    const unsold = `file:${folder}/unsold.db`;
    await (await openLedger({ url: unsold, ...OWNER })).close();
    await restore(copy, unsold);
    expect(await soldIn(unsold)).to.have.length(2);
  });

  it('is refused if it is damaged or not a ledger, and the target stays unchanged', async () => {
    await sell(50);
    await backUpLedger({ url, to: copy });
    const bytes = await readFile(copy);
    bytes.fill(0xff, 8_192, 40_000);
    await writeFile(copy, bytes);
    const lost = `file:${folder}/lost.db`;
    await faultOf(restore(copy, lost));
    await writeFile(copy, 'not a database, however long it may be');
    expect((await faultOf(restore(copy, lost))).message).to.include('can’t be copied'.replace('’', "'"));
    expect((await faultOf(restore(join(folder, 'missing.db'), lost))).message).to.include(
      'There is no ledger at',
    );
    expect(await readdir(folder)).to.not.include('lost.db');
  });

  it('explains what to do for a ledger in PostgreSQL', async () => {
    const server = 'postgres://somebody@127.0.0.1/ledger';
    expect((await faultOf(backUpLedger({ url: server, to: copy }))).message).to.include('pg_dump');
    expect((await faultOf(restore(copy, server))).message)
      .to.include('pg_restore')
      .and.include('adopt');
  });
});
