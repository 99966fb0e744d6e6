import { getEventListeners } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  AccountLayout,
  AccountType,
  ExtensionType,
  getMintLen,
  MintLayout,
  MULTISIG_SIZE,
  TOKEN_2022_PROGRAM_ID,
  TOKEN_PROGRAM_ID,
} from '@solana/spl-token';
import { Keypair, PublicKey, SystemProgram, Transaction } from '@solana/web3.js';
import { expect } from 'chai';
import fc from 'fast-check';
import { UpstreamFailure } from '../src/upstreams/failure.js';
import { formatUnits, readMint, type MintFacts } from '../src/upstreams/solana/mint.js';
import { createChain, type SolanaChain } from '../src/upstreams/solana/rpc.js';

type Call = { method: string; params: unknown[]; port: number | undefined };
type StoredAccount = { owner: PublicKey; data: Buffer; lamports?: number; executable?: boolean };
type Answer = (response: ServerResponse, call: Call, id: unknown) => void;

const never = new AbortController().signal;
const ADDRESS = Keypair.generate().publicKey;
const AUTHORITY = Keypair.generate().publicKey;

/** A JSON-RPC server on loopback that knows some accounts and can be told to misbehave. */
class FakeRpc {
  readonly accounts = new Map<string, StoredAccount>();
  readonly results = new Map<string, unknown>();
  readonly calls: Call[] = [];
  answer: Answer = (response, call, id) => this.send(response, id, this.resultOf(call));
  readonly #server: Server = createServer((request, response) => void this.#serve(request, response));

