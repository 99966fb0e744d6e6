import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import type { Finding } from '../../../src/checks/preflight.js';
import { startSandbox } from '../../../src/sandbox/start.js';
import { ListingVerdicts } from '../../../src/facilitators/listing-verdicts.js';
import { openLedger } from '../../../src/ledger/store.js';
import { rows } from '../../support/extent.js';
import { paymentIn } from '../../support/ledger-places.js';
import {
  addressOf,
  CAIP2,
  DEVNET_GENESIS,
  FEE_PAYER,
  PAY_TO,
  StubMainnet,
} from '../../support/stub-mainnet.js';

const PETSTORE = fileURLToPath(new URL('../../../../examples/petstore/', import.meta.url));
const MAIN = fileURLToPath(new URL('../../../src/cli/check/main.js', import.meta.url));

type Outcome = { status: number; stdout: string; stderr: string };

/** Runs the command as the operator does, with only this environment. */
function check(env: Record<string, string>, ...args: string[]): Promise<Outcome> {
  const options = { env: { PATH: process.env['PATH'] ?? '', ...env }, timeout: 60_000 };
  return new Promise(resolve => {
    execFile(process.execPath, [MAIN, ...args], options, (error, stdout, stderr) =>
      resolve({ status: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
    );
  });
}

describe('npm run check', function () {
  this.timeout(90_000);
  let stateDir: string;
  let stub: StubMainnet;

  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'check-'));
    stub = await StubMainnet.open();
  });

  afterEach(async () => {
    await stub.close();
    await rm(stateDir, { recursive: true, force: true });
  });

  const mainnet = (change: Record<string, string> = {}): Record<string, string> => ({
    NETWORK: 'mainnet',
    STATE_DIR: stateDir,
    PUBLIC_URL: 'https://pay.example',
    PAY_TO,
    SOLANA_RPC_URL: `${addressOf(stub.rpc)}/?key=a-secret-key`,
    FACILITATOR_URL: addressOf(stub.facilitator),
    ANSWER_STORE_MB: '64',
    ...change,
  });

  async function findings(env: Record<string, string>): Promise<Finding[]> {
    return JSON.parse((await check(env, '--json')).stdout) as Finding[];
  }
  const errorsOf = (all: Finding[]): string[] =>
    all.filter(({ level }) => level === 'error').map(({ subject, found }) => `${subject}: ${found}`);

  it('has a line for everything that a sale depends on, and shows no secret', async () => {
    const { status, stdout, stderr } = await check(mainnet());
    expect(stderr).to.equal('');
    expect(status, stdout).to.equal(0);
    const lines = [
      /^ok {7}openapi\.yaml: sells 5 operations/m,
      /^ok {7}ledger: it does not exist yet/m,
      new RegExp(`^ok {7}SOLANA_RPC_URL: the RPC server \\S+ serves ${CAIP2}`, 'm'),
      /^ok {7}clock: this machine is \d s/m,
      /^ok {7}PAY_TO: .* holds 12\.5(0)? USDC/m,
      new RegExp(`^ok {7}FACILITATOR_URL: .* ${FEE_PAYER}, which holds 1\\.000000 SOL`, 'm'),
      /^ok {7}DATABASE_URL: .* MB left/m,
      /^ok {7}PUBLIC_URL: https:\/\/pay\.example does not answer requests/m,
      /^ok {7}PUBLIC_URL: the largest challenge takes \d+ of 4096 header bytes/m,
    ];
    for (const line of lines) expect(stdout).to.match(line);
    expect(stdout).not.to.include('a-secret-key');
  });

  const faults: [string, RegExp, () => Record<string, string> | void][] = [
    [
      'an RPC server for another network',
      /^SOLANA_RPC_URL: must serve/,
      () => void (stub.genesis = DEVNET_GENESIS),
    ],
    ['no receiving account', /^PAY_TO: .* no USDC token account/, () => void (stub.receiver = undefined)],
    ['a frozen account', /^PAY_TO: .* frozen/, () => void (stub.receiver!.frozen = true)],
    [
      'a facilitator of other networks',
      /^FACILITATOR_URL: .* does not support/,
      () => void (stub.kinds = []),
    ],
    [
      'a facilitator that does not answer',
      /^FACILITATOR_URL: .* did not answer/,
      () => ({ FACILITATOR_URL: 'http://127.0.0.1:1' }),
    ],
    ['a clock that is hours off', /^clock: /, () => void (stub.aheadSeconds = -7_200)],
    [
      'a PUBLIC_URL on this machine',
      /^PUBLIC_URL: .* public host name/,
      () => ({ PUBLIC_URL: 'https://localhost' }),
    ],
  ];
  for (const [name, says, change] of rows(faults))
    it(`exits with 1 for ${name}`, async () => {
      const { status, stdout } = await check(mainnet(change() ?? {}), '--json');
      const errors = errorsOf(JSON.parse(stdout) as Finding[]);
      expect(errors).to.have.length(1);
      expect(errors[0]).to.match(says);
      expect(status).to.equal(1);
    });

  it('checks the embedded facilitator: its key file and its SOL', async () => {
    const file = join(stateDir, 'fee-payer.json');
    const pair = [...Keypair.generate().secretKey];
    await writeFile(file, JSON.stringify(pair), { mode: 0o644 });
    const env = mainnet({ FACILITATOR_URL: 'embedded', FEE_PAYER_KEYPAIR: file });
    const open = await check(env);
    expect(open.status).to.equal(1);
    expect(open.stderr).to.match(/FEE_PAYER_KEYPAIR: /);
    await chmod(file, 0o600);
    expect(errorsOf(await findings(env))).to.deep.equal([]);
    stub.lamports = 0;
    const [error] = errorsOf(await findings(env));
    expect(error).to.match(/^FACILITATOR_URL: .*fee payer .* has 0\.000000 SOL left/);
  });

  it('warns about problems that do not prevent startup', async () => {
    stub.lamports = 5_000;
    stub.aheadSeconds = 100;
    const all = await findings(mainnet({ SOLANA_RPC_URL: `${addressOf(stub.rpc)},http://127.0.0.1:1` }));
    const warnings = all.filter(({ level }) => level === 'warning');
    expect(warnings.map(({ subject }) => subject)).to.have.members([
      'SOLANA_RPC_URL',
      'clock',
      'FACILITATOR_URL',
    ]);
    for (const { todo } of warnings) expect(todo).to.be.a('string');
    expect(errorsOf(all)).to.deep.equal([]);
  });

  it('checks whether the APIs that x-upstream resells can be reached, and whether their variables are set', async () => {
    const shop = mainnet({ SHOP_DIR: PETSTORE });
    expect(errorsOf(await findings(shop)).join()).to.match(/x-upstream: .*PETSTORE_URL/s);
    const api = createServer().listen(0, '127.0.0.1');
    await once(api, 'listening');
    const { port } = api.address() as AddressInfo;
    const set = {
      ...shop,
      PETSTORE_URL: `http://127.0.0.1:${port}`,
      PETSTORE_KEY: 'a-secret-key',
      ALLOW_PRIVATE_UPSTREAMS: 'true',
    };
    const upstreamsOf = async (): Promise<Finding[]> =>
      (await findings(set)).filter(({ subject }) => subject === 'x-upstream');
    const reached = await upstreamsOf();
    expect(reached).to.have.length(3);
    expect(reached.every(({ level }) => level === 'ok')).to.equal(true);
    api.close();
    await once(api, 'close');
    const alone = await upstreamsOf();
    expect(
      alone.every(({ level, found }) => level === 'warning' && found.includes('cannot be reached now')),
    ).to.equal(true);
    expect(JSON.stringify(alone)).not.to.include('a-secret-key');
  });

  it('says what it could not check', async () => {
    const all = await findings(mainnet({ SOLANA_RPC_URL: 'http://127.0.0.1:1' }));
    const unchecked = all.filter(({ found }) => found.includes('not checked'));
    expect(unchecked.map(({ subject }) => subject)).to.have.members(['clock', 'PAY_TO', 'FACILITATOR_URL']);
    expect(errorsOf(all)).to.deep.equal([]);
  });

  it('names the receiver that the ledger belongs to', async () => {
    const url = `file:${join(stateDir, 'ledger.db')}`;
    const ledger = await openLedger({ url, payTo: FEE_PAYER, network: CAIP2 });
    const before = await findings(mainnet());
    expect(before.find(({ subject }) => subject === 'ledger')?.found).to.include('nothing has been sold yet');
    await paymentIn(ledger, 'settling');
    const [error, ...others] = errorsOf(await findings(mainnet()));
    expect(error).to.include(`belongs to PAY_TO ${FEE_PAYER}`).and.include('npm run ledger -- receiver');
    expect(others).to.deep.equal([]);
    await ledger.close();
  });

  it("says whether a facilitator's directory lists the shop", async () => {
    const ledger = await openLedger({
      url: `file:${join(stateDir, 'ledger.db')}`,
      payTo: PAY_TO,
      network: CAIP2,
    });
    const silent = { info: () => {}, warn: () => {}, error: () => {} };
    const verdicts = new ListingVerdicts(ledger, silent);
    const { host } = new URL(addressOf(stub.facilitator));
    const rejected = { operation: 'summarize', transport: 'http', status: 'rejected' } as const;
    await verdicts.hear(`${host}/`, { ...rejected, why: 'no schema' });
    await ledger.close();
    const all = await findings(mainnet());
    const [finding] = all.filter(({ subject }) => subject === 'directories');
    expect(finding?.level).to.equal('warning');
    expect(finding?.found).to.match(/does not list summarize \(http\), since 20.*: no schema$/);
  });

  it('lists every error of the configuration', async () => {
    const { status, stderr } = await check({ NETWORK: 'mainnet', STATE_DIR: stateDir, PAY_TO: 'me' });
    expect(status).to.equal(1);
    expect(stderr)
      .to.match(/^ {2}PAY_TO: /m)
      .and.to.match(/^ {2}PUBLIC_URL: must be set/m);
  });

  it('checks a running sandbox, and finds no error if none is running', async () => {
    const alone = await check({ STATE_DIR: stateDir });
    expect(alone.stdout).to.match(/^ok {7}sandbox: it is not running/m);
    expect(alone.status).to.equal(0);
    const sandbox = await startSandbox({ stateDir, rpcPort: 0, facilitatorPort: 0 });
    try {
      const all = await findings({ STATE_DIR: stateDir });
      expect(all.filter(({ level }) => level !== 'ok')).to.deep.equal([]);
      for (const subject of ['SOLANA_RPC_URL', 'PAY_TO', 'clock', 'FACILITATOR_URL'])
        expect(all.map(each => each.subject)).to.include(subject);
    } finally {
      await sandbox.close();
    }
  });
});
