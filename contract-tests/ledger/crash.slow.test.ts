import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect } from 'chai';
import Database from 'libsql';
import { openLedger } from '../../src/ledger/store.js';
import type { ClaimRequest, Ledger } from '../../src/ledger/store.js';
import { OWNER, payment as aPayment } from '../support/ledgers.js';

const STORE = new URL('../../src/ledger/store.js', import.meta.url).href;

const payment = (id: string): ClaimRequest =>
  aPayment({
    id,
    after: 1,
    position: 1,
    leaseMs: 600_000,
    limits: { maxUnsettledPerPayer: 10 ** 6, maxUnsettledAmountPerPayer: 10n ** 15n, maxRuns: 3 },
  });

/** A server process: opens the ledger, prints `open`, and then claims and settles as fast as it can if told to. */
const CHILD = `
  const { openLedger } = await import(process.env.STORE);
  const { randomBytes } = await import('node:crypto');
  const { writeSync } = await import('node:fs');
  const say = line => writeSync(1, line + '\\n');
  const payment = id => ({ ...JSON.parse(process.env.PAYMENT), id, amount: 10000n,
    limits: { maxUnsettledPerPayer: 1e6, maxUnsettledAmountPerPayer: 10n ** 15n, maxRuns: 3 } });
  const body = Buffer.alloc(20000, 7);
  try {
    const ledger = await openLedger({ url: process.env.LEDGER_URL, payTo: process.env.PAYTO, network: process.env.NET });
    say('open');
    const work = async () => {
      for (;;) {
        const id = randomBytes(32).toString('hex');
        const { claim } = await ledger.claim(payment(id));
        say('claimed ' + id);
        await ledger.saveAnswer(id, claim, { status: 200, headers: {}, body });
        say('answered ' + id);
        await ledger.settle(id, claim, { newestLocal: 1 });
        say('settling ' + id);
        await ledger.deliver(id, claim, { settlement: 's', answerExpiresAt: 9e15 });
        say('delivered ' + id);
      }
    };
    if (process.env.WORK) await Promise.all(Array.from({ length: 8 }, work));
    else setInterval(() => {}, 1000);
  } catch (error) {
    say('fault ' + error.name + ' ' + error.code + ' ' + error.message);
    process.exitCode = 3;
  }
`;

type Child = { process: ChildProcess; lines: string[]; until: (count: number) => Promise<void> };

