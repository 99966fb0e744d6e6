import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { openLedger, type Ledger } from '../../src/ledger/store.js';
import { rows } from '../support/extent.js';
import { paymentIn, onEachEngine, type LedgerPlace, forServer } from '../support/ledger-places.js';
import { evidenceOf } from '../support/refund-chain.js';
import { countingProxy, type CountingProxy } from '../support/proxy.js';
import { TestChain } from '../support/test-chain.js';

const MAIN = fileURLToPath(new URL('../../src/cli/ledger/main.js', import.meta.url));
const PAID = 500_000n;

/** The request to the RPC server at which the command is killed, and whether the server still receives it. */
const STEPS: { name: string; method: string; reaches: boolean }[] = [
  {
    name: 'its transaction was sent, and the answer has not arrived',
    method: 'sendTransaction',
    reaches: true,
  },
  { name: 'its amount was reserved', method: 'getAccountInfo', reaches: false },
  { name: 'its transaction was signed and not stored', method: 'simulateTransaction', reaches: true },
  { name: 'its transaction was stored and not sent', method: 'sendTransaction', reaches: false },
  { name: 'its transaction has landed', method: 'getSignatureStatuses', reaches: true },
];

type Outcome = { status: number | null; stdout: string; stderr: string };

onEachEngine('ledger refund --keypair, killed with SIGKILL', function (make) {
  let chain: TestChain;
  let rpc: CountingProxy;
  let place: LedgerPlace;
  let ledger: Ledger;
  let folder: string;
  let payer: Keypair;
  const children = new Set<ChildProcess>();

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'coinslot-refund-kills-'));
    chain = await TestChain.open(100);
    rpc = await countingProxy(chain.sandbox.rpc.url);
    place = await make();
    const { payTo, network } = chain.sandbox.info;
    ledger = await openLedger({ ...forServer(place.url), payTo, network });
    payer = Keypair.generate();
    await chain.fund(payer, 1n);
  });

  after(async () => {
    for (const child of children) child.kill('SIGKILL');
    await ledger?.close();
    await place?.remove();
    await rpc?.close();
    await chain?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  afterEach(() => rpc.intervene(undefined));

  /** The key file of a wallet that has USDC, and SOL for the fees. */
  async function walletFile(): Promise<string> {
    const wallet = Keypair.generate();
    await chain.fund(wallet, 2n * PAID);
    const file = join(folder, `${wallet.publicKey.toBase58()}.json`);
    writeFileSync(file, JSON.stringify([...wallet.secretKey]));
    chmodSync(file, 0o600);
    return file;
  }

  function sold(): Promise<string> {
    const address = payer.publicKey.toBase58();
    const evidence = evidenceOf(address);
    return paymentIn(ledger, 'delivered', { payer: address, evidence, amount: PAID });
  }

  function start(id: string, file: string): { child: ChildProcess; ended: Promise<Outcome> } {
    const env = { PATH: process.env['PATH'] ?? '', DATABASE_URL: place.url, SOLANA_RPC_URL: rpc.url };
    const child = spawn(process.execPath, [MAIN, 'refund', id, '--keypair', file], { env });
    children.add(child);
    const said = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk: Buffer) => (said.stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (said.stderr += chunk.toString()));
    const ended = once(child, 'close').then(([status]) => {
      children.delete(child);
      return { status: status as number | null, ...said };
    });
    return { child, ended };
  }

  async function held(): Promise<bigint> {
    const account = chain.tokenAccount(payer.publicKey);
    return BigInt((await chain.connection.getTokenAccountBalance(account, 'processed')).value.amount);
  }

  async function refundedOnce(id: string, before: bigint): Promise<void> {
    expect((await held()) - before).to.equal(PAID);
    expect(await ledger.find(id)).to.include({ repaid: PAID, repaying: 0n });
    expect((await ledger.repaymentsOf(id)).map(({ state }) => state)).to.deep.equal(['done']);
  }

  for (const { name, method, reaches } of rows(STEPS))
    it(`pays once when ${name}`, async () => {
      const [id, file, before] = [await sold(), await walletFile(), await held()];
      const { child, ended } = start(id, file);
      rpc.intervene(async ask => {
        const isStep = ask.method === method && child.exitCode === null;
        if (isStep && !reaches) child.kill('SIGKILL');
        if (isStep && !reaches) return ask.drop();
        const answer = await ask.forward();
        if (isStep) child.kill('SIGKILL');
        ask.respond(answer.status, answer.body);
      });
      expect((await ended).status).to.equal(null);
      rpc.intervene(undefined);
      const again = await start(id, file).ended;
      expect(again.stderr).to.equal('');
      expect(again.stdout).to.include('Refunded 0.50 USDC');
      await refundedOnce(id, before);
    });

  it('pays once when two operators send it concurrently, each from a different wallet', async () => {
    const [id, before] = [await sold(), await held()];
    const files = [await walletFile(), await walletFile()];
    const all = await Promise.all(files.map(file => start(id, file).ended));
    expect(
      all.some(({ status }) => status === 0),
      all.map(({ stderr }) => stderr).join(),
    ).to.equal(true);
    await refundedOnce(id, before);
  });
});
