import { expect } from 'chai';
import { Keypair } from '@solana/web3.js';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describeInCi } from '../support/extent.js';
import { heldBy, PAGES, snippetsOf, type Snippet } from '../support/snippets.js';
import { openWorld, post, signFor, TEXT, type World } from '../support/world.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const COMMAND = join(ROOT, 'src/cli/coinslot.js');
const LIBRARY = new URL('../../src/wallet/shop-buyer.js', import.meta.url).href;

/** `npx coinslot` and `npm run` with the commands of this repository. Servers are started elsewhere. */
const NPX = `#!/bin/sh\nshift\nexec node ${COMMAND} "$@"\n`;
const NPM = `#!/bin/sh
[ "$1" = run ] || { echo "npm $1 is not run here"; exit 0; }
shift; [ "$1" = --silent ] && shift
name=$1; shift; [ "$1" = -- ] && shift
exec node ${COMMAND} "$name" "$@"
`;

type Said = { status: number; said: string };
/** How a snippet ends: its output and its exit status, 0 by default. `isServer`: it runs until it is stopped. */
type Ending = { starts: RegExp; says: RegExp; status?: number; isServer?: true };

const ENDINGS: Ending[] = [
  { starts: /^npx coinslot ledger backup/, says: /^Backed up to .*ledger-monday\.db: checked/ },
  { starts: /^npx coinslot ledger restore/, says: /^npm start is not run here$/m },
  { starts: /^npx coinslot webhooks listen/, says: /^Listening to http/m, isServer: true },
  { starts: /^echo whsec_/, says: /^whsec_[\w+/=]{44}$/m },
  { starts: /ledger -- statement/, says: /^On chain .* is [\d.]+ USDC: the same\.$/m },
  { starts: /ledger -- export/, says: /^$/ },
  { starts: /^curl -X POST/, says: /"name":"summarize"/ },
  // The payment in this test is for an answered call, not for an owed order.
  { starts: /ledger -- reject/, says: /is not an owed order\. Nothing was changed\.$/m, status: 1 },
  { starts: /^curl -si/, says: /^ok\b.*receipt/im },
  { starts: /^openssl genpkey/, says: /ready to be paid|listening/i, isServer: true },
  { starts: /ledger -- show/, says: /^operation +summarize$/m },
  { starts: /ledger -- refund .* --reason/, says: /^solana:\w+\?amount=0\.01/m },
  // A wallet without money.
  { starts: /ledger -- refund .* --keypair/, says: /USDC/, status: 1 },
  // The transaction of the payment stands in for that of its refund.
  { starts: /ledger -- refund .* --tx/, says: /it is the transaction of the payment itself/, status: 1 },
  { starts: /createBuyer/, says: /summary: '.+'/ },
];

