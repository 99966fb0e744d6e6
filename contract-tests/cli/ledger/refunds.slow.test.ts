import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  createAssociatedTokenAccountIdempotentInstruction,
  createInitializeMint2Instruction,
  createMintToInstruction,
  createTransferCheckedInstruction,
  getAssociatedTokenAddressSync,
  MINT_SIZE,
  TOKEN_PROGRAM_ID,
} from '@solana/spl-token';
import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  SystemProgram,
  TransactionMessage,
  TransactionInstruction,
  VersionedTransaction,
} from '@solana/web3.js';
import { expect } from 'chai';
import { openLedger, type Ledger } from '../../../src/ledger/store.js';
import { startSandbox, type Sandbox } from '../../../src/sandbox/start.js';
import { until } from '../../support/faults.js';
import { createChain } from '../../../src/rails/solana/rpc.js';
import { RefundWatch } from '../../../src/operator/refund-watch.js';
import { aRefund, paymentIn } from '../../support/ledger-places.js';

const MAIN = fileURLToPath(new URL('../../../src/cli/ledger/main.js', import.meta.url));
const PRICE = 500_000n;
const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

type Outcome = { status: number; stdout: string; stderr: string };

describe('npm run ledger -- refund', function () {
  this.timeout(120_000);
  let folder: string;
  let sandbox: Sandbox;
  let connection: Connection;
  let ledger: Ledger;
  let mint: PublicKey;
  let buyer: Keypair;
  /** PAY_TO: the operator has its key. */
  const seller = Keypair.generate();
  const stranger = Keypair.generate();
  let env: Record<string, string>;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coinslot-refunds-'));
    sandbox = await startSandbox({ stateDir: folder, rpcPort: 0, facilitatorPort: 0, slotMs: 50 });
    connection = new Connection(sandbox.rpc.url, 'confirmed');
    mint = new PublicKey(sandbox.info.usdcMint);
    const secret = JSON.parse(await readFile(join(folder, 'buyer.json'), 'utf8')) as number[];
    buyer = Keypair.fromSecretKey(Uint8Array.from(secret));
    for (const { publicKey } of [buyer, seller, stranger])
      await connection.requestAirdrop(publicKey, LAMPORTS_PER_SOL);
    await finalized(
      await send(buyer, [
        ...[seller, stranger].flatMap(({ publicKey }) => [
          createAssociatedTokenAccountIdempotentInstruction(
            buyer.publicKey,
            usdcOf(publicKey),
            publicKey,
            mint,
          ),
          createTransferCheckedInstruction(
            usdcOf(buyer.publicKey),
            mint,
            usdcOf(publicKey),
            buyer.publicKey,
            9_000_000n,
            6,
          ),
        ]),
      ]).then(({ signature }) => signature),
    );
    const url = `file:${join(folder, 'ledger.db')}`;
    env = { STATE_DIR: folder, DATABASE_URL: url };
    const { network } = sandbox.info;
    ledger = await openLedger({
      url,
      payTo: seller.publicKey.toBase58(),
      network,
      now: () => Date.now() - 600_000,
    });
  });
  after(async () => {
    await ledger?.close();
    await sandbox.close();
    await rm(folder, { recursive: true, force: true });
  });

  const usdcOf = (owner: PublicKey): PublicKey => getAssociatedTokenAddressSync(mint, owner);

  async function send(
    payer: Keypair,
    instructions: TransactionInstruction[],
    others: Keypair[] = [],
  ): Promise<{ signature: string; id: string }> {
    const { blockhash: recentBlockhash } = await connection.getLatestBlockhash();
    const content = new TransactionMessage({ payerKey: payer.publicKey, recentBlockhash, instructions });
    const transaction = new VersionedTransaction(content.compileToV0Message());
    transaction.sign([payer, ...others]);
    const id = createHash('sha256').update(transaction.message.serialize()).digest('hex');
    const signature = await connection.sendRawTransaction(transaction.serialize(), { skipPreflight: true });
    return { signature, id };
  }

  const move = (from: Keypair, to: PublicKey, amount: bigint): Promise<{ signature: string; id: string }> =>
    send(from, [
      createTransferCheckedInstruction(usdcOf(from.publicKey), mint, usdcOf(to), from.publicKey, amount, 6),
    ]);

  async function finalized(signature: string): Promise<string> {
    await until('it is final', async () => {
      const { value } = await connection.getSignatureStatuses([signature]);
      return value[0]?.confirmationStatus === 'finalized';
    });
    return signature;
  }

  /** Makes a payment on the chain, and records it as owed. @returns its id */
  async function owed(): Promise<string> {
    const slot = await connection.getSlot();
    const { id, signature } = await move(buyer, seller.publicKey, PRICE);
    return paymentIn(ledger, 'owed', {
      id,
      payer: buyer.publicKey.toBase58(),
      amount: PRICE,
      network: sandbox.info.network,
      settlement: await finalized(signature),
      after: slot,
    });
  }

  /** Runs the command as the operator does: in a separate process. */
  function ledgerCommand(environment: Record<string, string>, ...args: string[]): Promise<Outcome> {
    const options = { env: { PATH: process.env.PATH ?? '', INIT_CWD: '/', ...environment }, timeout: 60_000 };
    return new Promise(resolve => {
      execFile(process.execPath, [MAIN, ...args], options, (error, stdout, stderr) =>
        resolve({ status: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
      );
    });
  }

  const refund = (id: string, signature: string, environment = env): Promise<Outcome> =>
    ledgerCommand(environment, 'refund', id, '--tx', signature);

  /** Creates a token of the seller's own, and sends the buyer as much of it as was paid. @returns the signature */
  async function payBackInAnotherToken(): Promise<string> {
    const token = Keypair.generate();
    const at = (owner: PublicKey): PublicKey => getAssociatedTokenAddressSync(token.publicKey, owner);
    const open = ({ publicKey }: Keypair): TransactionInstruction =>
      createAssociatedTokenAccountIdempotentInstruction(
        seller.publicKey,
        at(publicKey),
        publicKey,
        token.publicKey,
      );
    const { signature } = await send(
      seller,
      [
        SystemProgram.createAccount({
          fromPubkey: seller.publicKey,
          newAccountPubkey: token.publicKey,
          space: MINT_SIZE,
          lamports: await connection.getMinimumBalanceForRentExemption(MINT_SIZE),
          programId: TOKEN_PROGRAM_ID,
        }),
        createInitializeMint2Instruction(token.publicKey, 6, seller.publicKey, null),
        open(seller),
        open(buyer),
        createMintToInstruction(token.publicKey, at(seller.publicKey), seller.publicKey, PRICE),
        createTransferCheckedInstruction(
          at(seller.publicKey),
          token.publicKey,
          at(buyer.publicKey),
          seller.publicKey,
          PRICE,
          6,
        ),
      ],
      [token],
    );
    return signature;
  }

  it('rejects a transaction that does not refund this payment, and says why', async () => {
    const early = await finalized((await move(seller, buyer.publicKey, PRICE)).signature);
    const id = await owed();
    const settlement = (await ledger.find(id))?.settlement ?? '';
    const cases: [string, RegExp, () => Promise<string>][] = [
      ['never sent', /does not have it at finalized/, async () => '5'.repeat(88)],
      ['of the payment itself', /transaction of the payment itself/, async () => settlement],
      ['before the payment', /landed in slot \d+, before the payment/, async () => early],
      ['failed', /failed on chain/, async () => (await move(seller, buyer.publicKey, 10n ** 15n)).signature],
      [
        'to somebody else',
        /no USDC reached an account of the payer/,
        async () => (await move(seller, stranger.publicKey, PRICE)).signature,
      ],
      [
        'from somebody else',
        /no USDC left an account of/,
        async () => (await move(stranger, buyer.publicKey, PRICE)).signature,
      ],
      ['in another token', /no USDC left an account of/, payBackInAnotherToken],
    ];
    for (const [name, why, make] of cases) {
      const signature = await make();
      if (!/never sent/.test(name)) await finalized(signature);
      const { status, stderr } = await refund(id, signature);
      expect(stderr, name).to.match(why).and.include('Nothing was changed');
      expect(status, name).to.equal(1);
      expect((await ledger.find(id))?.state, name).to.equal('owed');
    }
  });

  it('records a transfer from the chain as the refund of one payment only, and verify counts it as outgoing money', async () => {
    const [first, second] = [await owed(), await owed()];
    const { signature } = await move(seller, buyer.publicKey, PRICE + 1n);
    await finalized(signature);
    const done = await refund(first, signature);
    expect(done.stderr + done.stdout).to.include('0.500001 USDC refunded');
    expect(done.status).to.equal(0);
    expect((await ledger.find(first))?.state).to.equal('refunded');
    const recorded = await ledger.refundOf(first);
    expect(recorded).to.include({ signature, amount: PRICE + 1n });
    expect(Math.abs((recorded?.refundedAt ?? 0) - Date.now())).to.be.lessThan(300_000);
    const twice = await refund(second, signature);
    expect(twice.stderr).to.match(/refund of another payment.*Nothing was changed/);
    expect((await ledger.find(second))?.state).to.equal('owed');
    const shown = await ledgerCommand(env, 'show', first);
    expect(shown.stdout).to.match(new RegExp(`Refund\\s[^]*${signature}[^]*0\\.500001`));

    const { stdout } = await ledgerCommand(env, 'verify', '--json');
    const verdict = JSON.parse(stdout) as {
      refunds: object;
      withdrawals: { transactions: number };
      differences: { kind: string; payment: string | null }[];
    };
    expect(verdict.refunds).to.deep.equal({ payments: 1, usdc: '0.500001' });
    expect(verdict.withdrawals.transactions).to.be.greaterThan(0);
    expect(verdict.differences.filter(({ kind }) => kind === 'refund')).to.deep.equal([]);
  });

  it('records a partial refund of a delivered payment, and then the rest, and no more', async () => {
    const id = await paymentIn(ledger, 'delivered', { payer: buyer.publicKey.toBase58() });
    for (const [amount, said] of [
      [PRICE - 1n, /0\.499999 USDC refunded/],
      [1n, /0\.000001 USDC refunded/],
      [1n, /was refunded in full; there is nothing to refund/],
    ] as const) {
      const { signature } = await move(seller, buyer.publicKey, amount);
      await finalized(signature);
      const { stdout, stderr } = await refund(id, signature);
      expect(stdout + stderr).to.match(said);
    }
    expect(await ledger.find(id)).to.include({ state: 'delivered', repaid: PRICE, repaying: 0n });
  });

  /** Pays the link of a refund as a wallet would. */
  async function payLinkOf(
    link: string,
    from: Keypair,
    changed: { amount?: bigint; memo?: string } = {},
  ): Promise<string> {
    const { pathname: to, searchParams } = new URL(link);
    expect(searchParams.get('spl-token')).to.equal(mint.toBase58());
    const amount = changed.amount ?? BigInt(Math.round(Number(searchParams.get('amount')) * 1e6));
    const owner = new PublicKey(to);
    const transfer = createTransferCheckedInstruction(
      usdcOf(from.publicKey),
      mint,
      usdcOf(owner),
      from.publicKey,
      amount,
      6,
    );
    const reference = new PublicKey(searchParams.get('reference') ?? '');
    transfer.keys.push({ pubkey: reference, isSigner: false, isWritable: false });
    const memo = new TransactionInstruction({
      keys: [],
      programId: new PublicKey('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr'),
      data: Buffer.from(changed.memo ?? searchParams.get('memo') ?? ''),
    });
    return finalized((await send(from, [memo, transfer])).signature);
  }

  const linkOf = async (id: string, ...more: string[]): Promise<{ link: string; refund: string }> => {
    const { stdout, stderr } = await ledgerCommand(env, 'refund', id, '--json', ...more);
    expect(stderr).to.equal('');
    return JSON.parse(stdout) as { link: string; refund: string };
  };

  it('gives two operators the same payment link, and records the transfer that pays it from any wallet', async () => {
    const id = await owed();
    const [one, two] = await Promise.all([linkOf(id, '--reason', 'a broken answer'), linkOf(id)]);
    expect(two.link).to.equal(one.link);
    expect(new URL(one.link).searchParams.get('memo')).to.equal(`refund:${one.refund}`);
    for (const wrong of [{ amount: PRICE - 1n }, { memo: 'refund:another' }])
      await payLinkOf(one.link, stranger, wrong);
    const { rpc } = sandbox;
    const chain = createChain({ urls: [rpc.url] });
    const watch = new RefundWatch({ ledger, chain, servers: [chain], mint: mint.toBase58(), log: SILENT });
    await watch.look();
    expect(await ledger.find(id)).to.include({ state: 'owed', repaid: 0n, repaying: PRICE });
    const signature = await payLinkOf(one.link, stranger);
    await watch.look();
    await watch.stop();
    await chain.close();
    expect(await ledger.find(id)).to.include({
      state: 'refunded',
      repaid: PRICE,
      repaying: 0n,
      repaidBy: signature,
    });
    expect(await ledger.repayment(one.refund)).to.include({
      state: 'done',
      source: stranger.publicKey.toBase58(),
    });
    expect((await ledgerCommand(env, 'refund', id)).stderr).to.include('there is nothing to refund');
  });

  it('waits until the link is paid, and refuses too high an amount, another amount while it is unpaid, and a second cancellation', async () => {
    const id = await paymentIn(ledger, 'delivered', { payer: buyer.publicKey.toBase58() });
    const { link } = await linkOf(id, '--amount', '0.2');
    expect((await ledgerCommand(env, 'refund', id, '--amount', '0.3')).stderr).to.include('is under way');
    const waiting = ledgerCommand(env, 'refund', id, '--wait');
    const signature = await payLinkOf(link, seller);
    const { stdout, status } = await waiting;
    expect(stdout).to.include(signature);
    expect(status).to.equal(0);
    expect((await ledgerCommand(env, 'refund', id, '--amount', '0.300001')).stderr).to.include(
      'Only 0.30 USDC of payment',
    );
    expect((await ledgerCommand(env, 'refund', id, '--amount', '0')).stderr).to.include('more than zero');
    await linkOf(id);
    expect((await ledgerCommand(env, 'refund', id, '--cancel')).status).to.equal(0);
    expect((await ledgerCommand(env, 'refund', id, '--cancel')).stderr).to.include('Nothing was changed');
    expect(await ledger.find(id)).to.include({ state: 'delivered', repaid: 200_000n, repaying: 0n });
  });

  it("appears in the statement of the month, whose closing balance equals that on the sandbox's chain to the last unit", async () => {
    const month = new Date(Date.now() - 600_000).toISOString().slice(0, 7);
    const { stdout } = await ledgerCommand(env, 'statement', month, '--json');
    type Found = Record<'opening' | 'closing', string> & Record<'sales' | 'refunds', { count: number }>;
    const { opening, sales, refunds, closing, chain } = JSON.parse(stdout) as Found & {
      chain: Record<'closing' | 'unexplained', string> & { missing: { usdc: string }[] };
    };
    const held = (await connection.getTokenAccountBalance(usdcOf(seller.publicKey), 'finalized')).value
      .amount;
    const atomic = (text: string): bigint => BigInt(Math.round(Number(text) * 1e6));
    expect(atomic(chain.closing)).to.equal(BigInt(held));
    expect(chain.unexplained).to.equal('0.00');
    // The tests above sold calls that nobody paid for on the chain.
    const madeUp = chain.missing.reduce((sum, { usdc }) => sum + atomic(usdc), 0n);
    expect(atomic(closing) - madeUp).to.equal(BigInt(held));
    expect(opening).to.equal('0.00');
    expect([sales, refunds].map(({ count }) => count > 0)).to.deep.equal([true, true]);
  });

  it('is reported as a difference by verify if the chain shows no such refund', async () => {
    const id = await owed();
    const signature = '4'.repeat(88);
    expect(await ledger.refund(id, aRefund({ signature }))).to.equal('refunded');
    const { stdout, status } = await ledgerCommand(env, 'verify', '--json');
    const { differences } = JSON.parse(stdout) as { differences: Record<string, string>[] };
    const [named] = differences.filter(({ kind }) => kind === 'refund');
    expect(named).to.include({ payment: id, transaction: signature });
    expect(named?.['detail']).to.include('does not have it at finalized');
    expect(status).to.equal(1);
  });

  it('is refused if no chain can be queried', async () => {
    const id = await owed();
    const { signature } = await move(seller, buyer.publicKey, PRICE);
    await finalized(signature);
    const nowhere = { DATABASE_URL: env['DATABASE_URL'] ?? '', STATE_DIR: tmpdir() };
    const without = await refund(id, signature, nowhere);
    expect(without).to.include({ status: 1, stdout: '' });
    expect(without.stderr).to.include('Set SOLANA_RPC_URL');
    const down = await refund(id, signature, { ...nowhere, SOLANA_RPC_URL: 'http://127.0.0.1:9' });
    expect(down.status).to.equal(1);
    expect(down.stderr).to.include('not reachable');
    expect((await ledger.find(id))?.state).to.equal('owed');
  });
});
