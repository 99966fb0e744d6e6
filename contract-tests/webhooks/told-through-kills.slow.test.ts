import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { openLedger, type OutboxEvent } from '../../src/ledger/store.js';
import { repeated } from '../support/extent.js';
import { freePort } from '../support/free-port.js';
import { onEachEngine, type LedgerPlace, forServer } from '../support/ledger-places.js';
import { OWNER } from '../support/ledgers.js';
import { pythonEnvironment } from '../support/python-environment.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const SERVER = fileURLToPath(new URL('./telling-server.js', import.meta.url));
const SECRET = Buffer.alloc(32, 9).toString('base64');
const KILLS = repeated(50, 4);

/** The receiver's code, as the how-to shows it. */
function receiverOf(language: 'js' | 'python'): string {
  const page = readFileSync(join(ROOT, 'docs/how-to/be-told.md'), 'utf8');
  return new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'ms').exec(page)?.[1] ?? '';
}

type Received = { id: string; type: string; payment: string | undefined };

let folder: string;
let port: number;
let received: Received[];
const children = new Set<ChildProcess>();

function start(
  command: string,
  args: string[],
  env: Record<string, string>,
): { child: ChildProcess; lines: AsyncIterable<string> } {
  const child = spawn(command, args, {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  children.add(child);
  return { child, lines: createInterface({ input: child.stdout }) };
}

async function kill(child: ChildProcess): Promise<void> {
  children.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

/** Records what the receiver prints: each event that it has verified. */
function receive(command: string, args: string[]): ChildProcess {
  const { child, lines } = start(command, args, { PORT: String(port), WEBHOOK_SECRET: `whsec_${SECRET}` });
  void (async () => {
    for await (const line of lines) {
      const [id = '', type = ''] = line.split(' ');
      received.push({ id, type, payment: /"?payment'?"?: ?["']([0-9a-f]{64})/.exec(line)?.[1] });
    }
  })();
  return child;
}

/** A server, and the lines that it prints after the first. */
async function serve(
  place: LedgerPlace,
  sales: number,
): Promise<{ child: ChildProcess; line: () => Promise<unknown> }> {
  const env = { DATABASE_URL: place.url, WEBHOOK: `http://127.0.0.1:${port}/`, SECRET, SALES: String(sales) };
  const { child, lines } = start(process.execPath, [SERVER], env);
  const reader = lines[Symbol.asyncIterator]();
  const line = async (): Promise<unknown> => (await reader.next()).value;
  expect(await line()).to.equal('ready');
  return { child, line };
}

/**
 * Waits until all events have been delivered. @returns all of the events. SQLite allows one server, so the
 * server ends before the ledger is read.
 */
async function allTold(place: LedgerPlace): Promise<OutboxEvent[]> {
  const { child, line } = await serve(place, 0);
  expect(await line()).to.equal('told');
  await kill(child);
  const ledger = await openLedger({ ...forServer(place.url), ...OWNER });
  try {
    return (await ledger.events(1_000)).toReversed();
  } finally {
    await ledger.close();
  }
}

onEachEngine('Events while server and receiver are killed', (make, engine) => {
  let place: LedgerPlace;

  beforeEach(async () => {
    place = await make();
    folder = mkdtempSync(join(ROOT, 'dist', 'told-'));
    port = await freePort();
    received = [];
  });

  afterEach(async () => {
    for (const child of children) await kill(child).catch(() => {});
    rmSync(folder, { recursive: true, force: true });
    await place.remove();
  });

  async function survives(command: string, args: string[], kills: number): Promise<void> {
    let receiver = receive(command, args);
    for (let n = 0; n < kills; n++) {
      const { child: server } = await serve(place, 6);
      await wait(100 + ((n * 37) % 400));
      if (n % 2) {
        await kill(receiver);
        receiver = receive(command, args);
      }
      await kill(server);
    }
    const events = await allTold(place);
    expect(events.length).to.be.greaterThan(kills);
    const ids = new Set(received.map(({ id }) => id));
    expect(events.filter(({ id }) => !ids.has(id))).to.deep.equal([]);
    expect([...ids].filter(id => !events.some(event => event.id === id))).to.deep.equal([]);
    const firsts = received.filter((each, at) => received.findIndex(({ id }) => id === each.id) === at);
    for (const payment of new Set(events.map(({ subject }) => subject))) {
      const kinds = firsts.filter(each => each.payment === payment).map(({ type }) => type);
      expect(kinds, payment).to.deep.equal(
        events.filter(({ subject }) => subject === payment).map(({ kind }) => kind),
      );
    }
  }

  it(`arrive at least once, in order for each payment, at the receiver from the how-to (${KILLS} kills)`, async function () {
    // On PostgreSQL, each server waits half a minute for the leases of the previous one.
    if (engine === 'PostgreSQL' && KILLS < 50) return this.skip();
    this.timeout(600_000);
    const file = join(folder, 'receiver.mjs');
    writeFileSync(file, receiverOf('js'));
    await survives(process.execPath, [file], KILLS);
  });

  it("arrive at the how-to's receiver in Python, with the package that it uses", async function () {
    const kills = repeated(10, 0);
    if (kills === 0) return this.skip();
    this.timeout(600_000);
    const requirements = join(folder, 'requirements.txt');
    writeFileSync(requirements, 'standardwebhooks==1.1.0\n');
    const found = pythonEnvironment(
      join(ROOT, 'contract-tests', 'webhooks', '.venv'),
      requirements,
      'standardwebhooks',
    );
    if ('stopped' in found) return this.skip();
    const file = join(folder, 'receiver.py');
    writeFileSync(file, receiverOf('python'));
    await survives(join(found.bin, 'python'), [file], kills);
  });
});