describeInCi('The snippets of docs that no other test runs', function () {
  this.timeout(90_000);
  let world: World;
  let folder: string;

  before(async () => {
    world = await openWorld();
    folder = mkdtempSync(join(tmpdir(), 'coinslot-snippets-'));
    for (const [name, text] of [
      ['npx', NPX],
      ['npm', NPM],
    ] as const) {
      mkdirSync(join(folder, 'bin'), { recursive: true });
      writeFileSync(join(folder, 'bin', name), text);
      chmodSync(join(folder, 'bin', name), 0o755);
    }
    mkdirSync(join(folder, 'other'));
    const refunds = JSON.stringify([...Keypair.generate().secretKey]);
    writeFileSync(join(folder, 'payer.json'), JSON.stringify([...world.buyer]), { mode: 0o600 });
    writeFileSync(join(folder, 'refunds.json'), refunds, { mode: 0o600 });
  });
  after(async () => {
    await world.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Runs a snippet to its end, or until it has printed the expected text. */
  async function run(text: string, env: Record<string, string>, until?: RegExp): Promise<Said> {
    const all = {
      ...world.env,
      PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}`,
      HOME: folder,
      ...env,
    };
    const script = ['-e', '-o', 'pipefail', '-c', `{ ${text}\n} 2>&1`];
    const child = spawn('bash', script, {
      cwd: folder,
      env: all,
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const end = (): void => void (child.pid && process.kill(-child.pid, 'SIGKILL'));
    const late = setTimeout(end, 80_000);
    let said = '';
    for await (const chunk of child.stdout.setEncoding('utf8') as AsyncIterable<string>) {
      said += chunk;
      if (until?.test(said)) end();
    }
    clearTimeout(late);
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    return { status: child.exitCode ?? -1, said };
  }

  /** The snippet with the placeholders filled in. */
  async function filledIn({ text }: Snippet): Promise<string> {
    const payment = text.includes('<') ? await bought() : '';
    const month = new Date().toISOString().slice(0, 7);
    return text
      .replaceAll(/<(?:what was quoted|payment|signature)>/g, payment)
      .replaceAll('/var/backups/coinslot', folder)
      .replaceAll(/https:\/\/shop\.example(?:\.com)?|http:\/\/127\.0\.0\.1:8402/g, world.url)
      .replaceAll('2026-11', month)
      .replaceAll(`${month}-30`, `${month}-28`)
      .replace("keypair: 'payer.json'", `$&, rpcUrl: '${world.sandbox.rpc.url}'`)
      .replace('curl -si … > answer.txt', ': answer.txt is written by the test')
      .replaceAll('verify-receipt ', '$&--allow-private ');
  }

  /** @returns the signature of a payment for a call */
  async function bought(): Promise<string> {
    const call = `npx coinslot buy summarize '{"text":"One sentence. Another one. A third one."}' --url ${world.url} --keypair payer.json`;
    const { said } = await run(call, {});
    const [payment] = /(?<=^Receipt: )\S+/m.exec(said) ?? [];
    if (payment === undefined) throw new Error(said);
    return payment;
  }

  /** The output of `curl -i` for a paid call, its body, and the request. */
  async function writeAnswer(): Promise<void> {
    const path = '/v1/summarize';
    const asked = JSON.stringify({ text: TEXT });
    const { headers, body } = await post(world.url + path, asked, await signFor(world, path));
    const lines = [...headers].map(([name, value]) => `${name}: ${value}`);
    writeFileSync(
      join(folder, 'answer.txt'),
      ['HTTP/1.1 200 OK', ...lines, '', body.toString()].join('\r\n'),
    );
    writeFileSync(join(folder, 'body.json'), body);
    writeFileSync(join(folder, 'request.json'), asked);
  }

  const snippets = PAGES.flatMap(snippetsOf).filter(each => heldBy(each) === 'run here');
  for (const snippet of snippets)
    it(`${snippet.page}: ${snippet.text.split('\n', 1)[0]?.slice(0, 70)}`, async () => {
      const ending = ENDINGS.find(({ starts }) => starts.test(snippet.text));
      if (ending === undefined) throw new Error('ENDINGS has no entry for it');
      if (snippet.text.includes('answer.txt')) await writeAnswer();
      const text = await filledIn(snippet);
      // Restoring a ledger and starting a second server are tested elsewhere.
      const isElsewhere = /restore|coinslot run/.test(text);
      const env = {
        SHOP_DIR: ROOT,
        LOG_LEVEL: 'info',
        ...(isElsewhere ? { STATE_DIR: join(folder, 'other') } : {}),
      };
      const { status, said } = await run(
        snippet.language === 'ts' ? program(text) : text,
        env,
        ending.isServer && ending.says,
      );
      if (!ending.isServer) expect(status, said).to.equal(ending.status ?? 0);
      expect(said).to.match(ending.says);
    });

  /** Runs TypeScript with the library of this repository. */
  function program(text: string): string {
    const { outputText } = ts.transpileModule(text.replace("'coinslot-sandbox/buyer'", `'${LIBRARY}'`), {
      compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
    });
    writeFileSync(join(folder, 'program.mjs'), outputText);
    return 'node program.mjs';
  }
});
