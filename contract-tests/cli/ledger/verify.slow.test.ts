import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { createTransferCheckedInstruction, getAssociatedTokenAddressSync } from '@solana/spl-token';
import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import { expect } from 'chai';
import { openLedger } from '../../../src/ledger/store.js';
import type { Ledger } from '../../../src/ledger/store.js';
import { startSandbox } from '../../../src/sandbox/start.js';
import { paymentIn, sqlitePlace, forServer } from '../../support/ledger-places.js';
import type { LedgerPlace } from '../../support/ledger-places.js';
import { SLOW_MS, ledgerCommand, type Outcome } from '../../support/ledger-command.js';

const DEVNET = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1';
const GENESIS = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG';
const USDC = new PublicKey('4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU');

type Listed = { signature: string; slot: number; failed?: boolean; transaction?: VersionedTransaction };

/** A Solana RPC server that knows one account's history, newest first. */
async function fakeRpc(
  history: Listed[],
): Promise<{ url: string; pages: () => number; close: () => Promise<void> }> {
  let pages = 0;
  const methods: Record<string, (params: [string, Record<string, unknown>]) => unknown> = {
    getGenesisHash: () => GENESIS,
    getLatestBlockhash: () => ({
      context: { slot: 9_000 },
      value: { blockhash: GENESIS, lastValidBlockHeight: 9_150 },
    }),
    getSignaturesForAddress: ([, { before, limit, commitment }]) => {
      pages += 1;
      if (commitment !== 'finalized') throw new Error('only finalized history counts');
      const start = history.findIndex(({ signature }) => signature === before) + 1;
      return history.slice(start, start + Number(limit ?? 1_000)).map(({ signature, slot, failed }) => ({
        signature,
        slot,
        err: failed ? { InstructionError: [0, 'Custom'] } : null,
        memo: null,
        blockTime: null,
        confirmationStatus: 'finalized',
      }));
    },
    getTransaction: ([signature]) => {
      const found = history.find(each => each.signature === signature);
      if (!found?.transaction) return null;
      const bytes = Buffer.from(found.transaction.serialize()).toString('base64');
      return { slot: found.slot, meta: { err: null }, transaction: [bytes, 'base64'], blockTime: null };
    },
  };
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', chunk => (text += String(chunk)));
    request.on('end', () => {
      const { id, method, params } = JSON.parse(text) as {
        id: string;
        method: string;
        params: [string, Record<string, unknown>];
      };
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: methods[method]?.(params) }));
    });
  });
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    pages: () => pages,
    close: () => new Promise(done => (server.closeAllConnections(), server.close(() => done()))),
  };
}

