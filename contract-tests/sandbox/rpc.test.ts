import { createSolanaRpc, signature as toSignature } from '@solana/kit';
import {
  TOKEN_2022_PROGRAM_ID,
  getAssociatedTokenAddressSync,
  getMint,
  getPermanentDelegate,
  getTransferFeeConfig,
} from '@solana/spl-token';
import {
  Keypair,
  PublicKey,
  SendTransactionError,
  SystemProgram,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import { expect } from 'chai';
import {
  base64,
  buyer,
  call,
  connection,
  facilitate,
  offer,
  pay,
  sandbox,
  transfer,
  type Json,
  usdcOf,
  allInOneSandbox,
} from '../support/one-sandbox.js';

describe('the local Solana', () => {
  allInOneSandbox();

  it('lands a message once: a copy is refused as already processed or, without preflight, answered with the first signature', async () => {
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

  it('gives a new blockhash to every caller and keeps all of them valid', async () => {
    const hashes = await Promise.all(Array.from({ length: 50 }, () => connection.getLatestBlockhash()));
    expect(new Set(hashes.map(({ blockhash }) => blockhash)).size).to.equal(50);
    for (const { blockhash } of hashes) {
      expect((await connection.isBlockhashValid(blockhash)).value).to.equal(true);
    }
    const height = await connection.getBlockHeight();
    expect(hashes[0]!.lastValidBlockHeight).to.be.within(height + 100, height + 150);
  });

  it('simulates a half-signed payment, and reports one without funds', async () => {
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

  it('can replace the blockhash in a simulation, and returns the requested accounts', async () => {
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

  it('keeps a failed transaction on the chain, with its error and its fee', async () => {
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

  it('drops a transaction whose payer has no SOL for the fee', async () => {
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

  it('survives bytes that are not a transaction', async () => {
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

  it('lists the transactions of an address newest first, in pages, and shows finality only once it is reached', async () => {
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

  it('works with @solana/kit', async () => {
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

  it('answers requests for base64+zstd, as Rust clients make, with base64, and names that encoding', async () => {
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
});