  async open(): Promise<string> {
    await new Promise<void>(done => this.#server.listen(0, '127.0.0.1', done));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/rpc?api-key=secret`;
  }

  send(response: ServerResponse, id: unknown, result: unknown): void {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  }

  resultOf({ method, params }: Call): unknown {
    if (method !== 'getAccountInfo') return this.results.get(method);
    const account = this.accounts.get(String(params[0]));
    const { dataSlice } = params[1] as { dataSlice?: { offset: number; length: number } };
    if (!account) return { context: { slot: 5 }, value: null };
    const data = dataSlice
      ? account.data.subarray(dataSlice.offset, dataSlice.offset + dataSlice.length)
      : account.data;
    const value = {
      owner: account.owner.toBase58(),
      lamports: account.lamports ?? 1_461_600,
      executable: account.executable ?? false,
      rentEpoch: 0,
      data: [data.toString('base64'), 'base64'],
    };
    return { context: { slot: 5 }, value };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as {
      id: unknown;
      method: string;
      params: unknown[];
    };
    const call = { method: body.method, params: body.params, port: request.socket.remotePort };
    expect(request.url).to.equal('/rpc?api-key=secret');
    this.calls.push(call);
    this.answer(response, call, body.id);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise(done => this.#server.close(done));
  }
}

type MintFields = {
  supply?: bigint;
  decimals?: number;
  mintAuthority?: PublicKey;
  freezeAuthority?: PublicKey;
};

function mintBytes({ supply = 0n, decimals = 6, mintAuthority, freezeAuthority }: MintFields): Buffer {
  const data = Buffer.alloc(MintLayout.span);
  MintLayout.encode(
    {
      mintAuthorityOption: mintAuthority ? 1 : 0,
      mintAuthority: mintAuthority ?? PublicKey.default,
      supply,
      decimals,
      isInitialized: true,
      freezeAuthorityOption: freezeAuthority ? 1 : 0,
      freezeAuthority: freezeAuthority ?? PublicKey.default,
    },
    data,
  );
  return data;
}

/** A Token-2022 mint with type-length-value entries behind it, as the program lays it out. */
function extendedMint(fields: MintFields, entries: [number, Buffer][], type = AccountType.Mint): Buffer {
  const tlv = entries.map(([kind, value]) => {
    const head = Buffer.alloc(4);
    head.writeUInt16LE(kind, 0);
    head.writeUInt16LE(value.length, 2);
    return Buffer.concat([head, value]);
  });
  const padding = Buffer.alloc(AccountLayout.span - MintLayout.span);
  return Buffer.concat([mintBytes(fields), padding, Buffer.from([type]), ...tlv]);
}

const metadata = Buffer.concat([
  AUTHORITY.toBuffer(),
  ADDRESS.toBuffer(),
  ...['Lighthouse', 'LGT', 'https://example.org/lgt.json'].map(value => {
    const size = Buffer.alloc(4);
    size.writeUInt32LE(value.length);
    return Buffer.concat([size, Buffer.from(value)]);
  }),
  Buffer.alloc(4),
]);

async function failureOf(promise: Promise<unknown>): Promise<UpstreamFailure> {
  const error: unknown = await promise.then(
    value => expect.fail(`answered ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  expect(error).to.be.instanceOf(UpstreamFailure);
  const failure = error as UpstreamFailure;
  expect(failure.message, 'public message').to.not.match(
    /127\.0\.0\.1|secret|api-key|undici|ECONN|Struct|status \d/i,
  );
  return failure;
}

describe('mint facts from the chain', () => {
  let rpc: FakeRpc;
  let chain: SolanaChain;

  beforeEach(async () => {
    rpc = new FakeRpc();
    chain = createChain({ urls: [await rpc.open()], timeoutMs: 2_000 });
  });
  afterEach(async () => {
    await chain.close();
    await rpc.close();
  });

  const read = (
    data: Buffer,
    owner = TOKEN_PROGRAM_ID,
    more: Partial<StoredAccount> = {},
  ): Promise<MintFacts> => {
    rpc.accounts.set(ADDRESS.toBase58(), { owner, data, ...more });
    return readMint(chain, ADDRESS.toBase58(), never);
  };

  it('reads a classic mint with both authorities, in one call', async () => {
    const facts = await read(
      mintBytes({ supply: 1_000_000n, mintAuthority: AUTHORITY, freezeAuthority: ADDRESS }),
    );
    expect(facts).to.deep.equal({
      mint: ADDRESS.toBase58(),
      decimals: 6,
      supply: '1.000000',
      mintAuthority: AUTHORITY.toBase58(),
      freezeAuthority: ADDRESS.toBase58(),
      tokenProgram: TOKEN_PROGRAM_ID.toBase58(),
      initialized: true,
    });
    expect(rpc.calls.map(({ method }) => method)).to.deep.equal(['getAccountInfo']);
  });

  it('says null for authorities that were given up', async () => {
    expect(await read(mintBytes({ supply: 5n, decimals: 0 }))).to.include({
      supply: '5',
      mintAuthority: null,
      freezeAuthority: null,
    });
  });

  it('gives the largest supply exactly', async () => {
    expect((await read(mintBytes({ supply: 2n ** 64n - 1n, decimals: 9 }))).supply).to.equal(
      '18446744073.709551615',
    );
    expect((await read(mintBytes({ supply: 1n, decimals: 255 }))).supply).to.match(/^0\.0{254}1$/);
  });

  it('formats every amount with exactly its fractional digits', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        fc.integer({ min: 0, max: 255 }),
        (amount, decimals) => {
          const text = formatUnits(amount, decimals);
          expect(text).to.match(
            decimals === 0 ? /^(?:0|[1-9]\d*)$/ : new RegExp(`^(?:0|[1-9]\\d*)\\.\\d{${decimals}}$`),
          );
          expect(BigInt(text.replace('.', ''))).to.equal(amount);
        },
      ),
    );
  });

  const extensions: [string, [number, Buffer][]][] = [
    ['no extension', []],
    ['a transfer fee', [[ExtensionType.TransferFeeConfig, Buffer.alloc(108, 7)]]],
    [
      'a metadata pointer and metadata',
      [
        [ExtensionType.MetadataPointer, Buffer.alloc(64, 1)],
        [ExtensionType.TokenMetadata, metadata],
      ],
    ],
    [
      'a permanent delegate, a close authority and a hook',
      [
        [ExtensionType.PermanentDelegate, Buffer.alloc(32, 2)],
        [ExtensionType.MintCloseAuthority, Buffer.alloc(32, 3)],
        [ExtensionType.TransferHook, Buffer.alloc(64, 4)],
      ],
    ],
    [
      'extensions that nobody knows yet',
      [
        [16, Buffer.alloc(129)],
        [24, Buffer.alloc(20)],
        [4_711, Buffer.alloc(3)],
      ],
    ],
    ['metadata longer than what is read', [[ExtensionType.TokenMetadata, Buffer.alloc(9_000, 65)]]],
  ];
  for (const [name, entries] of extensions) {
    it(`reads a Token-2022 mint with ${name}`, async () => {
      const fields = { supply: 123_456n, decimals: 2, mintAuthority: AUTHORITY };
      const data = entries.length === 0 ? mintBytes(fields) : extendedMint(fields, entries);
      const facts = await read(data, TOKEN_2022_PROGRAM_ID);
      expect(facts).to.include({ supply: '1234.56', mintAuthority: AUTHORITY.toBase58(), initialized: true });
      expect(facts.tokenProgram).to.equal(TOKEN_2022_PROGRAM_ID.toBase58());
    });
  }

  it('reads a Token-2022 mint whose extensions are cut short', async () => {
    const whole = extendedMint({ supply: 10n, decimals: 1 }, [
      [ExtensionType.TransferFeeConfig, Buffer.alloc(108, 7)],
    ]);
    expect(whole.length).to.equal(getMintLen([ExtensionType.TransferFeeConfig]));
    for (const length of [whole.length - 50, 169, 167]) {
      expect((await read(whole.subarray(0, length), TOKEN_2022_PROGRAM_ID)).supply).to.equal('1.0');
    }
  });

  it('says that a mint is not initialised yet', async () => {
    for (const owner of [TOKEN_PROGRAM_ID, TOKEN_2022_PROGRAM_ID]) {
      const facts = await read(Buffer.alloc(82), owner);
      expect(facts).to.include({
        initialized: false,
        supply: '0',
        decimals: 0,
        mintAuthority: null,
        freezeAuthority: null,
      });
    }
  });

  it('says what each address is that is no mint, each in words of its own', async () => {
    const holder = Buffer.alloc(AccountLayout.span);
    holder[108] = 1;
    const cases: [RegExp, () => Promise<unknown>][] = [
      [/wallet/, () => read(Buffer.alloc(0), SystemProgram.programId)],
      [/token account, which holds tokens/, () => read(holder)],
      [
        /token account, which holds tokens/,
        () =>
          read(
            extendedMint({}, [[ExtensionType.ImmutableOwner, Buffer.alloc(0)]], AccountType.Account),
            TOKEN_2022_PROGRAM_ID,
          ),
      ],
      [/multisig/, () => read(Buffer.alloc(MULTISIG_SIZE, 1))],
      [/multisig/, () => read(Buffer.alloc(MULTISIG_SIZE, 1), TOKEN_2022_PROGRAM_ID)],
      [/but no mint/, () => read(Buffer.alloc(100))],
      [/but no mint/, () => read(extendedMint({}, []).fill(1, 165), TOKEN_PROGRAM_ID)],
      [
        /program, not of a token/,
        () =>
          read(Buffer.alloc(36), new PublicKey('BPFLoaderUpgradeab1e11111111111111111111111'), {
            executable: true,
          }),
      ],
      [/another program/, () => read(mintBytes({}), AUTHORITY)],
      [/closed/, () => read(Buffer.alloc(0), SystemProgram.programId, { lamports: 0 })],
      [/closed/, () => read(Buffer.alloc(0))],
    ];
    for (const [words, ask] of cases) {
      const failure = await failureOf(ask());
      expect(failure.kind).to.equal('invalid');
      expect(failure.message).to.match(words);
      expect(failure.message, 'what to do').to.match(/send the/);
    }
    const missing = await failureOf(readMint(chain, AUTHORITY.toBase58(), never));
    expect(missing.kind).to.equal('invalid');
    expect(missing.message).to.match(/does not exist on this chain/);
  });

  it('refuses what is base58 but not 32 bytes, without asking the chain', async () => {
    for (const mint of ['1'.repeat(44), 'z'.repeat(44), 'z'.repeat(32), '2'.repeat(43)]) {
      const failure = await failureOf(readMint(chain, mint, never));
      expect(failure.kind, mint).to.equal('invalid');
      expect(failure.message).to.match(/32 bytes/);
    }
    expect(rpc.calls).to.have.length(0);
  });

  it('fails on answers that are no answers', async () => {
    const wrongs: Answer[] = [
      response => response.end('<html>Welcome</html>'),
      response => response.end('null'),
      response => response.end('{}'),
      response => response.end(),
      response => response.end('[]'),
      (response, _call, id) => rpc.send(response, id, { context: { slot: 1 } }),
      (response, _call, id) =>
        rpc.send(response, id, { context: { slot: 1 }, value: { owner: 'x', data: 'y' } }),
      (response, _call, id) =>
        response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32602, message: 'no' } })),
      response => response.writeHead(403).end('{"error":"key"}'),
      response =>
        response.writeHead(200, { 'content-length': '500' }).write('{"js') &&
        setTimeout(() => response.destroy(), 20),
      response => response.end(' '.repeat(5_000_000)),
    ];
    for (const [index, answer] of wrongs.entries()) {
      rpc.answer = answer;
      const failure = await failureOf(readMint(chain, ADDRESS.toBase58(), never));
      expect(failure.kind, `answer ${index}`).to.equal('failed');
    }
  });

  it('is unavailable on 5xx, on 429 with its time, and on a node that is behind', async () => {
    rpc.answer = response => response.writeHead(429, { 'retry-after': '9' }).end('slow down');
    expect(await failureOf(readMint(chain, ADDRESS.toBase58(), never))).to.include({
      kind: 'unavailable',
      retryAfterSeconds: 9,
    });
    expect(rpc.calls, 'no retry on 429').to.have.length(1);
    rpc.answer = response => response.writeHead(502).end('<html>');
    expect((await failureOf(readMint(chain, ADDRESS.toBase58(), never))).kind).to.equal('unavailable');
    rpc.answer = (response, _call, id) =>
      response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32005, message: 'behind' } }));
    expect((await failureOf(readMint(chain, ADDRESS.toBase58(), never))).kind).to.equal('unavailable');
  });
});

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

  it('asks the first, over one kept connection, while it answers', async () => {
    const chain = connect();
    for (let turn = 0; turn < 3; turn += 1) {
      expect(await chain.blockHeight('finalized', never)).to.equal(77);
      await new Promise(done => setTimeout(done, 30));
    }
    expect(new Set(first.calls.map(({ port }) => port)).size).to.equal(1);
    expect(first.calls[0]?.params).to.deep.equal([{ commitment: 'finalized' }]);
    expect(second.calls).to.have.length(0);
  });

  it('falls over to the next one when the first is down, late or wrong, and lets it rest', async () => {
    const wrongs: Answer[] = [
      () => undefined,
      response => response.destroy(),
      response => response.writeHead(503).end(),
      response => response.end('<html>'),
    ];
    for (const [index, answer] of wrongs.entries()) {
      const chain = connect({ timeoutMs: 500 });
      first.answer = answer;
      expect((await readMint(chain, ADDRESS.toBase58(), never)).supply, `answer ${index}`).to.equal(
        '0.000003',
      );
      const asked = first.calls.length;
      await readMint(chain, ADDRESS.toBase58(), never);
      expect(first.calls.length, 'the first rests').to.equal(asked);
    }
    const refused = connect({ urls: ['http://127.0.0.1:1/', urls[1] ?? ''] });
    expect(await refused.blockHeight('confirmed', never)).to.equal(77);
  });

  it('is unavailable when all are down, failed when one answers wrongly or late', async () => {
    const gone = connect({ urls: ['http://127.0.0.1:1/', 'http://127.0.0.1:2/'] });
    const failure = await failureOf(gone.blockHeight('confirmed', never));
    expect(failure.kind).to.equal('unavailable');
    expect(failure.retryAfterSeconds).to.be.greaterThan(0);
    const late = connect({ urls: ['http://127.0.0.1:1/', urls[1] ?? ''], timeoutMs: 200 });
    second.answer = () => undefined;
    expect((await failureOf(late.blockHeight('confirmed', never))).kind).to.equal('failed');
  });

  it('stops at the caller’s deadline and asks nobody else', async () => {
    first.answer = () => undefined;
    const failure = await failureOf(
      connect({ timeoutMs: 5_000 }).blockHeight('confirmed', AbortSignal.timeout(100)),
    );
    expect(failure.kind).to.equal('failed');
    expect(second.calls).to.have.length(0);
  });

  it('refuses more reads at once than it may hold', async () => {
    first.answer = second.answer = () => undefined;
    const chain = connect({ maxInFlight: 1, timeoutMs: 200 });
    const held = failureOf(chain.blockHeight('confirmed', never));
    expect((await failureOf(chain.blockHeight('confirmed', never))).kind).to.equal('unavailable');
    await held;
  });

  it('tries a connection again that died before any answer', async () => {
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

  it('asks for accounts as the RPC has it, and cuts what is more than it asked for', async () => {
    first.accounts.set(ADDRESS.toBase58(), { owner: TOKEN_PROGRAM_ID, data: Buffer.alloc(300, 7) });
    const chain = connect();
    const account = await chain.account(ADDRESS.toBase58(), never, 4);
    expect(account).to.deep.equal({
      owner: TOKEN_PROGRAM_ID.toBase58(),
      lamports: 1_461_600,
      executable: false,
      data: Buffer.alloc(4, 7),
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

  it('fails on results of another shape', async () => {
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
        expect((await failureOf(ask())).kind, JSON.stringify(result)).to.equal('failed');
      }
    }
  });

  it('reads much at once under one signal, and leaves nothing listening to it', async () => {
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

  it('gives up at once when the caller leaves, before it asks and while it waits', async () => {
    const chain = connect();
    const failed = async (signal: AbortSignal) =>
      (await failureOf(chain.blockHeight('confirmed', signal))).kind;
    expect(await failed(AbortSignal.abort())).to.equal('failed');
    expect(first.calls).to.have.length(0);
    const caller = new AbortController();
    first.answer = () => caller.abort();
    expect(await failed(caller.signal)).to.equal('failed');
    expect(second.calls).to.have.length(0);
    first.answer = (response, call, id) => first.send(response, id, first.resultOf(call));
    expect(await chain.blockHeight('confirmed', never), 'the next caller is served').to.equal(77);
  });

  it('reads a landed transaction with the very bytes that were signed', async () => {
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
      expect((await failureOf(chain.transaction('signature', 'finalized', never))).kind).to.equal('failed');
    }
  });

  it('counts the servers that answer', async () => {
    const value = { blockhash: ADDRESS.toBase58(), lastValidBlockHeight: 1 };
    first.results.set('getLatestBlockhash', { context: { slot: 1 }, value });
    second.answer = response => response.writeHead(500).end();
    const health = await connect().health(never);
    expect(health).to.include({ answering: 1, servers: 2 });
    expect(health.latencyMs).to.be.at.least(0);
    first.answer = response => response.writeHead(500).end();
    expect(await connect().health(never)).to.deep.equal({ answering: 0, servers: 2, latencyMs: null });
  });
});
