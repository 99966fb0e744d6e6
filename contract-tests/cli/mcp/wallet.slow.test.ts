import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { rows } from '../../support/extent.js';
import { mcpRelay, type McpRelay } from '../../support/mcp-relay.js';
import type { ToolCall } from '../../support/mcp-call.js';
import { priceOf } from '../../support/sold.js';
import { COINSLOT, startWallet, type StdioWallet } from '../../support/stdio-wallet.js';
import { standStill } from '../../support/standing-rpc.js';
import { openWorld, TEXT, type World } from '../../support/world.js';

const PRICE = priceOf('summarize');

describe("coinslot mcp, the wallet for a host that can't pay", function () {
  this.timeout(120_000);
  let world: World;
  let relay: McpRelay;
  let keypair: string;
  /** A state folder for the current test alone. */
  let folder: string;
  let tests = 0;
  let texts = 0;
  const wallets: StdioWallet[] = [];

  before(async () => {
    world = await openWorld();
    relay = await mcpRelay(world.url);
    keypair = join(world.stateDir, 'payer.json');
    await copyFile(join(world.stateDir, 'buyer.json'), keypair);
    await chmod(keypair, 0o600);
  });
  after(async () => {
    relay.close();
    await world.close();
  });
  beforeEach(() => {
    folder = join(world.stateDir, `wallet-${(tests += 1)}`);
    relay.payments.length = 0;
  });
  afterEach(async () => {
    relay.intervene(undefined);
    world.rpc.intervene(undefined);
    await Promise.all(wallets.splice(0).map(wallet => wallet.close().catch(() => {})));
  });

  const optionsOf = (more: string[]): string[] => [
    ...['--url', relay.url, '--keypair', keypair, '--state', folder, '--rpc', world.rpc.url],
    ...more,
  ];
  const open = async (...more: string[]): Promise<StdioWallet> => {
    const wallet = await startWallet(optionsOf(more));
    wallets.push(wallet);
    return wallet;
  };
  const another = (): { text: string } => ({ text: `${TEXT} Edition ${(texts += 1)}.` });
  const textOf = (result: ToolCall): string => result.content.map(({ text }) => text ?? '').join('\n');
  const noteOf = (result: ToolCall): Record<string, unknown> =>
    result._meta?.['coinslot/wallet'] as Record<string, unknown>;
  const sold = (result: ToolCall): void => {
    expect(result.isError, textOf(result)).not.to.equal(true);
    expect(result.structuredContent).to.have.property('summary').that.includes('harbour bridge');
  };
  /** How many calls at PRICE the shop sells while `work` runs. */
  const salesDuring = async (work: () => Promise<unknown>): Promise<number> => {
    const before = await world.earned();
    await work();
    return Number((await world.earned()) - before) / Number(PRICE);
  };

  it('lists the tools of the shop and one of its own, pays, and reports the price and the remaining budget', async () => {
    const wallet = await open();
    const { tools } = await wallet.client.listTools();
    expect(tools.map(({ name }) => name)).to.include.members(['summarize', 'pick_up', 'wallet_statement']);
    const sales = await salesDuring(async () => {
      const result = await wallet.call('summarize', another());
      sold(result);
      expect(noteOf(result)).to.include({ paid: '0.01', left: '0.99', budget: '1.00', currency: 'USDC' });
      const { transaction } = result._meta?.['x402/payment-response'] as { transaction: string };
      expect(noteOf(result)).to.include({ transaction });
      expect(textOf(result)).to.include(
        `Paid 0.01 USDC (transaction ${transaction}). 0.99 of 1.00 USDC are left`,
      );
    });
    expect(sales).to.equal(1);
    const statement = await wallet.call('wallet_statement', {});
    expect(statement.structuredContent).to.include({ leftToday: '0.99', maxPrice: '0.05' });
    const { lines, withoutAnswer } = statement.structuredContent as Record<string, { event: string }[]>;
    expect(lines?.map(({ event }) => event)).to.deep.equal(['signed', 'answered']);
    expect(withoutAnswer).to.deep.equal([]);
    const voices = await wallet.call('listVoices', {});
    expect(voices.structuredContent).to.have.property('default');
    for (const file of ['wallet.json', 'statement.jsonl'])
      expect((await stat(join(folder, file))).mode & 0o777).to.equal(0o600);
  });

  it('gives the model only the newest lines of a long statement, at most 4 KB', async () => {
    const wallet = await open();
    for (let bought = 0; bought < 7; bought += 1) sold(await wallet.call('summarize', another()));
    const statement = await wallet.call('wallet_statement', {});
    expect(textOf(statement).length).to.be.within(2_000, 4_096);
    expect(JSON.parse(textOf(statement))).to.deep.equal(statement.structuredContent);
    const { lines, leftToday } = statement.structuredContent as Record<string, unknown>;
    expect(leftToday).to.equal('0.93');
    const written = (await readFile(join(folder, 'statement.jsonl'), 'utf8')).trim().split('\n');
    const shown = lines as unknown[];
    expect(shown).to.deep.equal(written.slice(-shown.length).map(line => JSON.parse(line) as unknown));
  });

  it('saves speech in its folder, and gives the model the path, never the bytes', async () => {
    const wallet = await open();
    const result = await wallet.call('textToSpeech', { text: 'One coin, one call.' });
    const { file, size } = result.structuredContent as { file: string; size: number };
    expect(file.startsWith(join(folder, 'answers', 'textToSpeech-'))).to.equal(true);
    const bytes = await readFile(file);
    expect([bytes.toString('latin1', 0, 4), bytes.length]).to.deep.equal(['RIFF', size]);
    expect(textOf(result)).to.include(`The answer is in the file ${file} (audio/wav, ${size} bytes).`);
    expect(JSON.stringify(result.content).length).to.be.lessThan(1_000);
    const key = (result._meta?.['coinslot/pick-up'] as { key: string }).key;
    const again = await wallet.call('pick_up', { key });
    expect((again.structuredContent as { size: number }).size).to.equal(size);
  });

  it('does not pay a price above the limit', async () => {
    const wallet = await open('--max-price', '0.009999');
    const result = await wallet.call('summarize', another());
    expect(result.isError).to.equal(true);
    expect(textOf(result)).to.match(/price is 0\.01 USDC, more than .*0\.009999 USDC.*Nothing was paid/);
    expect(relay.payments).to.deep.equal([]);
  });

  it('spends nothing more once the budget is exhausted, after a restart or in another wallet with the same folder', async () => {
    const sales = await salesDuring(async () => {
      const first = await open('--budget', '0.02');
      sold(await first.call('summarize', another()));
      const last = await first.call('summarize', another());
      expect(noteOf(last)).to.include({ left: '0.00' });
      const second = await open('--budget', '0.02');
      await first.close();
      const third = await open('--budget', '0.02');
      for (const wallet of [second, third]) {
        const result = await wallet.call('summarize', another());
        expect(result.isError).to.equal(true);
        expect(textOf(result)).to.match(/only 0\.00 USDC of today's budget is left. Nothing was paid/);
      }
    });
    expect(sales).to.equal(2);
    expect(relay.payments).to.have.lengthOf(2);
  });

  it('spends no more than one budget in two wallets that share a folder', async () => {
    const both = await Promise.all([open('--budget', '0.05'), open('--budget', '0.05')]);
    const results: ToolCall[] = [];
    const sales = await salesDuring(async () => {
      const calls = both.flatMap(wallet => [1, 2, 3, 4].map(() => wallet.call('summarize', another())));
      results.push(...(await Promise.all(calls)));
    });
    expect(sales).to.equal(5);
    expect(results.filter(({ isError }) => isError)).to.have.lengthOf(3);
    expect(new Set(relay.payments).size).to.equal(5);
  });

  it('sends the same payment again if the connection is cut after it was sent, and is charged once', async () => {
    let cuts = 1;
    relay.intervene(async ({ payment, pass }) => {
      const answer = await pass();
      if (payment === undefined || cuts-- <= 0) return answer;
      await answer.arrayBuffer();
      return 'drop';
    });
    const wallet = await open();
    const sales = await salesDuring(async () => sold(await wallet.call('summarize', another())));
    expect(sales).to.equal(1);
    expect(relay.payments).to.have.lengthOf(2);
    expect(new Set(relay.payments).size).to.equal(1);
  });

  it('sends the same payment again if a stream breaks off in the middle, and is charged once', async () => {
    let cuts = 1;
    relay.intervene(async ({ payment, pass }) => {
      const answer = await pass();
      if (payment === undefined || cuts-- <= 0) return answer;
      await answer.arrayBuffer();
      const begun = new ReadableStream({
        start: controller => controller.enqueue(Buffer.from(': wait\n\n')),
        pull: controller => controller.error(new Error('cut')),
      });
      return new Response(begun, { headers: { 'content-type': 'text/event-stream' } });
    });
    const wallet = await open();
    const sales = await salesDuring(async () => sold(await wallet.call('summarize', another())));
    expect(sales).to.equal(1);
    expect(new Set(relay.payments).size).to.equal(1);
  });

  it('keeps the payment while a shop is down, and the same call continues with it', async () => {
    relay.intervene(async ({ payment, pass }) => {
      const answer = await pass();
      if (payment === undefined) return answer;
      await answer.arrayBuffer();
      return 'drop';
    });
    const wallet = await open('--timeout', '4');
    const asked = another();
    const sales = await salesDuring(async () => {
      const cut = await wallet.call('summarize', asked);
      expect(cut.isError).to.equal(true);
      expect(textOf(cut)).to.match(
        /No answer yet.*0\.01 USDC is kept: call summarize with the same arguments/,
      );
      expect(noteOf(cut)).to.include({ reserved: '0.01', left: '0.99' });
      relay.intervene(undefined);
      sold(await wallet.call('summarize', asked));
    });
    expect(sales).to.equal(1);
    expect(new Set(relay.payments).size).to.equal(1);
  });

  for (const [when, reaches] of rows([
    ['after the shop was paid', true],
    ['before the payment reaches the shop', false],
  ] as const))
    it(`is killed ${when}, sends the same payment after a restart, and is charged once`, async () => {
      const asked = another();
      const sales = await salesDuring(async () => {
        const first = await open();
        const held = new Promise<void>(resolve =>
          relay.intervene(async ({ payment, pass }) => {
            if (payment === undefined) return pass();
            if (reaches) await (await pass()).arrayBuffer();
            resolve();
            return new Promise(() => {});
          }),
        );
        const lost = first.call('summarize', asked).catch(() => undefined);
        await held;
        process.kill(first.pid, 'SIGKILL');
        await lost;
        relay.intervene(undefined);
        const second = await open();
        const { withoutAnswer } = (await second.call('wallet_statement', {})).structuredContent as {
          withoutAnswer: unknown[];
        };
        expect(withoutAnswer).to.have.lengthOf(1);
        const result = await second.call('summarize', asked);
        sold(result);
        expect(noteOf(result)).to.include({ paid: '0.01', left: '0.99' });
        const next = await second.call('summarize', asked);
        expect(noteOf(next), 'a new purchase once the first is answered').to.include({ left: '0.98' });
      });
      expect(sales).to.equal(2);
      expect(new Set(relay.payments).size).to.equal(2);
    });

  it('makes no second payment for a call if the shop takes the money and claims to have refused it', async () => {
    relay.intervene(async ({ payment, tool, pass, refuse }) => {
      if (payment === undefined) return pass();
      await (await pass()).arrayBuffer();
      expect(tool).to.equal('summarize');
      return refuse('not enough');
    });
    const wallet = await open();
    const asked = another();
    const sales = await salesDuring(async () => {
      for (let call = 0; call < 3; call++) {
        const result = await wallet.call('summarize', asked);
        expect(result.isError).to.equal(true);
        expect(textOf(result)).to.match(/refuses the payment \(not enough\), though it was settled as \w+/);
      }
    });
    expect(sales).to.equal(1);
    expect(new Set(relay.payments).size).to.equal(1);
  });

  it('says once that a shop no longer keeps the answer, and then lets the call be bought again', async () => {
    relay.intervene(async ({ payment, pass }) => {
      if (payment !== undefined) await (await pass()).arrayBuffer();
      return payment === undefined ? pass() : 'drop';
    });
    const asked = another();
    const sales = await salesDuring(async () => {
      const first = await open('--timeout', '2');
      await first.call('summarize', asked);
      await first.close();
      const file = join(folder, 'wallet.json');
      const state = JSON.parse(await readFile(file, 'utf8')) as { pending: { signedAt: number }[] };
      for (const each of state.pending) each.signedAt -= 20 * 60_000;
      await writeFile(file, JSON.stringify(state));
      relay.intervene(async ({ payment, pass, refuse }) =>
        payment === undefined ? pass() : refuse('its answer is no longer kept: sign a new one'),
      );
      const second = await open();
      const closed = await second.call('summarize', asked);
      expect(textOf(closed)).to.match(
        /its answer is no longer kept: sign a new one\. It was settled as \w+ and is spent\./,
      );
      expect(noteOf(closed)).to.include({ paid: '0.01', left: '0.99' });
      relay.intervene(undefined);
      const again = await second.call('summarize', asked);
      sold(again);
      expect(noteOf(again)).to.include({ paid: '0.01', left: '0.98' });
    });
    expect(sales).to.equal(2);
    expect(new Set(relay.payments).size).to.equal(2);
  });

  it('counts a refused payment in the budget while it could still be settled, and signs no other for its call', async () => {
    relay.intervene(async ({ payment, pass, refuse }) =>
      payment === undefined ? pass() : refuse('not enough'),
    );
    const wallet = await open('--budget', '0.01');
    const asked = another();
    const sales = await salesDuring(async () => {
      const refused = await wallet.call('summarize', asked);
      expect(textOf(refused)).to.match(
        /refused the payment: not enough.*A new payment is signed only once this one can no longer be settled/,
      );
      const elsewhere = await wallet.call('summarize', another());
      expect(textOf(elsewhere)).to.include("only 0.00 USDC of today's budget is left");
      relay.intervene(undefined);
      sold(await wallet.call('summarize', asked));
    });
    expect(sales).to.equal(1);
    expect(new Set(relay.payments).size).to.equal(1);
  });

  describe('a payment that the shop refused ten minutes ago by the clock of this machine', () => {
    const refuse = (): void =>
      relay.intervene(async ({ payment, pass, refuse }) =>
        payment === undefined ? pass() : refuse('not enough'),
      );
    /** Has the shop refuse a payment, and dates that payment ten minutes back in the wallet's state. */
    const makeOlder = async (asked: { text: string }): Promise<void> => {
      refuse();
      const wallet = await open('--budget', '0.02');
      await wallet.call('summarize', asked);
      await wallet.close();
      const file = join(folder, 'wallet.json');
      type Older = { signedAt: number; signedOnChain?: { time: number } };
      const state = JSON.parse(await readFile(file, 'utf8')) as { pending: Older[] };
      for (const each of state.pending) {
        each.signedAt -= 10 * 60_000;
        if (each.signedOnChain) each.signedOnChain.time -= 10 * 60_000;
      }
      await writeFile(file, JSON.stringify(state));
    };

    it('is not replaced, and stays counted in the budget, while the RPC server makes no progress', async () => {
      const asked = another();
      await makeOlder(asked);
      standStill(world.rpc, Date.now() - 11 * 60_000);
      const wallet = await open('--budget', '0.02');
      for (let call = 0; call < 3; call++) {
        const result = await wallet.call('summarize', asked);
        expect(textOf(result)).to.match(
          /A new payment is signed only once this one can no longer be settled: the RPC server does not show/,
        );
        expect(noteOf(result)).to.include({ left: '0.01' });
      }
      expect(new Set(relay.payments).size).to.equal(1);
    });

    it('is replaced once the RPC server has advanced, and charged once', async () => {
      const asked = another();
      await makeOlder(asked);
      standStill(world.rpc, Date.now());
      let refusals = 0;
      relay.intervene(async ({ payment, pass, refuse }) =>
        payment === undefined || (refusals += 1) > 1 ? pass() : refuse('not enough'),
      );
      const wallet = await open('--budget', '0.02');
      const sales = await salesDuring(async () => sold(await wallet.call('summarize', asked)));
      expect([sales, new Set(relay.payments).size]).to.deep.equal([1, 2]);
    });
  });

  it('writes only the protocol to stdout, and exits when its host closes stdin', async () => {
    const child = spawn(process.execPath, [COINSLOT, 'mcp', ...optionsOf([])], {
      env: { PATH: process.env['PATH'] ?? '', NODE_OPTIONS: '--trace-warnings' },
    });
    let out = '';
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.resume();
    const ended = once(child, 'exit');
    const send = (message: object): boolean => child.stdin.write(`${JSON.stringify(message)}\n`);
    const answerTo = async (id: number): Promise<void> => {
      while (!out.includes(`"id":${id}`)) await once(child.stdout, 'data');
    };
    const about = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'host', version: '1' },
    };
    send({ jsonrpc: '2.0', id: 1, method: 'initialize', params: about });
    send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    send({ jsonrpc: '2.0', id: 2, method: 'tools/list' });
    send({
      jsonrpc: '2.0',
      id: 3,
      method: 'tools/call',
      params: { name: 'summarize', arguments: another() },
    });
    for (const id of [1, 2, 3]) await answerTo(id);
    child.stdin.end();
    expect(await ended).to.deep.equal([0, null]);
    const messages = out.trimEnd().split('\n');
    for (const line of messages) expect(JSON.parse(line)).to.include({ jsonrpc: '2.0' });
    expect(messages).to.have.lengthOf(3);
  });

  it('exits with one sentence on stderr if others can read the key file, or if an option is invalid', async () => {
    const open = join(world.stateDir, 'open.json');
    await copyFile(keypair, open);
    await chmod(open, 0o644);
    const faults: [string[], RegExp][] = [
      [['--keypair', open], /others can read or change it \(mode 644\): run chmod 600/],
      [['--max-price', '5 cents'], /--max-price '5 cents' is not a decimal/],
      [['--budget', '0'], /--budget must be more than zero/],
      [['--url', 'http://shop.example'], /no TLS.*Use https, or --allow-http/],
      [['--timeout', '0'], /--timeout must be/],
      [['--nonsense'], /--nonsense/],
    ];
    for (const [more, said] of rows(faults)) {
      const child = spawn(process.execPath, [COINSLOT, 'mcp', ...optionsOf(more)], { stdio: 'pipe' });
      let [out, err] = ['', ''];
      child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
      child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
      expect(await once(child, 'close')).to.deep.equal([1, null]);
      expect(err).to.match(said);
      expect(err).not.to.match(/^\s+at /m);
      expect(out).to.equal('');
    }
  });

  it('pays nothing if its state file is damaged', async () => {
    await mkdir(folder);
    await writeFile(join(folder, 'wallet.json'), '{"version":1,"spent":{"2026');
    const child = spawn(process.execPath, [COINSLOT, 'mcp', ...optionsOf([])], { stdio: 'pipe' });
    let err = '';
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    expect(await once(child, 'close')).to.deep.equal([1, null]);
    expect(err).to.match(/wallet\.json is damaged. Nothing is paid/);
    expect(await readFile(join(folder, 'wallet.json'), 'utf8')).to.have.lengthOf(27);
  });
});