describe('ledger verify', function () {
  this.timeout(SLOW_MS);
  const payTo = Keypair.generate().publicKey;
  const account = getAssociatedTokenAddressSync(USDC, payTo, true);
  let place: LedgerPlace;
  let ledger: Ledger;
  let history: Listed[];
  let slot: number;
  let rpc: Awaited<ReturnType<typeof fakeRpc>>;
  let stateDir: string;

  beforeEach(async () => {
    place = await sqlitePlace();
    stateDir = dirname(place.url.slice('file:'.length));
    const longAgo = Date.now() - 600_000;
    ledger = await openLedger({
      ...forServer(place.url),
      payTo: payTo.toBase58(),
      network: DEVNET,
      now: () => longAgo,
    });
    history = [];
    slot = 1_000;
    rpc = await fakeRpc(history);
  });

  afterEach(async () => {
    await ledger.close();
    await rpc.close();
    await place.remove();
  });

  function transfer(amount: bigint, to = account): VersionedTransaction {
    const payer = Keypair.generate();
    const from = getAssociatedTokenAddressSync(USDC, payer.publicKey);
    const message = new TransactionMessage({
      payerKey: payer.publicKey,
      recentBlockhash: Keypair.generate().publicKey.toBase58(),
      instructions: [createTransferCheckedInstruction(from, USDC, to, payer.publicKey, amount, 6)],
    }).compileToV0Message();
    return new VersionedTransaction(message);
  }
  const idOf = (transaction: VersionedTransaction): string =>
    createHash('sha256').update(transaction.message.serialize()).digest('hex');
  const land = (transaction: VersionedTransaction | undefined, extra: Partial<Listed> = {}): string => {
    const signature = `sig${(slot += 1)}`;
    history.unshift({ signature, slot, ...(transaction ? { transaction } : {}), ...extra });
    return signature;
  };
  /** Records a sale of this amount, whose transfer on the chain has the amount `onChain`. @returns the id */
  const sold = async (amount = 10_000n, onChain = amount): Promise<string> => {
    const transaction = transfer(onChain);
    return paymentIn(ledger, 'delivered', {
      id: idOf(transaction),
      amount,
      network: DEVNET,
      settlement: land(transaction),
    });
  };
  type Verdict = {
    slot: number;
    transfers: number;
    settled: number;
    unjudged: number;
    differences: { kind: string; payment: string | null; transaction: string | null; usdc?: string }[];
  };
  const verify = async (...args: string[]): Promise<Outcome & { verdict: Verdict }> => {
    const outcome = await ledgerCommand(
      { STATE_DIR: stateDir, SOLANA_RPC_URL: rpc.url },
      'verify',
      '--json',
      ...args,
    );
    if (!outcome.stdout) throw new Error(outcome.stderr);
    return { ...outcome, verdict: JSON.parse(outcome.stdout) as Verdict };
  };

  it('finds no difference if every settled payment is on the chain and every transfer is in the ledger', async () => {
    for (let made = 0; made < 5; made += 1) await sold();
    await paymentIn(ledger, 'released');
    await paymentIn(ledger, 'settling');
    land(transfer(5n, Keypair.generate().publicKey), { failed: true });
    const { status, verdict } = await verify();
    expect(verdict).to.include({ slot: 9_000, transfers: 5, settled: 5, unjudged: 0 });
    expect(verdict.differences).to.deep.equal([]);
    expect(status).to.equal(0);
    const human = await ledgerCommand({ STATE_DIR: stateDir, SOLANA_RPC_URL: rpc.url }, 'verify');
    expect(human.stdout).to.include('No differences.').and.include('up to slot 9000 (finalized)');
  });

  it('names payments that are missing, failed, unknown, uncounted or unreadable, or have another signature or amount', async () => {
    await sold();
    const missing = await paymentIn(ledger, 'delivered', { network: DEVNET, settlement: 'nowhere' });
    const failed = await paymentIn(ledger, 'owed', { settlement: land(undefined, { failed: true }) });
    const unknown = land(transfer(7_000_000n));
    const doubted = transfer(10_000n);
    const uncounted = await paymentIn(ledger, 'settling', { id: idOf(doubted), amount: 10_000n });
    land(doubted);
    const unreadable = land(undefined);
    const renamed = transfer(10_000n);
    const other = await paymentIn(ledger, 'delivered', {
      id: idOf(renamed),
      amount: 10_000n,
      settlement: 'renamed',
    });
    land(renamed);
    const short = await sold(10_000n, 9_999n);
    const { status, verdict } = await verify();
    expect(status).to.equal(1);
    const named = verdict.differences.map(({ kind, payment, transaction }) => [kind, payment ?? transaction]);
    expect(named).to.have.deep.members([
      ['missing', missing],
      ['failed', failed],
      ['unknown', unknown],
      ['uncounted', uncounted],
      ['unreadable', unreadable],
      ['signature', other],
      ['amount', short],
    ]);
    const human = await ledgerCommand({ STATE_DIR: stateDir, SOLANA_RPC_URL: rpc.url }, 'verify');
    expect(human.status).to.equal(1);
    expect(human.stdout)
      .to.include('7 differences')
      .and.include(missing)
      .and.include('7.00 USDC')
      .and.include('adopt');
    expect(verdict.differences.find(({ kind }) => kind === 'unknown')).to.include({ usdc: '7.00' });
  });

  it('pages through a long history, and with --limit judges only the part that it read', async () => {
    const old = await paymentIn(ledger, 'delivered', { settlement: 'gone', after: 1_000 });
    for (let made = 0; made < 1_100; made += 1) land(transfer(1n), { failed: true });
    await sold();
    const whole = await verify();
    expect(whole.verdict.differences.map(({ payment }) => payment)).to.deep.equal([old]);
    expect(rpc.pages()).to.equal(2);
    const part = await verify('--limit', '50');
    expect(part.verdict).to.include({ unjudged: 1, settled: 2, transfers: 1 });
    expect(part.status).to.equal(0);
  });

  it('ignores what was settled a moment ago', async () => {
    await ledger.close();
    ledger = await openLedger({ ...forServer(place.url), payTo: payTo.toBase58(), network: DEVNET });
    await paymentIn(ledger, 'delivered', { settlement: 'not finalized yet' });
    const { status, verdict } = await verify();
    expect(status).to.equal(0);
    expect(verdict).to.include({ young: 1 });
  });

  it('reports that no RPC server is set, that it does not answer, or that it belongs to another network', async () => {
    await sold();
    expect((await ledgerCommand({ STATE_DIR: stateDir }, 'verify')).stderr).to.include('Set SOLANA_RPC_URL');
    await rpc.close();
    const down = await ledgerCommand({ STATE_DIR: stateDir, SOLANA_RPC_URL: rpc.url }, 'verify');
    expect(down.status).to.equal(1);
    expect(down.stderr).to.include('not reachable');
    const other = await sqlitePlace();
    await (
      await openLedger({
        url: other.url,
        payTo: payTo.toBase58(),
        network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
      })
    ).close();
    rpc = await fakeRpc([]);
    const wrong = await ledgerCommand({ DATABASE_URL: other.url, SOLANA_RPC_URL: rpc.url }, 'verify');
    expect(wrong.stderr).to.include('Correct SOLANA_RPC_URL');
    await other.remove();
  });

  it('reads a real chain, which it finds through sandbox.json', async () => {
    const sandbox = await startSandbox({ stateDir, rpcPort: 0, facilitatorPort: 0, slotMs: 20 });
    try {
      const receiver = new PublicKey(sandbox.info.payTo);
      await ledger.close();
      const url = `file:${join(stateDir, 'real.db')}`;
      ledger = await openLedger({
        url,
        payTo: sandbox.info.payTo,
        network: sandbox.info.network,
        now: () => Date.now() - 600_000,
      });
      const secret = JSON.parse(await readFile(join(stateDir, 'buyer.json'), 'utf8')) as number[];
      const buyer = Keypair.fromSecretKey(Uint8Array.from(secret));
      const connection = new Connection(sandbox.rpc.url, 'confirmed');
      await connection.requestAirdrop(buyer.publicKey, LAMPORTS_PER_SOL);
      const mint = new PublicKey(sandbox.info.usdcMint);
      const send = async (
        amount: bigint,
      ): Promise<{ transaction: VersionedTransaction; signature: string }> => {
        const from = getAssociatedTokenAddressSync(mint, buyer.publicKey);
        const to = getAssociatedTokenAddressSync(mint, receiver, true);
        const { blockhash } = await connection.getLatestBlockhash();
        const instructions = [createTransferCheckedInstruction(from, mint, to, buyer.publicKey, amount, 6)];
        const message = new TransactionMessage({
          payerKey: buyer.publicKey,
          recentBlockhash: blockhash,
          instructions,
        });
        const transaction = new VersionedTransaction(message.compileToV0Message());
        transaction.sign([buyer]);
        return { transaction, signature: await connection.sendRawTransaction(transaction.serialize()) };
      };
      const slotNow = await connection.getSlot();
      const { transaction, signature } = await send(10_000n);
      await paymentIn(ledger, 'delivered', {
        id: idOf(transaction),
        amount: 10_000n,
        settlement: signature,
        after: slotNow,
      });
      const stranger = await send(123n);
      const deadline = Date.now() + 10_000;
      let finalized = false;
      while (!finalized && Date.now() < deadline) {
        const { value } = await connection.getSignatureStatuses([stranger.signature]);
        finalized = value[0]?.confirmationStatus === 'finalized';
        await new Promise(resolve => setTimeout(resolve, 50));
      }
      const outcome = await ledgerCommand({ STATE_DIR: stateDir, DATABASE_URL: url }, 'verify', '--json');
      const verdict = JSON.parse(outcome.stdout || outcome.stderr) as Verdict;
      expect(verdict).to.include({ transfers: 1, settled: 1 });
      expect(verdict.differences.map(({ kind, transaction: named }) => [kind, named])).to.deep.equal([
        ['unknown', stranger.signature],
      ]);
      expect(outcome.status).to.equal(1);
    } finally {
      await sandbox.close();
    }
  });
});
