import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { getMint } from '@solana/spl-token';
import {
  Connection,
  Keypair,
  PublicKey,
  SystemProgram,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import { expect } from 'chai';
import { Chain } from '../../src/sandbox/chain.js';
import { openGenesis, walletOf } from '../../src/sandbox/genesis.js';
import { History, type Entry } from '../../src/sandbox/history.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/start.js';
import { Vm } from '../../src/sandbox/vm.js';
import { decodeTransaction } from '../../src/sandbox/wire-transaction.js';
import { folder, sandbox, type Json, allInOneSandbox } from '../support/one-sandbox.js';

describe('the local Solana', () => {
  allInOneSandbox();

  it('refuses a second sandbox on its state folder', async () => {
    const second = startSandbox({ stateDir: folder, rpcPort: 0, facilitatorPort: 0 });
    const error = await second.then(
      () => null,
      (cause: unknown) => cause as Error,
    );
    expect(error?.message).to.match(/Another sandbox is already running on .*STATE_DIR/);
  });

  it('makes its keys readable only to the owner of the state folder', () => {
    for (const file of ['buyer.json', 'chain-genesis.json', 'chain-journal.jsonl']) {
      expect(statSync(join(folder, file)).mode & 0o077).to.equal(0);
    }
    expect(walletOf(sandbox.chain.genesis.keys.buyer).address).to.equal(sandbox.info.buyer);
  });
});

describe('the local Solana, resumed', () => {
  let folder: string;
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'coinslot-sandbox-'))));
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const start = (slotMs: number): Promise<Sandbox> =>
    startSandbox({ stateDir: folder, rpcPort: 0, facilitatorPort: 0, slotMs });

  it('has its market on the same port, unless another program uses it', async () => {
    const first = await start(400);
    const { marketUrl } = first.info;
    await first.close();
    const second = await start(400);
    expect(second.info.marketUrl).to.equal(marketUrl);
    await second.close();
    const taker = createServer().listen(Number(new URL(marketUrl ?? '').port), '127.0.0.1');
    await once(taker, 'listening');
    const third = await start(400);
    expect(third.info.marketUrl).to.be.a('string').that.is.not.equal(marketUrl);
    await third.close();
    taker.close();
  });

  it('has the same chain: mints, balances, history, slots that only grow', async () => {
    const first = await start(400);
    let connection = new Connection(first.rpc.url, 'confirmed');
    const to = Keypair.generate().publicKey;
    const signature = await connection.requestAirdrop(to, 5_000_000);
    const before = await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 });
    const slot = await connection.getSlot('processed');
    await first.close();
    const second = await start(5);
    try {
      connection = new Connection(second.rpc.url, 'confirmed');
      expect(second.info.mints).to.deep.equal(first.info.mints);
      expect(second.info.id).to.equal(first.info.id);
      expect(await connection.getBalance(to)).to.equal(5_000_000);
      expect(await connection.getSlot('processed')).to.be.at.least(slot);
      const after = await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 });
      expect(after).to.deep.equal(before);
      expect(await connection.getSignaturesForAddress(to)).to.have.length(1);
    } finally {
      await second.close();
    }
  });

  it("adds the examples' mint to a chain that was created without it", async () => {
    await (await start(400)).close();
    const file = join(folder, 'chain-genesis.json');
    const { mints, accounts, ...rest } = JSON.parse(readFileSync(file, 'utf8')) as {
      mints: Json;
      accounts: Json;
    };
    delete accounts[mints['example'] as string];
    delete mints['example'];
    writeFileSync(file, JSON.stringify({ ...rest, mints, accounts }));
    const sandbox = await start(400);
    try {
      const mint = new PublicKey(sandbox.info.mints.example);
      expect(await getMint(new Connection(sandbox.rpc.url, 'confirmed'), mint)).to.include({ decimals: 6 });
    } finally {
      await sandbox.close();
    }
  });

  it('expires blockhashes after 150 slots and makes transactions final after 32', async () => {
    const sandbox = await start(2);
    try {
      const connection = new Connection(sandbox.rpc.url, 'confirmed');
      const { blockhash, lastValidBlockHeight } = await connection.getLatestBlockhash();
      const to = Keypair.generate().publicKey;
      const signature = await connection.requestAirdrop(to, 5_000_000);
      for (
        let i = 0;
        i < 200 && (await connection.getBlockHeight('processed')) <= lastValidBlockHeight + 1;
        i++
      ) {
        await sleep(20);
      }
      expect((await connection.isBlockhashValid(blockhash)).value).to.equal(false);
      expect((await connection.getSignatureStatus(signature)).value).to.deep.include({
        confirmations: null,
        confirmationStatus: 'finalized',
      });
      expect(await connection.getSignaturesForAddress(to, {}, 'finalized')).to.have.length(1);
      const payer = Keypair.fromSecretKey(Uint8Array.from(sandbox.chain.genesis.keys.buyer));
      const message = new TransactionMessage({
        payerKey: payer.publicKey,
        recentBlockhash: blockhash,
        instructions: [SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: to, lamports: 1 })],
      }).compileToV0Message();
      const late = new VersionedTransaction(message);
      late.sign([payer]);
      const refused = await connection.sendTransaction(late).catch((error: unknown) => error as Error);
      expect((refused as Error).message).to.contain('Blockhash not found');
      const unseen = await connection.sendTransaction(late, { skipPreflight: true });
      expect(
        (await connection.getSignatureStatus(unseen, { searchTransactionHistory: true })).value,
      ).to.equal(null);
    } finally {
      await sandbox.close();
    }
  });

  it('cuts off an incomplete last line, and refuses a journal damaged in the middle', async () => {
    const journal = join(folder, 'chain-journal.jsonl');
    let sandbox = await start(400);
    const to = Keypair.generate().publicKey;
    await new Connection(sandbox.rpc.url).requestAirdrop(to, 5_000_000);
    await sandbox.close();
    const whole = readFileSync(journal);
    appendFileSync(journal, whole.subarray(0, whole.length - 20));
    sandbox = await start(400);
    expect(await new Connection(sandbox.rpc.url, 'confirmed').getBalance(to)).to.equal(5_000_000);
    await sandbox.close();
    expect(readFileSync(journal).equals(whole)).to.equal(true);
    appendFileSync(journal, 'torn\n');
    const error = await start(400).then(
      () => null,
      (cause: unknown) => cause as Error,
    );
    expect(error?.message).to.match(/damaged at byte \d+.*delete the state folder/);
  });
});

