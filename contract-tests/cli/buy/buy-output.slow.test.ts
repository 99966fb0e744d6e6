import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openWorld, TEXT, type World } from '../../support/world.js';

const BUYER = fileURLToPath(new URL('../../../src/cli/buy/main.js', import.meta.url));
const SCRIPT = '/usr/bin/script';
const RUN_MS = 60_000;

describe('What npm run buy prints', function () {
  this.timeout(90_000);
  let world: World;
  before(async () => {
    world = await openWorld();
  });
  after(() => world.close());

  /** The server runs in this process, so the test must not block. */
  function run(program: string, args: string[]): Promise<{ code: number; out: string; err: string }> {
    const env = {
      PATH: process.env.PATH,
      STATE_DIR: world.stateDir,
      SOLANA_RPC_URL: world.sandbox.rpc.url,
      INIT_CWD: world.stateDir,
      TERM: 'xterm',
    };
    return new Promise(resolve => {
      const options = { env, cwd: world.stateDir, timeout: RUN_MS };
      const child = execFile(program, args, options, (_error, out, err) =>
        resolve({ code: child.exitCode ?? 1, out, err }),
      );
    });
  }
  const buy = (...args: string[]) => run(process.execPath, [BUYER, ...args, '--url', world.url]);

  it('--json: prints one object with price, payer, receipt and answer, and nothing else on any stream', async () => {
    const { code, out, err } = await buy('summarize', JSON.stringify({ text: TEXT }), '--json');
    expect([code, err]).to.deep.equal([0, '']);
    expect(out).to.match(/^\{.*\}\n$/);
    const said = JSON.parse(out) as Record<string, unknown> & { answer: { summary: string } };
    expect(said).to.deep.include({
      operationId: 'summarize',
      url: world.url,
      priceUsdc: '0.01',
      payer: world.sandbox.info.buyer,
    });
    expect(said.receipt).to.match(/^[1-9A-HJ-NP-Za-km-z]{80,90}$/);
    expect(said.answer.summary).to.be.a('string');
  });

  it('--json: names the output file, and reports an error as a member of the object, with the usual exit status', async () => {
    const speech = await buy('textToSpeech', '{"text":"One coin."}', '--json', '--out', 'one.wav');
    const { file, bytes } = JSON.parse(speech.out) as { file: string; bytes: number };
    expect(file).to.equal(join(world.stateDir, 'one.wav'));
    expect((await readFile(file)).length).to.equal(bytes);
    const dear = await buy('summarize', JSON.stringify({ text: TEXT }), '--json', '--max-price', '0.001');
    expect([dear.code, dear.err]).to.deep.equal([1, '']);
    expect(JSON.parse(dear.out)).to.include({ priceUsdc: '0.01' });
    expect((JSON.parse(dear.out) as { error: string }).error).to.match(/^The price is 0\.01 USDC, more than/);
    const unknown = await buy('summarise', '{}', '--json');
    expect((JSON.parse(unknown.out) as { error: string }).error).to.match(/^There is no operation summarise/);
  });

  it('on a terminal, shows the price before it pays, and counts the seconds while people answer', async function () {
    if (!existsSync(SCRIPT)) this.skip();
    const question = { brand: 'Harbour Coffee', question: 'What do you think of the new cup?', n: 1 };
    const words = [process.execPath, BUYER, 'brandFeedback', JSON.stringify(question), '--url', world.url];
    const command = words.map(word => `'${word}'`).join(' ');
    const { code, out } = await run(SCRIPT, ['-qec', command, '/dev/null']);
    expect(code, out).to.equal(0);
    const order = [
      'Price:   0.50 USDC',
      'Payer:',
      'Waiting: paid before the work',
      'Receipt:',
      '"responses"',
    ];
    const places = order.map(text => out.indexOf(text));
    expect(places, out).not.to.include(-1);
    expect(places).to.deep.equal(places.toSorted((a, b) => a - b));
    expect(out).to.contain('\r\u001b[K');
  });
});
