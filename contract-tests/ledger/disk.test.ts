import { expect } from 'chai';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LedgerFault } from '../../src/ledger/fault.js';
import { openLedger, type Ledger } from '../../src/ledger/store.js';

type Sync = (error: NodeJS.ErrnoException | null) => void;

/** A layer between the ledger and the disk: every sync waits until the test lets it succeed or fail. */
class Disk {
  readonly waiting: Sync[] = [];
  readonly #real = fs.fdatasync;

  constructor() {
    fs.fdatasync = ((fd: number, done: Sync) => {
      this.waiting.push(error => (error ? done(error) : this.#real(fd, done)));
    }) as typeof fs.fdatasync;
    syncBuiltinESMExports();
  }

  /** Waits until a sync is requested. */
  async asked(): Promise<void> {
    for (let tries = 0; this.waiting.length === 0 && tries < 1_000; tries++) await pause(5);
  }

  /** Waits until a sync is requested, and answers it. */
  async answer(error: NodeJS.ErrnoException | null = null): Promise<void> {
    await this.asked();
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

  it('reports something as stored only once the disk has it, and continues with other work meanwhile', async () => {
    let kept = false;
    const note = ledger.setMeta('reconciler-a', '1').then(() => (kept = true));
    await disk.asked();
    await pause(50);
    expect(await ledger.getMeta('reconciler-a')).to.equal('1');
    expect(kept).to.equal(false);
    await disk.answer();
    await note;
    expect(kept).to.equal(true);
  });

  it('needs only one more commit and sync for everything that is requested while the disk is busy', async () => {
    const first = ledger.setMeta('reconciler-0', '0');
    await disk.asked();
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

  it('after the disk fails, leaves the outcome unknown, and writes nothing until the server is restarted', async () => {
    const note = outcomeOf(ledger.setMeta('reconciler-a', '1'));
    await disk.asked();
    const behind = outcomeOf(ledger.setMeta('reconciler-b', '1'));
    await disk.answer(Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' }));
    expect(await note).to.match(/^unknown: The disk did not confirm a commit \(EIO/);
    const refusal = /^failed: The disk of the ledger failed .*Check the disk, then start the server again/;
    expect(await behind).to.match(refusal);
    expect(await outcomeOf(ledger.setMeta('reconciler-c', '1'))).to.match(refusal);
    expect(disk.waiting).to.have.length(0);
    expect(await ledger.counts()).to.be.an('object');
  });

  it('closes only after the disk has all earlier writes, whoever closes it', async () => {
    const note = ledger.setMeta('reconciler-a', '1');
    let closed = 0;
    const closing = [ledger.close(), ledger.close()].map(end => end.then(() => (closed += 1)));
    await disk.asked();
    await pause(30);
    expect(closed).to.equal(0);
    await disk.answer();
    await note;
    await Promise.all(closing);
  });

  it('treats a disk that does not answer like one that failed, so that no caller waits forever', async () => {
    const real = globalThis.setTimeout;
    globalThis.setTimeout = ((run: () => void, ms?: number) =>
      real(run, ms === 20_000 ? 30 : ms)) as typeof setTimeout;
    try {
      expect(await outcomeOf(ledger.setMeta('reconciler-a', '1'))).to.match(
        /^unknown: .*no answer within 20 s/,
      );
      expect(await outcomeOf(ledger.check())).to.match(/^failed: The disk of the ledger failed/);
    } finally {
      globalThis.setTimeout = real;
    }
    await ledger.close();
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