describe('the journal of the local Solana', () => {
  it('is rewritten without forgotten transactions, and keeps every account', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'coinslot-sandbox-'));
    try {
      const journalFile = join(folder, 'journal.jsonl');
      const open = async (maxTransactions: number): Promise<Chain> => {
        const vm = await Vm.load();
        const genesis = await openGenesis(join(folder, 'genesis.json'), vm, 400);
        return new Chain({ genesis, vm, journalFile, slotMs: 400, maxTransactions });
      };
      const to = Array.from({ length: 20 }, () => Keypair.generate().publicKey);
      const signatures: string[] = [];
      let chain = await open(100);
      const faucet = Keypair.fromSecretKey(Uint8Array.from(chain.genesis.keys.authority));
      for (const [index, toPubkey] of to.entries()) {
        const message = new TransactionMessage({
          payerKey: faucet.publicKey,
          recentBlockhash: chain.latestBlockhash('processed').blockhash,
          instructions: [
            SystemProgram.transfer({ fromPubkey: faucet.publicKey, toPubkey, lamports: 10 ** 7 + index }),
          ],
        }).compileToV0Message();
        const transaction = new VersionedTransaction(message);
        transaction.sign([faucet]);
        signatures.push((await chain.submit(decodeTransaction(transaction.serialize()))).signature);
      }
      const last = chain.details(chain.find(signatures[19]!)!);
      await chain.close();
      const size = statSync(journalFile).size;
      chain = await open(10);
      await chain.close();
      expect(statSync(journalFile).size).to.be.lessThan(size);
      chain = await open(100);
      to.forEach((address, index) => {
        expect(chain.account(address.toBase58())!.lamports).to.equal(BigInt(10 ** 7 + index));
      });
      expect(signatures.map(one => chain.find(one) !== null)).to.deep.equal(
        signatures.map((_, index) => index >= 10),
      );
      expect(chain.details(chain.find(signatures[19]!)!)).to.deep.equal({ ...last, accounts: {} });
      await chain.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe('the history of the local Solana', () => {
  const entry = (n: number): Entry => ({
    signature: `s${n}`,
    hash: `h${n}`,
    slot: n,
    blockTime: n,
    err: null,
    memo: null,
    place: { offset: n, length: 1 },
  });

  it('forgets the oldest transactions beyond its limit, in every index', () => {
    const history = new History(10);
    for (let n = 0; n < 5000; n++) history.add(entry(n), ['busy', `only${n}`]);
    expect(history.size).to.equal(10);
    expect(history.forgotten).to.equal(4990);
    expect(history.find('s4989')).to.equal(null);
    expect(history.has('h4989')).to.equal(false);
    expect(history.has('h4990')).to.equal(true);
    const page = { limit: 1000, newest: Infinity };
    expect(history.ofAddress('only4989', page)).to.deep.equal([]);
    expect(history.ofAddress('busy', page).map(({ slot }) => slot)).to.deep.equal(
      Array.from({ length: 10 }, (_, i) => 4999 - i),
    );
    expect(
      history.ofAddress('busy', { ...page, before: 's4995', until: 's4992' }).map(({ slot }) => slot),
    ).to.deep.equal([4994, 4993]);
  });
});
