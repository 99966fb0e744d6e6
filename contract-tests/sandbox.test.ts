import { createHash } from 'node:crypto';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createKeyPairSignerFromBytes, createSolanaRpc, signature as toSignature } from '@solana/kit';
import {
  TOKEN_2022_PROGRAM_ID,
  createTransferCheckedInstruction,
  getAccount,
  getAssociatedTokenAddressSync,
  getMint,
  getPermanentDelegate,
  getTransferFeeConfig,
} from '@solana/spl-token';
import {
  AddressLookupTableAccount,
  Connection,
  Keypair,
  PublicKey,
  SendTransactionError,
  SystemProgram,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import type { PaymentRequirements } from '@x402/core/types';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { ExactSvmSchemeV1 } from '@x402/svm/exact/v1/client';
import { expect } from 'chai';
import { Chain } from '../src/sandbox/chain.js';
import { openGenesis, walletOf } from '../src/sandbox/genesis.js';
import { History, type Entry } from '../src/sandbox/history.js';
import { startSandbox, type Sandbox } from '../src/sandbox/start.js';
import { Vm } from '../src/sandbox/vm.js';
import { readTransaction } from '../src/sandbox/wire.js';
import { craftPayment, type Recipe } from './support/craft.js';

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are asserted on, not typed
type Json = { [name: string]: any };

describe('the local Solana', () => {
  let folder: string;
  let sandbox: Sandbox;
  let connection: Connection;
  let buyer: Keypair;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'coinslot-sandbox-'));
    sandbox = await startSandbox({ stateDir: folder, rpcPort: 0, facilitatorPort: 0 });
    connection = new Connection(sandbox.rpc.url, 'confirmed');
    buyer = Keypair.fromSecretKey(
      Uint8Array.from(JSON.parse(readFileSync(join(folder, 'buyer.json'), 'utf8'))),
    );
  });

  after(async () => {
    await sandbox.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const usdcOf = async (owner: string): Promise<bigint> => {
    const account = getAssociatedTokenAddressSync(new PublicKey(sandbox.info.usdcMint), new PublicKey(owner));
    return (await getAccount(connection, account)).amount;
  };

  const call = async (method: string, params: unknown[]): Promise<Json> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    return (await (await fetch(sandbox.rpc.url, { method: 'POST', body })).json()) as Json;
  };

  const facilitate = async (path: string, body: unknown): Promise<{ status: number; answer: Json }> => {
    const response = await fetch(sandbox.facilitator.url + path, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    return { status: response.status, answer: (await response.json()) as Json };
  };

  const offer = (extra: Json = {}): PaymentRequirements => ({
    scheme: 'exact',
    network: sandbox.info.network as PaymentRequirements['network'],
    amount: '10000',
    asset: sandbox.info.usdcMint,
    payTo: sandbox.info.payTo,
    maxTimeoutSeconds: 60,
    extra: { feePayer: sandbox.info.feePayer, ...extra },
  });

  const pay = async (requirements: PaymentRequirements): Promise<Json> => {
    const scheme = new ExactSvmScheme(await createKeyPairSignerFromBytes(buyer.secretKey), {
      rpcUrl: sandbox.rpc.url,
    });
    const { payload } = await scheme.createPaymentPayload(2, requirements);
    const paymentPayload = {
      x402Version: 2,
      payload,
      resource: { url: 'http://x/' },
      accepted: requirements,
    };
    return { x402Version: 2, paymentPayload, paymentRequirements: requirements };
  };

  const transfer = async (amount: bigint, blockhash?: string): Promise<VersionedTransaction> => {
    const mint = new PublicKey(sandbox.info.usdcMint);
    const from = getAssociatedTokenAddressSync(mint, buyer.publicKey);
    const to = getAssociatedTokenAddressSync(mint, new PublicKey(sandbox.info.payTo));
    const message = new TransactionMessage({
      payerKey: buyer.publicKey,
      recentBlockhash: blockhash ?? (await connection.getLatestBlockhash()).blockhash,
      instructions: [createTransferCheckedInstruction(from, mint, to, buyer.publicKey, amount, 6)],
    }).compileToV0Message();
    const transaction = new VersionedTransaction(message);
    transaction.sign([buyer]);
    return transaction;
  };

  const base64 = (transaction: VersionedTransaction): string =>
    Buffer.from(transaction.serialize()).toString('base64');

  it('is paid by the official v2 client through the official facilitator, to the atomic unit', async () => {
    const before = [await usdcOf(sandbox.info.buyer), await usdcOf(sandbox.info.payTo)] as const;
    const payment = await pay(offer());
    expect((await facilitate('/verify', payment)).answer).to.include({
      isValid: true,
      payer: sandbox.info.buyer,
    });
    const { status, answer } = await facilitate('/settle', payment);
    expect(status).to.equal(200);
    expect(answer).to.include({ success: true, payer: sandbox.info.buyer, network: sandbox.info.network });
    expect(await usdcOf(sandbox.info.buyer)).to.equal(before[0] - 10000n);
    expect(await usdcOf(sandbox.info.payTo)).to.equal(before[1] + 10000n);
    const landed = await connection.getTransaction(answer['transaction'], {
      maxSupportedTransactionVersion: 0,
    });
    const sent = VersionedTransaction.deserialize(
      Buffer.from(payment['paymentPayload'].payload.transaction, 'base64'),
    );
    const hash = (message: { serialize(): Uint8Array }): string =>
      createHash('sha256').update(message.serialize()).digest('hex');
    expect(hash(landed!.transaction.message)).to.equal(hash(sent.message));
    // The fee that was charged is the fee that was reported.
    expect(landed!.meta!.preBalances[0]! - landed!.meta!.postBalances[0]!).to.equal(landed!.meta!.fee);
  });

  it('is paid by the official v1 client', async () => {
    const before = await usdcOf(sandbox.info.payTo);
    const { amount, ...rest } = offer();
    const requirements = {
      ...rest,
      network: sandbox.info.v1Network,
      maxAmountRequired: amount,
      resource: 'http://127.0.0.1:8402/x',
      description: 'a test',
      mimeType: 'application/json',
    } as unknown as PaymentRequirements;
    const signer = await createKeyPairSignerFromBytes(buyer.secretKey);
    const scheme = new ExactSvmSchemeV1(signer, { rpcUrl: sandbox.rpc.url });
    const paymentPayload = await scheme.createPaymentPayload(1, requirements);
    const payment = { x402Version: 1, paymentPayload, paymentRequirements: requirements };
    expect((await facilitate('/verify', payment)).answer).to.include({ isValid: true });
    expect((await facilitate('/settle', payment)).answer).to.include({ success: true });
    expect(await usdcOf(sandbox.info.payTo)).to.equal(before + 10000n);
  });

  it('advertises both versions with the fee payer', async () => {
    const supported = (await (await fetch(`${sandbox.facilitator.url}/supported`)).json()) as Json;
    const { network, v1Network, feePayer } = sandbox.info;
    expect(supported['kinds']).to.deep.include.members([
      { x402Version: 2, scheme: 'exact', network, extra: { feePayer } },
      { x402Version: 1, scheme: 'exact', network: v1Network, extra: { feePayer } },
    ]);
  });

  it('moves the money once when one payment is settled many times at once', async () => {
    const before = await usdcOf(sandbox.info.payTo);
    const payment = await pay(offer());
    const answers = await Promise.all(Array.from({ length: 8 }, () => facilitate('/settle', payment)));
    expect(answers.filter(({ answer }) => answer['success'])).to.have.length(1);
    expect(await usdcOf(sandbox.info.payTo)).to.equal(before + 10000n);
  });

  it('lands a message once: a copy is refused by name, or answered with its signature without preflight', async () => {
    const before = await usdcOf(sandbox.info.payTo);
    const transaction = await transfer(7n);
    const first = await connection.sendTransaction(transaction);
    expect(await connection.sendTransaction(transaction, { skipPreflight: true })).to.equal(first);
    const refused = await connection.sendTransaction(transaction).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(SendTransactionError);
    expect((refused as Error).message).to.contain('already been processed');
    expect((await connection.simulateTransaction(transaction)).value.err).to.equal('AlreadyProcessed');
    expect(await usdcOf(sandbox.info.payTo)).to.equal(before + 7n);
  });

  it('refuses a blockhash it never gave out, and says so at verify', async () => {
    const unknown = Keypair.generate().publicKey.toBase58();
    const { answer } = await facilitate('/verify', await pay(offer({ recentBlockhash: unknown })));
    expect(answer['isValid']).to.equal(false);
    expect(answer['invalidMessage']).to.contain('BlockhashNotFound');
  });

  it('gives a fresh blockhash to every caller and keeps all of them alive', async () => {
    const hashes = await Promise.all(Array.from({ length: 50 }, () => connection.getLatestBlockhash()));
    expect(new Set(hashes.map(({ blockhash }) => blockhash)).size).to.equal(50);
    for (const { blockhash } of hashes) {
      expect((await connection.isBlockhashValid(blockhash)).value).to.equal(true);
    }
    const height = await connection.getBlockHeight();
    expect(hashes[0]!.lastValidBlockHeight).to.be.within(height + 100, height + 150);
  });

  it('simulates a half-signed payment, and tells one that has no funds', async () => {
    const payment = await pay(offer());
    const transaction = payment['paymentPayload'].payload.transaction as string;
    const options = { encoding: 'base64', sigVerify: false };
    const { result } = await call('simulateTransaction', [transaction, options]);
    expect(result.value.err).to.equal(null);
    expect(result.value.unitsConsumed).to.be.greaterThan(0);
    const strict = await call('simulateTransaction', [transaction, { ...options, sigVerify: true }]);
    expect(strict['error'].code).to.equal(-32003);
    const poor = await facilitate('/verify', await pay({ ...offer(), amount: '999999999999999' }));
    expect(poor.answer['isValid']).to.equal(false);
    expect(poor.answer['invalidMessage']).to.contain('InstructionError');
  });

  it('answers a simulation with replaced blockhash and the accounts asked for', async () => {
    const dead = await transfer(5n, Keypair.generate().publicKey.toBase58());
    const account = getAssociatedTokenAddressSync(
      new PublicKey(sandbox.info.usdcMint),
      new PublicKey(sandbox.info.payTo),
    );
    const before = await usdcOf(sandbox.info.payTo);
    const { value } = await connection.simulateTransaction(dead, {
      replaceRecentBlockhash: true,
      accounts: { encoding: 'base64', addresses: [account.toBase58()] },
    });
    expect(value.err).to.equal(null);
    const data = Buffer.from(value.accounts![0]!.data[0]!, 'base64');
    expect(data.readBigUInt64LE(64)).to.equal(before + 5n);
    expect(await usdcOf(sandbox.info.payTo)).to.equal(before);
  });

  it('refuses a wrong signature', async () => {
    const transaction = await transfer(1n);
    transaction.signatures[0] = new Uint8Array(64).fill(7);
    const answer = await call('sendTransaction', [
      base64(transaction),
      { encoding: 'base64', skipPreflight: true },
    ]);
    expect(answer['error'].code).to.equal(-32003);
  });

  it('keeps a transaction that failed on the chain, with its error and its fee', async () => {
    const before = await connection.getBalance(buyer.publicKey);
    const failing = await transfer(10n ** 15n);
    const refused = await connection.sendTransaction(failing).catch((error: unknown) => error);
    expect((refused as SendTransactionError).message).to.contain('custom program error: 0x1');
    expect(await connection.getBalance(buyer.publicKey)).to.equal(before);
    const signature = await connection.sendTransaction(failing, { skipPreflight: true });
    const err = { InstructionError: [0, { Custom: 1 }] };
    expect((await connection.getSignatureStatus(signature)).value).to.deep.include({ err });
    const landed = await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 });
    expect(landed!.meta!.err).to.deep.equal(err);
    expect(landed!.meta!.fee).to.equal(5000);
    expect(landed!.meta!.logMessages!.join()).to.contain('insufficient funds');
    expect(await connection.getBalance(buyer.publicKey)).to.equal(before - 5000);
  });

  it('drops a transaction whose payer has nothing for the fee', async () => {
    const poor = Keypair.generate();
    const message = new TransactionMessage({
      payerKey: poor.publicKey,
      recentBlockhash: (await connection.getLatestBlockhash()).blockhash,
      instructions: [
        SystemProgram.transfer({ fromPubkey: poor.publicKey, toPubkey: buyer.publicKey, lamports: 1 }),
      ],
    }).compileToV0Message();
    const transaction = new VersionedTransaction(message);
    transaction.sign([poor]);
    const signature = await connection.sendTransaction(transaction, { skipPreflight: true });
    expect((await connection.getSignatureStatus(signature)).value).to.equal(null);
    expect(await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 })).to.equal(null);
  });

  it('survives bytes that are no transaction', async () => {
    const whole = Buffer.from((await transfer(1n)).serialize());
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.alloc(10),
      whole.subarray(0, 100),
      Buffer.concat([whole, Buffer.alloc(1)]),
    ]) {
      for (const method of ['simulateTransaction', 'sendTransaction']) {
        const answer = await call(method, [bytes.toString('base64'), { encoding: 'base64' }]);
        expect(answer['error'].code).to.equal(-32602);
      }
    }
    for (let at = 65; at < whole.length; at++) {
      const bent = Buffer.from(whole);
      bent[at] = 0xff;
      await call('simulateTransaction', [
        bent.toString('base64'),
        { encoding: 'base64', replaceRecentBlockhash: true },
      ]);
    }
    expect((await call('getHealth', []))['result']).to.equal('ok');
  });

  it('lists an address newest first, in pages, and shows finality only when it is there', async () => {
    const to = Keypair.generate().publicKey;
    const signatures: string[] = [];
    for (let i = 0; i < 5; i++) signatures.unshift(await connection.requestAirdrop(to, 1_000_000 + i));
    const listed = await connection.getSignaturesForAddress(to);
    expect(listed.map(({ signature }) => signature)).to.deep.equal(signatures);
    expect(listed[0]).to.include({ err: null, confirmationStatus: 'confirmed' });
    const page = await connection.getSignaturesForAddress(to, {
      before: signatures[1]!,
      until: signatures[4]!,
      limit: 2,
    });
    expect(page.map(({ signature }) => signature)).to.deep.equal(signatures.slice(2, 4));
    expect(await connection.getSignaturesForAddress(to, {}, 'finalized')).to.deep.equal([]);
    expect(
      await connection.getTransaction(signatures[0]!, {
        commitment: 'finalized',
        maxSupportedTransactionVersion: 0,
      }),
    ).to.equal(null);
    expect(await connection.getBalance(to)).to.equal(5_000_010);
  });

  it('serves every sample mint to spl-token', async () => {
    const { classic, noAuthorities, token2022, untraded, uninitialised } = sandbox.info.mints;
    const mintOf = (address: string, program?: PublicKey): ReturnType<typeof getMint> =>
      getMint(connection, new PublicKey(address), 'confirmed', program);
    const full = await mintOf(classic);
    expect(full).to.include({ decimals: 9, supply: 1_234_567_890_123_456_789n, isInitialized: true });
    expect(full.mintAuthority).to.not.equal(null);
    expect(full.freezeAuthority).to.not.equal(null);
    expect(await mintOf(noAuthorities)).to.include({
      decimals: 6,
      mintAuthority: null,
      freezeAuthority: null,
    });
    expect(await mintOf(untraded)).to.include({ decimals: 0, supply: 42n });
    const extended = await mintOf(token2022, TOKEN_2022_PROGRAM_ID);
    expect(getTransferFeeConfig(extended)!.newerTransferFee.transferFeeBasisPoints).to.equal(50);
    expect(getPermanentDelegate(extended)!.delegate.equals(full.mintAuthority!)).to.equal(true);
    const empty = await connection.getAccountInfo(new PublicKey(uninitialised));
    expect(empty!.data.equals(Buffer.alloc(82))).to.equal(true);
    expect(await mintOf(uninitialised)).to.include({ isInitialized: false });
    expect(await mintOf(sandbox.info.usdcMint)).to.include({ decimals: 6, supply: 1_000_000_000_000n });
  });

  it('parses mints, token accounts and transfers', async () => {
    const parsedMint = await connection.getParsedAccountInfo(new PublicKey(sandbox.info.mints.token2022));
    const mint = (parsedMint.value!.data as Json)['parsed'];
    expect(mint.type).to.equal('mint');
    const metadata = mint.info.extensions.find((one: Json) => one['extension'] === 'tokenMetadata');
    expect(metadata.state).to.include({ name: 'Coinslot Sample', symbol: 'CSLOT' });
    const owned = await connection.getParsedTokenAccountsByOwner(buyer.publicKey, {
      mint: new PublicKey(sandbox.info.usdcMint),
    });
    expect(owned.value).to.have.length(1);
    const amount = await usdcOf(sandbox.info.buyer);
    expect(owned.value[0]!.account.data.parsed.info.tokenAmount.amount).to.equal(amount.toString());
    const signature = await connection.sendTransaction(await transfer(1_500_000n));
    const landed = await connection.getParsedTransaction(signature, { maxSupportedTransactionVersion: 0 });
    const [instruction] = landed!.transaction.message.instructions as Json[];
    expect(instruction!['parsed']).to.deep.include({ type: 'transferChecked' });
    expect(instruction!['parsed'].info.tokenAmount.uiAmountString).to.equal('1.5');
    const change = (list: Json[] | null | undefined): bigint =>
      BigInt(list!.find(one => one['owner'] === sandbox.info.buyer)!['uiTokenAmount'].amount);
    expect(change(landed!.meta!.preTokenBalances) - change(landed!.meta!.postTokenBalances)).to.equal(
      1_500_000n,
    );
    const supply = await connection.getTokenSupply(new PublicKey(sandbox.info.mints.classic));
    expect(supply.value.uiAmountString).to.equal('1234567890.123456789');
  });

  it('speaks with @solana/kit', async () => {
    const rpc = createSolanaRpc(sandbox.rpc.url);
    const sent = await connection.sendTransaction(await transfer(3n));
    const { value } = await rpc.getSignatureStatuses([toSignature(sent)]).send();
    expect(value[0]!.confirmationStatus).to.equal('confirmed');
    expect(await rpc.getGenesisHash().send()).to.equal('EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG');
    const missing = await rpc
      .getAccountInfo(Keypair.generate().publicKey.toBase58() as never, { encoding: 'base64' })
      .send();
    expect(missing.value).to.equal(null);
  });

  it('answers base64+zstd, which Rust clients ask for, with base64 under its own name', async () => {
    const asked = async (encoding: string): Promise<Json> =>
      (await call('getAccountInfo', [sandbox.info.usdcMint, { encoding }]))['result'].value;
    expect(await asked('base64+zstd')).to.deep.equal(await asked('base64'));
    expect((await asked('base64+zstd'))['data'][1]).to.equal('base64');
  });

  it("answers with Solana's error codes, singly and in batches", async () => {
    expect((await call('noSuchMethod', []))['error'].code).to.equal(-32601);
    expect((await call('constructor', []))['error'].code).to.equal(-32601);
    expect((await call('getAccountInfo', ['x']))['error'].code).to.equal(-32602);
    expect(
      (await call('getBalance', [sandbox.info.buyer, { minContextSlot: 10 ** 12 }]))['error'].code,
    ).to.equal(-32016);
    const signature = await connection.sendTransaction(await transfer(2n));
    const unversioned = await call('getTransaction', [signature, { commitment: 'confirmed' }]);
    expect(unversioned['error'].code).to.equal(-32015);
    const post = async (body: string): Promise<Json> =>
      (await (await fetch(sandbox.rpc.url, { method: 'POST', body })).json()) as Json;
    expect((await post('{'))['error'].code).to.equal(-32700);
    const batch = await post('[{"id":1,"method":"getHealth"},{"id":2,"method":"getSlot","params":[]},7]');
    expect(batch[0]).to.deep.equal({ jsonrpc: '2.0', id: 1, result: 'ok' });
    expect(batch[1].result).to.be.a('number');
    expect(batch[2].error.code).to.equal(-32600);
    expect(
      (await fetch(sandbox.rpc.url, { method: 'POST', body: 'x'.repeat((1 << 20) + 1) })).status,
    ).to.equal(413);
    expect(await (await fetch(`${sandbox.rpc.url}/health`)).text()).to.equal('ok');
  });

  it('pays no more than small fees: what needs more is refused by verify and settle, in both versions, and costs nothing', async () => {
    const { v1Network, feePayer, payTo, usdcMint } = sandbox.info;
    const { blockhash } = await connection.getLatestBlockhash();
    const lamports = () => connection.getBalance(new PublicKey(feePayer), 'confirmed');
    const table = new AddressLookupTableAccount({
      key: Keypair.generate().publicKey,
      state: { deactivationSlot: 0n, lastExtendedSlot: 0, lastExtendedSlotStartIndex: 0, addresses: [] },
    });
    table.state.addresses.push(new PublicKey(usdcMint));
    const before = await lamports();
    const recipes: [string, Recipe][] = [
      ['compute_limit_instruction_too_high', { computeLimit: 1_400_000, computePrice: 5_000_000n }],
      ['compute_limit_instruction_too_high', { computeLimit: 200_001 }],
      ['compute_price_instruction_too_high', { computeLimit: 200_000, computePrice: 100_001n }],
      ['excessive_signers', { cosigners: [Keypair.generate()] }],
      ['payload_transaction', { lookupTables: [table] }],
    ];
    for (const [reason, recipe] of recipes) {
      const { transaction } = craftPayment({ payer: buyer, feePayer, payTo, blockhash, ...recipe });
      const payload = { transaction };
      const { amount, ...rest } = offer();
      const v1 = { ...rest, network: v1Network, maxAmountRequired: amount, resource: 'http://x/' };
      const calls = [
        {
          x402Version: 2,
          paymentPayload: { x402Version: 2, payload, accepted: offer() },
          requirements: offer(),
        },
        {
          x402Version: 1,
          paymentPayload: { x402Version: 1, scheme: 'exact', network: v1Network, payload },
          requirements: v1,
        },
      ];
      for (const { requirements: paymentRequirements, ...rest } of calls) {
        const verified = await facilitate('/verify', { ...rest, paymentRequirements });
        expect(verified.answer, JSON.stringify(verified)).to.include({ isValid: false });
        expect(verified.answer['invalidReason']).to.match(new RegExp(`^invalid_exact_svm_.*${reason}$`));
        const settled = await facilitate('/settle', { ...rest, paymentRequirements });
        expect(settled.answer).to.include({ success: false, transaction: '' });
      }
    }
    const most = craftPayment({
      payer: buyer,
      feePayer,
      payTo,
      blockhash,
      computeLimit: 200_000,
      computePrice: 100_000n,
    });
    const paymentPayload = { x402Version: 2, payload: { transaction: most.transaction }, accepted: offer() };
    const { answer } = await facilitate('/settle', {
      x402Version: 2,
      paymentPayload,
      paymentRequirements: offer(),
    });
    expect(answer, JSON.stringify(answer)).to.include({ success: true });
    // Two signatures and the priority fee.
    expect(before - (await lamports())).to.equal(10_000 + 20_000);
  });

  it('answers a malformed facilitator call with 400', async () => {
    const payment = await pay(offer());
    const paymentPayload = { ...payment['paymentPayload'], accepted: { scheme: 'exact' } };
    const elsewhere = { ...offer(), network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' };
    for (const body of [
      null,
      [],
      {},
      { ...payment, paymentPayload },
      { ...payment, paymentPayload: { ...payment['paymentPayload'], x402Version: 3 } },
      { ...payment, paymentRequirements: { ...offer(), amount: 'all' } },
      { ...payment, paymentRequirements: elsewhere },
    ]) {
      for (const path of ['/verify', '/settle']) {
        const { status, answer } = await facilitate(path, body);
        expect(status).to.equal(400);
        expect(answer['error']).to.be.a('string');
      }
    }
    const junk = {
      ...payment,
      paymentPayload: { ...payment['paymentPayload'], payload: { transaction: 'AAAA' } },
    };
    expect((await facilitate('/verify', junk)).answer['isValid']).to.equal(false);
    expect((await facilitate('/settle', junk)).answer['success']).to.equal(false);
  });

  it('refuses a second sandbox on its state folder, by name', async () => {
    const second = startSandbox({ stateDir: folder, rpcPort: 0, facilitatorPort: 0 });
    const error = await second.then(
      () => null,
      (cause: unknown) => cause as Error,
    );
    expect(error?.message).to.match(/Another sandbox already runs on .*STATE_DIR/);
  });

  it('keeps its keys to the owner of the state folder', () => {
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

  it("gets the examples' mint where it was founded without it", async () => {
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

  it('lets blockhashes die after 150 slots and transactions become final after 32', async () => {
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

  it('cuts off a torn last line and refuses a journal damaged in the middle', async () => {
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
  it('is rewritten without the forgotten transactions, and loses no account', async () => {
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
        signatures.push((await chain.submit(readTransaction(transaction.serialize()))).signature);
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

  it('forgets the oldest beyond its limit, in every index', () => {
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