describe('ledger: crashes and files', function () {
  this.timeout(60_000);
  let folder: string;
  const children: ChildProcess[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coinslot-crash-'));
  });

  afterEach(async () => {
    for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });

  const url = (name = 'ledger.db'): string => `file:${join(folder, name)}`;
  const open = (): Promise<Ledger> => openLedger({ url: url(), ...OWNER });

  function start(env: Record<string, string> = {}, wrapper: string[] = [], uid?: number): Child {
    // The child fills in what JSON can't carry.
    const plain = { ...payment(''), amount: undefined, limits: undefined };
    const command = [...wrapper, process.execPath, '--input-type=module', '-e', CHILD];
    const [program = process.execPath, ...args] = command;
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      ...(uid === undefined ? {} : { uid, gid: uid }),
      env: {
        PATH: process.env['PATH'],
        STORE,
        LEDGER_URL: url(),
        PAYTO: OWNER.payTo,
        NET: OWNER.network,
        PAYMENT: JSON.stringify(plain),
        ...env,
      },
    });
    children.push(child);
    const lines: string[] = [];
    let wake = (): void => undefined;
    const reader = createInterface({ input: child.stdout });
    reader.on('line', line => {
      lines.push(line);
      wake();
    });
    const ended = once(reader, 'close');
    const until = async (count: number): Promise<void> => {
      while (lines.length < count) {
        const next = new Promise<'line'>(resolve => (wake = () => resolve('line')));
        if ((await Promise.race([next, ended])) !== 'line' && lines.length < count)
          throw new Error(`the child ended after: ${lines.join(' | ')}`);
      }
    };
    return { process: child, lines, until };
  }

  async function kill(child: Child): Promise<void> {
    const closed = once(child.process, 'close');
    child.process.kill('SIGKILL');
    await closed;
  }

  it('keeps every acknowledged claim, answer and move through ten kills in the middle of writes', async () => {
    for (let round = 0; round < 10; round += 1) {
      const child = start({ WORK: '1' });
      await child.until(60 + Math.floor(Math.random() * 200));
      await kill(child);
      const ledger = await open();
      const ranks = ['claimed', 'settling', 'delivered'];
      for (const line of child.lines.slice(1)) {
        const [said = '', id = ''] = line.split(' ');
        if (id.length !== 64) continue; // The last line may be incomplete.
        const row = await ledger.find(id);
        expect(row, `lost after "${said}"`).to.not.equal(undefined);
        if (said === 'answered') expect((await ledger.answer(id))?.body.length).to.equal(20_000);
        else expect(ranks.indexOf(row?.state ?? '')).to.be.at.least(ranks.indexOf(said));
      }
      await ledger.close();
    }
  });

  it('ends the leases of a killed server immediately and keeps its count of runs', async () => {
    const child = start({ WORK: '1' });
    await child.until(30);
    await kill(child);
    const ledger = await open();
    const [left] = await ledger.list({ state: 'claimed' });
    if (left) expect(await ledger.claim(payment(left.id))).to.include({ kind: 'claimed', run: 2 });
    const id = randomBytes(32).toString('hex');
    await ledger.claim(payment(id));
    await ledger.close();
    const next = await open();
    expect(await next.claim(payment(id))).to.include({ kind: 'claimed', run: 2 });
    await next.close();
  });

  it('refuses a second server on the same file, even through a link, explains why, and accepts one after the first was killed', async () => {
    const first = start();
    await first.until(1);
    await symlink(folder, `${folder}-link`);
    try {
      for (const path of [url(), `file:${folder}-link/ledger.db`]) {
        const error = await openLedger({ url: path, ...OWNER }).catch((thrown: unknown) => thrown);
        expect(error).to.include({ name: 'LedgerFault', code: 'open' });
        expect((error as Error).message)
          .to.include('another running server')
          .and.include('postgres://');
      }
    } finally {
      await rm(`${folder}-link`);
    }
    await kill(first);
    await (await open()).close();
  });

  it('refuses a second server in the same process, and leaves the first one unaffected', async () => {
    const first = await open();
    expect(await open().catch((thrown: unknown) => thrown)).to.include({ name: 'LedgerFault', code: 'open' });
    const other = start();
    await other.until(1);
    expect(other.lines[0]).to.match(/^fault LedgerFault open .*another running server/);
    expect((await first.claim(payment('c'.repeat(64)))).kind).to.equal('claimed');
    await first.close();
  });

  it('refuses a ledger with a newer schema', async () => {
    await (await open()).close();
    const raw = new Database(join(folder, 'ledger.db'));
    // A schema that older programs can't use.
    raw.exec(`update meta set value = '999' where key in ('schema', 'least')`);
    raw.close();
    const error = (await open().catch((thrown: unknown) => thrown)) as Error;
    expect(error.message).to.include('schema version 999').and.include('newer program');
  });

  it('refuses a file that is not a ledger, a folder in place of a file, and a file in place of a folder', async () => {
    await writeFile(join(folder, 'ledger.db'), 'this is not a database '.repeat(500));
    for (const bad of [url(), url('ledger.db/below.db'), `file:${folder}`]) {
      const error = (await openLedger({ url: bad, ...OWNER }).catch((thrown: unknown) => thrown)) as Error;
      expect(error).to.include({ name: 'LedgerFault', code: 'open' });
      expect(error.message).to.include("can't be opened").and.include('STATE_DIR');
    }
  });

  it('refuses a folder that it may not write to, and explains why', async function () {
    await chmod(folder, 0o555);
    // Root can write anywhere, so an unprivileged child process tries it.
    const child = start({}, [], process.getuid?.() === 0 ? 65_534 : undefined);
    await child.until(1).catch(() => this.skip());
    await chmod(folder, 0o755);
    expect(child.lines[0]).to.match(/^fault LedgerFault open .*can't be opened .*STATE_DIR/);
  });

  it('fails with an explanation when the disk is full, and keeps what was acknowledged', async () => {
    const full = ['/bin/sh', '-c', 'trap "" XFSZ; ulimit -f 3000; exec "$@"', 'sh'];
    const child = start({ WORK: '1' }, full);
    await once(child.process, 'close');
    const last = child.lines.at(-1) ?? '';
    expect(last).to.match(/^fault LedgerFault (failed|unknown) The ledger .*(disk|commit)/);
    const ledger = await open();
    const acknowledged = child.lines.filter(line => line.startsWith('delivered'));
    expect(acknowledged).to.not.have.length(0);
    for (const line of acknowledged)
      expect((await ledger.find(line.split(' ')[1] ?? ''))?.state).to.equal('delivered');
    await ledger.close();
  });
});
