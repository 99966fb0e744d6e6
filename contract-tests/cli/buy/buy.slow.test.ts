import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { rows } from '../../support/extent.js';
import { refusedSettlement } from '../../support/refused-settlement.js';
import { standStill } from '../../support/standing-rpc.js';
import type { PendingPayment } from '../../../src/wallet/purse.js';
import { openWorld, TEXT, type World } from '../../support/world.js';
import { priceOf } from '../../support/sold.js';

const BUYER = fileURLToPath(new URL('../../../src/cli/buy/main.js', import.meta.url));
const RUN_MS = 40_000;

type Bought = { code: number | null; out: string; err: string };
type Relay = (
  pass: () => Promise<Response>,
  request: { path: string; payment: string | undefined },
) => Promise<Response | 'drop'>;

describe('npm run buy', function () {
  this.timeout(60_000);
  let world: World;
  let folder: string;
  /** A call that no other test makes. */
  let body: string;
  let calls = 0;
  const children: ChildProcess[] = [];
  const servers: Server[] = [];

  before(async () => {
    world = await openWorld();
    folder = join(world.stateDir, 'caller');
    await mkdir(folder);
  });
  after(() => world.close());
  beforeEach(() => void (body = JSON.stringify({ text: `${TEXT} This is call number ${++calls}.` })));
  afterEach(async () => {
    world.facilitator.intervene(undefined);
    world.rpc.intervene(undefined);
    await rm(wallets(), { recursive: true, force: true });
    for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGKILL');
    for (const server of servers.splice(0)) server.close().closeAllConnections();
  });

  function launch(
    args: string[],
    env: Record<string, string> = {},
  ): { child: ChildProcess; done: Promise<Bought>; err: () => string } {
    const child = spawn(process.execPath, [BUYER, ...args], {
      cwd: world.stateDir,
      env: {
        PATH: process.env['PATH'] ?? '',
        STATE_DIR: world.stateDir,
        SOLANA_RPC_URL: world.sandbox.rpc.url,
        INIT_CWD: folder,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.push(child);
    let [out, err] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    const timer = setTimeout(() => child.kill('SIGKILL'), RUN_MS);
    const done = once(child, 'close').then(([code]) => {
      clearTimeout(timer);
      return { code: code as number | null, out, err };
    });
    return { child, done, err: () => err };
  }

  const buy = (operation: string, body: string, ...more: string[]): Promise<Bought> =>
    launch([operation, body, '--url', world.url, ...more]).done;
  const failed = ({ code, out }: Bought): void => {
    expect(code).to.equal(1);
    expect(out).to.equal('');
  };
  const wallets = (): string => join(world.stateDir, 'wallets');
  const walletFile = (): string => join(wallets(), world.sandbox.info.buyer, 'wallet.json');
  const pending = async (): Promise<PendingPayment[]> => {
    const text = await readFile(walletFile(), 'utf8').catch(() => '{"pending":[]}');
    return (JSON.parse(text) as { pending: PendingPayment[] }).pending;
  };

  async function serverOf(listener: Parameters<typeof createServer>[1]): Promise<string> {
    const server = createServer(listener).listen(0, '127.0.0.1');
    servers.push(server);
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** A proxy between buyer and server that can answer in the server's place or cut the connection. */
  async function relayed(relay: Relay): Promise<string> {
    return serverOf((request, response) => {
      const handle = async (): Promise<void> => {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk as Buffer);
        const { method = 'GET', url: path = '/' } = request;
        const payment = request.headers['payment-signature'] as string | undefined;
        const headers = {
          'content-type': 'application/json',
          ...(payment ? { 'PAYMENT-SIGNATURE': payment } : {}),
        };
        const sent = method === 'POST' ? Buffer.concat(chunks) : null;
        const pass = (): Promise<Response> => fetch(world.url + path, { method, headers, body: sent });
        const answer = await relay(pass, { path, payment });
        if (answer === 'drop') return void response.destroy();
        const kept = ['payment-required', 'payment-response', 'content-type', 'retry-after'];
        for (const name of kept)
          if (answer.headers.has(name)) response.setHeader(name, answer.headers.get(name)!);
        response.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()));
      };
      handle().catch(() => response.destroy());
    });
  }

  it('prints the answer alone on stdout, as plain JSON in a pipe, and price, payer and receipt on stderr', async () => {
    const earned = await world.earned();
    const { code, out, err } = await buy('summarize', body);
    expect(code, err).to.equal(0);
    expect(out).to.match(/^\{.*\}\n$/);
    expect(JSON.parse(out)).to.have.property('summary').that.includes('harbour');
    expect(err).to.include('0.01 USDC').and.to.include(world.sandbox.info.buyer);
    const signature = /Receipt: (\S+)/.exec(err)?.[1] ?? '';
    const { value } = await world.connection.getSignatureStatuses([signature]);
    expect(value[0]).to.include({ err: null });
    expect(await world.earned()).to.equal(earned + priceOf('summarize'));
    expect(await pending()).to.deep.equal([]);
  });

  it('gives each purchase a payment-identifier of its own, which every retry repeats', async () => {
    const ids: string[] = [];
    let drops = 1;
    const url = await relayed((pass, { payment }) => {
      if (payment === undefined) return pass();
      const { extensions } = JSON.parse(Buffer.from(payment, 'base64').toString('utf8')) as {
        extensions: { 'payment-identifier': { info: { id: string } } };
      };
      ids.push(extensions['payment-identifier'].info.id);
      return drops-- > 0 ? Promise.resolve('drop' as const) : pass();
    });
    for (let purchase = 0; purchase < 2; purchase++)
      expect((await launch(['summarize', body, '--url', url]).done).code).to.equal(0);
    expect(ids).to.have.length(3);
    expect(ids[0]).to.match(/^buy-[0-9a-f-]{36}$/);
    expect(ids[1]).to.equal(ids[0]);
    expect(ids[2]).not.to.equal(ids[0]);
  });

  it('a free operation prints its JSON and needs neither a key pair nor money', async () => {
    const earned = await world.earned();
    const { code, out, err } = await launch(['getHealth', '--url', world.url], { STATE_DIR: folder }).done;
    expect(code, err).to.equal(0);
    expect(JSON.parse(out)).to.have.property('uptimeSeconds');
    expect(await world.earned()).to.equal(earned);
  });

  it('reports in one sentence each error that it finds before it pays, and pays nothing', async () => {
    const earned = await world.earned();
    const [empty, broken] = [join(folder, 'empty.json'), join(folder, 'broken.json')];
    await writeFile(empty, JSON.stringify([...Keypair.generate().secretKey]));
    await writeFile(broken, '"no key"');
    const elsewhere = await serverOf((_request, response) => response.end('<html>'));
    const cases: [RegExp, string[]][] = [
      [/^Usage: npx coinslot buy </, []],
      [/There is no option --cheap[^]*Usage:/, ['summarize', body, '--cheap']],
      [
        /No server answers at http:\/\/127\.0\.0\.1:1: start one with npm start/,
        ['summarize', body, '--url', 'http://127.0.0.1:1'],
      ],
      [/is this a Coinslot server\?/, ['summarize', body, '--url', elsewhere]],
      [/There is no operation sumarize\. Operations: .*summarize/, ['sumarize', body, '--url', world.url]],
      [
        /price is 0\.01 USDC, more than your limit of 0\.009/,
        ['summarize', body, '--url', world.url, '--max-price', '0.009'],
      ],
      [/--max-price .*\S/, ['summarize', body, '--url', world.url, '--max-price', 'cheap']],
      [/--timeout must be/, ['summarize', body, '--url', world.url, '--timeout', '0']],
      [
        /Not enough USDC: \S+ has 0\S* USDC, but the call costs 0\.01/,
        ['summarize', body, '--url', world.url, '--keypair', 'empty.json'],
      ],
      [
        /broken\.json is not a keypair file/,
        ['summarize', body, '--url', world.url, '--keypair', 'broken.json'],
      ],
    ];
    const run = rows(cases);
    for (let at = 0; at < run.length; at += 2) {
      const pair = run.slice(at, at + 2).map(async ([says, args]) => {
        const bought = await launch(args).done;
        failed(bought);
        expect(bought.err)
          .to.match(says)
          .and.to.not.match(/^\s+at /m);
      });
      await Promise.all(pair);
    }
    expect(await world.earned()).to.equal(earned);
    expect(await pending()).to.deep.equal([]);
  });

  it('a body that the server rejects or that is not JSON: 400, and nothing is charged', async () => {
    const earned = await world.earned();
    const [invalid, garbage] = await Promise.all([
      buy('summarize', '{"text":7}'),
      buy('summarize', '{"text":'),
    ]);
    for (const bought of [invalid, garbage]) failed(bought);
    expect(invalid.err).to.match(/rejected the call: .*text/);
    expect(garbage.err).to.match(/rejected the call: .*JSON/);
    for (const { err } of [invalid, garbage]) {
      expect(err.match(/not charged/gi), err).to.have.length(1);
      expect(err).to.match(/Correct it and run the command again\.$/m);
    }
    expect(await world.earned()).to.equal(earned);
  });

  it('after a refused body, says no more about the money than the server does', async () => {
    const says: [string, number][] = [
      ['text is empty. You were not charged; correct the body and sign a new payment.', 1],
      ['There is no such mint. You were not charged.', 1],
      ['This payment-identifier was used for another call. You were not charged; use a new id', 1],
      [
        'text is empty. This payment was used for an earlier call: send that call again, or sign a new payment for this one.',
        0,
      ],
    ];
    for (const [error, times] of rows(says)) {
      const url = await relayed(async (pass, { payment }) =>
        payment === undefined ? pass() : Response.json({ error }, { status: 400 }),
      );
      const bought = await launch(['summarize', body, '--url', url]).done;
      failed(bought);
      expect(bought.err.match(/charged/g) ?? [], bought.err).to.have.length(times);
      expect(bought.err).to.match(/rejected the call: .*\. Correct it and run the command again\.$/m);
    }
  });

  it('a refused payment: says why, exits with 1, and keeps it, because the server could still settle it', async () => {
    world.facilitator.intervene(async ({ path, forward, respond }) => {
      if (path === '/settle') return respond(200, refusedSettlement('insufficient_funds'));
      const { status, body } = await forward();
      respond(status, body);
    });
    const earned = await world.earned();
    const bought = await buy('summarize', body);
    failed(bought);
    expect(bought.err).to.match(
      /refused the payment: .*insufficient_funds.*A new payment is signed only once this one can no longer be settled/,
    );
    expect(await world.earned()).to.equal(earned);
    world.facilitator.intervene(undefined);
    const again = await buy('summarize', body);
    failed(again);
    expect(again.err)
      .to.include('Continuing with a payment')
      .and.to.include('A new payment is signed only once this one can no longer be settled');
    expect(await world.earned()).to.equal(earned);
    expect(await pending()).to.have.lengthOf(1);
  });

  it("writes audio to --out or a file that it names itself, and keeps the payment if it can't", async () => {
    const text = JSON.stringify({ text: 'Mind the gap.' });
    const named = await buy('textToSpeech', text, '--out', 'gap.wav');
    expect(named.code, named.err).to.equal(0);
    expect(named.out).to.equal('');
    const bytes = await readFile(join(folder, 'gap.wav'));
    expect(bytes.subarray(0, 4).toString()).to.equal('RIFF');
    expect(named.err).to.include(`${join(folder, 'gap.wav')} (${bytes.length} bytes)`);

    const earned = await world.earned();
    const lost = await buy('textToSpeech', text, '--out', 'no/such/folder/gap.wav');
    failed(lost);
    expect(lost.err).to.match(/could not be saved.*payment is kept/);
    expect(await world.earned()).to.equal(earned + priceOf('textToSpeech'));
    const unnamed = await buy('textToSpeech', text);
    expect(unnamed.code, unnamed.err).to.equal(0);
    expect(unnamed.err).to.include('Continuing with a payment');
    expect(await world.earned()).to.equal(earned + priceOf('textToSpeech'));
    const [file] = (await readdir(folder)).filter(name => /^textToSpeech-\d{4}-.*\.wav$/.test(name));
    expect((await readFile(join(folder, file!))).subarray(8, 12).toString()).to.equal('WAVE');
    expect(await pending()).to.deep.equal([]);
  });

  it('is killed while the server holds the call, and the next run continues with the same payment and pays once', async () => {
    const earned = await world.earned();
    let reached = (): void => undefined;
    const settling = new Promise<void>(resolve => (reached = resolve));
    let release = (): void => undefined;
    const released = new Promise<void>(resolve => (release = resolve));
    world.facilitator.intervene(async ({ path, forward, respond }) => {
      if (path === '/settle') {
        reached();
        await released;
      }
      const { status, body } = await forward();
      respond(status, body);
    });
    const first = launch(['summarize', body, '--url', world.url]);
    await settling;
    expect(await pending()).to.have.lengthOf(1);
    first.child.kill('SIGKILL');
    await first.done;
    expect(await world.earned()).to.equal(earned);
    const second = launch(['summarize', body, '--url', world.url]);
    while (!second.err().includes('Continuing with a payment')) await sleep(20);
    release();
    const { code, out, err } = await second.done;
    expect(code, err).to.equal(0);
    expect(JSON.parse(out)).to.have.property('summary');
    expect(await world.earned()).to.equal(earned + priceOf('summarize'));
    expect(await pending()).to.deep.equal([]);
  });

  it('sends the same payment again after a 503 that asks for it, and after a lost connection', async () => {
    const earned = await world.earned();
    const sent: { payment: string; at: number }[] = [];
    const url = await relayed(async (pass, { payment }) => {
      if (payment === undefined) return pass();
      sent.push({ payment, at: Date.now() });
      if (sent.length === 1)
        return Response.json({ error: 'Busy.' }, { status: 503, headers: { 'Retry-After': '2' } });
      const answer = await pass();
      return sent.length === 2 ? 'drop' : answer;
    });
    const { code, out, err } = await launch(['summarize', body, '--url', url]).done;
    expect(code, err).to.equal(0);
    expect(JSON.parse(out)).to.have.property('summary');
    expect(sent).to.have.lengthOf(3);
    expect(new Set(sent.map(({ payment }) => payment))).to.have.lengthOf(1);
    expect(sent[1]!.at - sent[0]!.at).to.be.at.least(1_900);
    expect(err)
      .to.match(/Busy\. Sending the same payment again in 2 s\./)
      .and.to.match(/connection lost/);
    expect(await world.earned()).to.equal(earned + priceOf('summarize'));
  });

  it('gives up after --timeout and keeps the payment; a later run gets the answer without paying again', async () => {
    const earned = await world.earned();
    let away: 'held' | 'busy' | undefined = 'held';
    const url = await relayed(async (pass, { payment }) => {
      if (payment === undefined) return pass();
      const answer = await pass();
      if (away === 'held') return new Promise(() => undefined);
      return away === 'busy' ? Response.json({ error: 'Busy.' }, { status: 503 }) : answer;
    });
    const held = await launch(['summarize', body, '--url', url, '--timeout', '1.5']).done;
    failed(held);
    expect(held.err).to.match(/No answer within 1\.5 s: .*\n.*payment is kept/);
    away = 'busy';
    const busy = await launch(['summarize', body, '--url', url, '--timeout', '1']).done;
    failed(busy);
    expect(busy.err).to.match(/No answer within 1 s: Busy\./);
    expect(await pending()).to.have.lengthOf(1);
    away = undefined;
    const { code, err } = await launch(['summarize', body, '--url', url]).done;
    expect(code, err).to.equal(0);
    expect(await world.earned()).to.equal(earned + priceOf('summarize'));
    expect(await pending()).to.deep.equal([]);
  });

  it('keeps the payment of an order whose work failed: the next run continues with it instead of paying again', async () => {
    const receipt = {
      success: true,
      transaction: '',
      network: world.sandbox.info.network,
      payer: world.sandbox.info.buyer,
    };
    const header = { 'PAYMENT-RESPONSE': Buffer.from(JSON.stringify(receipt)).toString('base64') };
    const payments = new Set<string>();
    const url = await relayed(async (pass, { payment }) => {
      if (payment === undefined) return pass();
      payments.add(payment);
      return Response.json({ error: 'Nobody replied.' }, { status: 502, headers: header });
    });
    for (let run = 0; run < 2; run++) {
      const bought = await launch(['summarize', body, '--url', url]).done;
      failed(bought);
      expect(bought.err).to.include('Nobody replied.').and.to.include('The payment was charged and is kept');
    }
    expect(payments).to.have.lengthOf(1);
    expect(await pending()).to.have.lengthOf(1);
  });

  it('says after Ctrl-C that nothing was paid or where the payment is saved, and the next run pays once', async () => {
    const earned = await world.earned();
    let [unpaid, paid] = [(): void => {}, (): void => {}];
    let hold: 'unpaid' | 'paid' | undefined = 'unpaid';
    const held = new Promise<void>(done => (unpaid = done));
    const sent = new Promise<void>(done => (paid = done));
    const url = await relayed(async (pass, { path, payment }) => {
      if (path.endsWith('openapi.json') || hold === undefined) return pass();
      if (payment === undefined && hold === 'paid') return pass();
      (payment === undefined ? unpaid : paid)();
      return new Promise<Response>(() => {});
    });
    const first = launch(['summarize', body, '--url', url]);
    await held;
    first.child.kill('SIGINT');
    expect(await first.done).to.have.property('code', 130);
    expect(first.err()).to.include('Interrupted. Nothing was paid.');
    hold = 'paid';
    const second = launch(['summarize', body, '--url', url]);
    await sent;
    second.child.kill('SIGINT');
    expect(await second.done).to.have.property('code', 130);
    expect(await pending()).to.have.lengthOf(1);
    expect(second.err()).to.match(
      /Interrupted\. The payment is saved in .*wallets.*\. Run the same command again to get/,
    );
    hold = undefined;
    const { code, err } = await launch(['summarize', body, '--url', url]).done;
    expect(code, err).to.equal(0);
    expect(await world.earned()).to.equal(earned + priceOf('summarize'));
  });

  it('drops a payment that was refunded: the next run signs another one and gets its answer', async () => {
    const receipt = {
      success: false,
      errorReason: 'refunded',
      transaction: 'the transfer',
      network: world.sandbox.info.network,
      payer: world.sandbox.info.buyer,
    };
    const header = { 'PAYMENT-RESPONSE': Buffer.from(JSON.stringify(receipt)).toString('base64') };
    const error = 'This payment was refunded (transaction R): sign a new one';
    const payments: string[] = [];
    const url = await relayed(async (pass, { payment }) => {
      if (payment === undefined || payments.push(payment) > 1) return pass();
      return Response.json({ error }, { status: 502, headers: header });
    });
    const refunded = await launch(['summarize', body, '--url', url]).done;
    failed(refunded);
    expect(refunded.err)
      .to.include(error)
      .and.to.include('The wallet has closed the payment')
      .and.not.to.include('kept');
    expect(await pending()).to.deep.equal([]);
    const { code, err } = await launch(['summarize', body, '--url', url]).done;
    expect(code, err).to.equal(0);
    expect(new Set(payments).size).to.equal(2);
  });

  it("keeps a refused payment until the chain proves that it can't land, and only then signs another one", async () => {
    const earned = await world.earned();
    let refusing = true;
    const payments: string[] = [];
    const url = await relayed((pass, { path, payment }) => {
      if (payment === undefined) return pass();
      payments.push(payment);
      // A call without a payment is refused, and the shop chooses the text of that refusal.
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
      return refusing || payment === payments[0] ? fetch(world.url + path, init) : pass();
    });
    const env = { SOLANA_RPC_URL: world.rpc.url };
    const run = (): Promise<Bought> => launch(['summarize', body, '--url', url], env).done;
    for (let again = 0; again < 2; again++) {
      const refused = await run();
      failed(refused);
      expect(refused.err).to.match(
        /A new payment is signed only once this one can no longer be settled: .*\n.*payment is kept/,
      );
    }
    expect([payments.length, new Set(payments).size, (await pending()).length]).to.deep.equal([2, 1, 1]);

    const state = JSON.parse(await readFile(walletFile(), 'utf8')) as { pending: PendingPayment[] };
    for (const each of state.pending) {
      each.signedAt -= 10 * 60_000;
      if (each.signedOnChain) each.signedOnChain.time -= 10 * 60_000;
    }
    await writeFile(walletFile(), JSON.stringify(state));
    standStill(world.rpc, Date.now() - 11 * 60_000);
    expect((await run()).err).to.include(
      'A new payment is signed only once this one can no longer be settled: the RPC server does not show',
    );
    expect(new Set(payments).size, 'the clock of this machine proves nothing').to.equal(1);

    standStill(world.rpc, Date.now());
    refusing = false;
    const { code, err } = await run();
    expect(code, err).to.equal(0);
    expect(new Set(payments).size).to.equal(2);
    expect(await world.earned()).to.equal(earned + priceOf('summarize'));
    expect(await pending()).to.deep.equal([]);
  });

  it('finds a payment that version 1.0.0 saved in its file format, continues with it and pays once', async () => {
    const earned = await world.earned();
    let cut = true;
    const payments: string[] = [];
    const url = await relayed(async (pass, { payment }) => {
      if (payment === undefined) return pass();
      payments.push(payment);
      const answer = await pass();
      return cut ? 'drop' : answer;
    });
    failed(await launch(['summarize', body, '--url', url, '--timeout', '1']).done);
    const [kept] = await pending();
    await rm(wallets(), { recursive: true });
    const keypair = Buffer.from(
      JSON.parse(await readFile(join(world.stateDir, 'buyer.json'), 'utf8')) as number[],
    );
    const name = createHash('sha256').update(`${url}/v1/summarize\n${body}\n`).update(keypair).digest('hex');
    const old = join(world.stateDir, 'pending-payments', `${name.slice(0, 32)}.json`);
    const header = { 'PAYMENT-SIGNATURE': payments[0] };
    await mkdir(join(world.stateDir, 'pending-payments'));
    await writeFile(
      old,
      JSON.stringify({ headers: header, amount: kept!.amount, payer: world.sandbox.info.buyer }),
    );
    const unreached = await launch(['summarize', body, '--url', url, '--timeout', '1']).done;
    expect(unreached.err).to.include('Continuing with a payment');
    const [adopted] = await pending();
    const known = ({
      id,
      call,
      amount,
      network,
      payTo,
      blockhash,
      transaction,
      payment,
    }: PendingPayment) => ({ id, call, amount, network, payTo, blockhash, transaction, payment });
    expect(known(adopted!)).to.deep.equal(known(kept!));
    expect(existsSync(old)).to.equal(false);
    cut = false;
    const { code, err } = await launch(['summarize', body, '--url', url]).done;
    expect(code, err).to.equal(0);
    expect(new Set(payments).size).to.equal(1);
    expect(await world.earned()).to.equal(earned + priceOf('summarize'));
    expect(await pending()).to.deep.equal([]);
  });
});
