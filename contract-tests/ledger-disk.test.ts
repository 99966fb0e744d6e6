import { expect } from 'chai';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LedgerFault } from '../src/ledger/fault.js';
import { openLedger, type Ledger } from '../src/ledger/store.js';

type Sync = (error: NodeJS.ErrnoException | null) => void;

/** Stands between the ledger and the disk: every sync waits until the test lets it through, or lets it fail. */
class Disk {
  readonly waiting: Sync[] = [];
  readonly #real = fs.fdatasync;

  constructor() {
    fs.fdatasync = ((fd: number, done: Sync) => {
      this.waiting.push(error => (error ? done(error) : this.#real(fd, done)));
    }) as typeof fs.fdatasync;
    syncBuiltinESMExports();
  }

  /** Waits for a sync to be asked for, and answers it. */
  async answer(error: NodeJS.ErrnoException | null = null): Promise<void> {
    for (let tries = 0; this.waiting.length === 0 && tries < 500; tries++) await pause(10);
    const next = this.waiting.shift();
    if (!next) throw new Error('the disk was not asked');
    next(error);
  }

  restore(): void {
    fs.fdatasync = this.#real;
    syncBuiltinESMExports();
  }
}

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms));

describe('A ledger file and its disk', () => {
  let folder: string;
  let ledger: Ledger;
  let disk: Disk;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coinslot-disk-'));
    ledger = await openLedger({ url: `file:${join(folder, 'ledger.db')}`, payTo: 'us', network: 'net' });
    disk = new Disk();
  });

  afterEach(async () => {
    disk.restore();
    for (const sync of disk.waiting.splice(0)) sync(null);
    await ledger.close();
    await rm(folder, { recursive: true, force: true });
  });

  it('says that something is kept only once the disk has it, and goes on with other things meanwhile', async () => {
    let kept = false;
    const note = ledger.setMeta('reconciler-a', '1').then(() => (kept = true));
    let turns = 0;
    for (let n = 0; n < 50; n++) {
      await pause(1);
      turns += 1;
    }
    expect([kept, turns]).to.deep.equal([false, 50]);
    await disk.answer();
    await note;
    expect(kept).to.equal(true);
  });

  it('keeps what is asked while the disk is busy with one more commit and sync, however much it is', async () => {
    const first = ledger.setMeta('reconciler-0', '0');
    while (disk.waiting.length === 0) await pause(1);
    const rest = Array.from({ length: 100 }, (_, n) => ledger.setMeta(`reconciler-${n + 1}`, String(n)));
    await pause(20);
    expect(disk.waiting).to.have.length(1);
    await disk.answer();
    await first;
    await disk.answer();
    await Promise.all(rest);
    await pause(20);
    expect(disk.waiting).to.have.length(0);
    expect(await ledger.getMeta('reconciler-100')).to.equal('99');
  });

  it('a disk that fails leaves the outcome unknown, and nothing is written any more until the server starts anew', async () => {
    const note = outcomeOf(ledger.setMeta('reconciler-a', '1'));
    const behind = pause(5).then(() => outcomeOf(ledger.setMeta('reconciler-b', '1')));
    await pause(20);
    await disk.answer(Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' }));
    expect(await note).to.match(/^unknown: The disk did not confirm a commit \(EIO/);
    const refusal = /^failed: The disk of the ledger failed .*Check the disk, then start the server again/;
    expect(await behind).to.match(refusal);
    expect(await outcomeOf(ledger.setMeta('reconciler-c', '1'))).to.match(refusal);
    expect(disk.waiting).to.have.length(0);
    expect(await ledger.counts()).to.be.an('object');
  });

  it('closes only after the disk has what was asked before', async () => {
    const note = ledger.setMeta('reconciler-a', '1');
    let closed = false;
    const closing = ledger.close().then(() => (closed = true));
    await pause(30);
    expect(closed).to.equal(false);
    await disk.answer();
    await note;
    await closing;
  });
});

async function outcomeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'kept';
  } catch (error) {
    return error instanceof LedgerFault ? `${error.code}: ${error.message}` : String(error);
  }
}
