import { getEventListeners } from 'node:events';
import { TOKEN_PROGRAM_ID } from '@solana/spl-token';
import { Keypair, SystemProgram, Transaction } from '@solana/web3.js';
import { expect } from 'chai';
import { UpstreamFailure } from '../../../src/net/failure.js';
import { readMintAccount } from '../../../handlers/mints/mint.js';
import { createChain, type SolanaChain } from '../../../src/rails/solana/rpc.js';
import {
  ADDRESS,
  AUTHORITY,
  FakeRpc,
  publicFailureOf,
  mintBytes,
  never,
  type Answer,
} from '../../support/fake-rpc.js';

describe('Solana chain behind several RPC servers', () => {
  let first: FakeRpc;
  let second: FakeRpc;
  let urls: string[];
  const open: SolanaChain[] = [];
  const connect = (
    options: { timeoutMs?: number; urls?: string[]; maxInFlight?: number } = {},
  ): SolanaChain => {
    const chain = createChain({ urls, timeoutMs: 2_000, ...options });
    open.push(chain);
    return chain;
  };

  beforeEach(async () => {
    first = new FakeRpc();
    second = new FakeRpc();
    urls = [await first.open(), await second.open()];
    for (const rpc of [first, second]) {
      rpc.accounts.set(ADDRESS.toBase58(), { owner: TOKEN_PROGRAM_ID, data: mintBytes({ supply: 3n }) });
      rpc.results.set('getBlockHeight', 77);
    }
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map(chain => chain.close()));
    await Promise.all([first.close(), second.close()]);
  });

  it('asks the first server, over one connection that is kept open, while that server answers', async () => {
    const chain = connect();
    for (let turn = 0; turn < 3; turn += 1) {
      expect(await chain.blockHeight('finalized', never)).to.equal(77);
      await new Promise(done => setTimeout(done, 30));
    }
    expect(new Set(first.calls.map(({ port }) => port)).size).to.equal(1);
    expect(first.calls[0]?.params).to.deep.equal([{ commitment: 'finalized' }]);
    expect(second.calls).to.have.length(0);
  });

  it('uses the next one when the first is down, late or wrong, and pauses the first', async () => {
    const wrongs: Answer[] = [
      () => undefined,
      response => response.destroy(),
      response => response.writeHead(503).end(),
      response => response.end('<html>'),
    ];
    for (const [index, answer] of wrongs.entries()) {
      const chain = connect({ timeoutMs: 500 });
      first.answer = answer;
      const { facts } = await readMintAccount(chain, ADDRESS.toBase58(), never, 1_024);
      expect(facts.supply, `answer ${index}`).to.equal('0.000003');
      const asked = first.calls.length;
      await readMintAccount(chain, ADDRESS.toBase58(), never, 1_024);
      expect(first.calls.length, 'the first rests').to.equal(asked);
    }
    const refused = connect({ urls: ['http://127.0.0.1:1/', urls[1] ?? ''] });
    expect(await refused.blockHeight('confirmed', never)).to.equal(77);
  });

  it('is unavailable when all are down, and has failed when one answers wrongly or late', async () => {
    const gone = connect({ urls: ['http://127.0.0.1:1/', 'http://127.0.0.1:2/'] });
    const failure = await publicFailureOf(gone.blockHeight('confirmed', never));
    expect(failure.kind).to.equal('unavailable');
    expect(failure.retryAfterSeconds).to.be.greaterThan(0);
    const late = connect({ urls: ['http://127.0.0.1:1/', urls[1] ?? ''], timeoutMs: 200 });
    second.answer = () => undefined;
    expect((await publicFailureOf(late.blockHeight('confirmed', never))).kind).to.equal('failed');
  });

  it("stops at the caller's deadline and asks no further server", async () => {
    first.answer = () => undefined;
    const failure = await publicFailureOf(
      connect({ timeoutMs: 5_000 }).blockHeight('confirmed', AbortSignal.timeout(100)),
    );
    expect(failure.kind).to.equal('failed');
    expect(second.calls).to.have.length(0);
  });

  it('refuses reads beyond its limit of concurrent reads', async () => {
    first.answer = second.answer = () => undefined;
    const chain = connect({ maxInFlight: 1, timeoutMs: 200 });
    const held = publicFailureOf(chain.blockHeight('confirmed', never));
    expect((await publicFailureOf(chain.blockHeight('confirmed', never))).kind).to.equal('unavailable');
    await held;
  });

  it('repeats a request whose connection died before any answer', async () => {
    const chain = connect({ urls: [urls[0] ?? ''] });
    const proper = first.answer;
    first.answer = (response, call, id) =>
      first.calls.length === 1 ? response.destroy() : proper(response, call, id);
    expect(await chain.blockHeight('confirmed', never)).to.equal(77);
  });

  it('reads blockhashes, histories and the genesis hash', async () => {
    const blockhash = Keypair.generate().publicKey.toBase58();
    const entry = {
      slot: 9,
      err: null,
      memo: null,
      blockTime: 1_700_000_000,
      confirmationStatus: 'finalized',
    };
    first.results.set('getLatestBlockhash', {
      context: { slot: 12 },
      value: { blockhash, lastValidBlockHeight: 162 },
    });
    first.results.set('getGenesisHash', blockhash);
    first.results.set('getSignaturesForAddress', [
      { ...entry, signature: 'new' },
      { ...entry, signature: 'old', slot: 8, err: { InstructionError: [0, 'Custom'] }, blockTime: null },
    ]);
    const chain = connect();
    expect(await chain.latestBlockhash('confirmed', never)).to.deep.equal({
      blockhash,
      lastValidBlockHeight: 162,
      slot: 12,
    });
    expect(await chain.genesisHash(never)).to.equal(blockhash);
    const page = { finality: 'finalized', before: 'newer', limit: 2 } as const;
    expect(await chain.signaturesFor(ADDRESS.toBase58(), page, never)).to.deep.equal([
      { signature: 'new', slot: 9, failed: false, blockTime: 1_700_000_000 },
      { signature: 'old', slot: 8, failed: true, blockTime: null },
    ]);
    expect(first.calls.at(-1)?.params).to.deep.equal([
      ADDRESS.toBase58(),
      { before: 'newer', limit: 2, commitment: 'finalized' },
    ]);
  });

  it('asks for accounts as the RPC interface requires, and truncates data that is longer than requested', async () => {
    first.accounts.set(ADDRESS.toBase58(), { owner: TOKEN_PROGRAM_ID, data: Buffer.alloc(300, 7) });
    const chain = connect();
    const account = await chain.account(ADDRESS.toBase58(), never, 4);
    expect(account).to.deep.equal({
      owner: TOKEN_PROGRAM_ID.toBase58(),
      lamports: 1_461_600,
      executable: false,
      data: Buffer.alloc(4, 7),
      slot: 5,
    });
    const dataSlice = { offset: 0, length: 4 };
    expect(first.calls[0]?.params).to.deep.equal([
      ADDRESS.toBase58(),
      { encoding: 'base64', commitment: 'confirmed', dataSlice },
    ]);
    expect(await chain.account(AUTHORITY.toBase58(), never)).to.equal(null);
    const untold = await chain.account('no address', never).catch((error: unknown) => error);
    expect(untold).to.be.instanceOf(Error).and.not.instanceOf(UpstreamFailure);
  });

  it('fails on results with an unexpected structure', async () => {
    const chain = connect({ urls: [urls[0] ?? ''] });
    const account = { owner: ADDRESS.toBase58(), lamports: 1, executable: false, data: ['', 'base64'] };
    const entry = { signature: 's', slot: 1, err: null, blockTime: null };
    const blockhash = { blockhash: ADDRESS.toBase58(), lastValidBlockHeight: 1 };
    const at = (value: unknown, slot: unknown = 1): unknown => ({ context: { slot }, value });
    const wrongs: [() => Promise<unknown>, unknown[]][] = [
      [() => chain.blockHeight('confirmed', never), [null, '77', -1, 1.5, 2 ** 60, [77]]],
      [() => chain.genesisHash(never), [null, 5, 'no hash', '1'.repeat(60)]],
      [
        () => chain.latestBlockhash('confirmed', never),
        [
          null,
          at(null),
          at(blockhash, '1'),
          { value: blockhash },
          at({ ...blockhash, blockhash: 'x' }),
          at({ ...blockhash, lastValidBlockHeight: null }),
        ],
      ],
      [
        () => chain.signaturesFor(ADDRESS.toBase58(), { finality: 'confirmed' }, never),
        [
          null,
          {},
          [null],
          [{ ...entry, signature: 1 }],
          [{ ...entry, slot: '1' }],
          [{ ...entry, err: undefined }],
          [{ ...entry, blockTime: 'now' }],
          [entry, 'entry'],
        ],
      ],
      [
        () => chain.account(ADDRESS.toBase58(), never),
        [
          at(undefined),
          at('account'),
          { value: account },
          at({ ...account, owner: 'x' }),
          at({ ...account, lamports: '1' }),
          at({ ...account, executable: null }),
          at({ ...account, data: 'AAAA' }),
          at({ ...account, data: ['AAAA', 'base58'] }),
        ],
      ],
    ];
    for (const [ask, results] of wrongs) {
      for (const result of results) {
        first.answer = (response, _call, id) => first.send(response, id, result);
        expect((await publicFailureOf(ask())).kind, JSON.stringify(result)).to.equal('failed');
      }
    }
  });

  it('makes many concurrent reads under one signal, and leaves no listener on it', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): unknown => warnings.push(warning);
    process.on('warning', note);
    try {
      const caller = new AbortController();
      const chain = connect();
      const heights = Array.from({ length: 40 }, () => chain.blockHeight('confirmed', caller.signal));
      expect(await Promise.all(heights)).to.deep.equal(Array.from({ length: 40 }, () => 77));
      await new Promise(done => setImmediate(done));
      expect(warnings.filter(({ name }) => name === 'MaxListenersExceededWarning')).to.deep.equal([]);
      expect(getEventListeners(caller.signal, 'abort')).to.deep.equal([]);
    } finally {
      process.off('warning', note);
    }
  });

  it('gives up immediately when the caller leaves, before the request or during it', async () => {
    const chain = connect();
    const failed = async (signal: AbortSignal) =>
      (await publicFailureOf(chain.blockHeight('confirmed', signal))).kind;
    expect(await failed(AbortSignal.abort())).to.equal('failed');
    expect(first.calls).to.have.length(0);
    const caller = new AbortController();
    first.answer = () => caller.abort();
    expect(await failed(caller.signal)).to.equal('failed');
    expect(second.calls).to.have.length(0);
    first.answer = (response, call, id) => first.send(response, id, first.resultOf(call));
    expect(await chain.blockHeight('confirmed', never), 'the next caller is served').to.equal(77);
  });

  it('returns a landed transaction with the exact bytes that were signed', async () => {
    const payer = Keypair.generate();
    const transaction = new Transaction({
      feePayer: payer.publicKey,
      blockhash: AUTHORITY.toBase58(),
      lastValidBlockHeight: 1,
    });
    transaction.add(SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: ADDRESS, lamports: 1 }));
    transaction.sign(payer);
    const wire = transaction.serialize();
    first.results.set('getTransaction', {
      slot: 40,
      blockTime: null,
      meta: { err: null },
      transaction: [wire.toString('base64'), 'base64'],
    });
    const chain = connect({ urls: [urls[0] ?? ''] });
    const found = await chain.transaction('signature', 'finalized', never);
    expect(found?.slot).to.equal(40);
    expect(found?.failed).to.equal(false);
    expect(Buffer.from(found?.transaction ?? []).equals(wire)).to.equal(true);
    expect(Buffer.from(found?.message ?? []).equals(transaction.serializeMessage())).to.equal(true);
    first.results.set('getTransaction', null);
    expect(await chain.transaction('signature', 'finalized', never)).to.equal(null);
    for (const broken of [
      {},
      { slot: 1, meta: {}, transaction: ['AQ==', 'base64'] },
      { slot: 1, meta: { err: null }, transaction: ['AQ==', 'base64'] },
    ]) {
      first.results.set('getTransaction', broken);
      expect((await publicFailureOf(chain.transaction('signature', 'finalized', never))).kind).to.equal(
        'failed',
      );
    }
  });

  it('counts the servers that answer', async () => {
    const value = { blockhash: ADDRESS.toBase58(), lastValidBlockHeight: 1 };
    first.results.set('getLatestBlockhash', { context: { slot: 1 }, value });
    second.answer = response => response.writeHead(500).end();
    expect(await connect().health(never)).to.deep.equal({ answering: 1, servers: 2 });
    first.answer = response => response.writeHead(500).end();
    expect(await connect().health(never)).to.deep.equal({ answering: 0, servers: 2 });
  });

  it('asks each server for its height, and continues without one that does not answer', async () => {
    second.results.set('getBlockHeight', 99);
    expect(await connect().heights(never)).to.deep.equal([77, 99]);
    first.answer = response => response.writeHead(500).end();
    expect(await connect().heights(never)).to.deep.equal([undefined, 99]);
  });
});
