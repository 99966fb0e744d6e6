import { expect } from 'chai';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { once } from 'node:events';
import { UpstreamFailure } from '../../../src/net/failure.js';
import { createChain, type SolanaChain } from '../../../src/rails/solana/rpc.js';

const NETWORK = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1';
const OURS = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG';
const FOREIGN = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d';
const ACCOUNT = '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4';
const never = new AbortController().signal;

/** An RPC server on loopback that says which chain it serves. */
class Rpc {
  readonly asked: string[] = [];
  genesis: string;
  height: number;
  refusing: string | undefined;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;

  constructor(genesis: string, height: number) {
    this.genesis = genesis;
    this.height = height;
  }

  async open(): Promise<this> {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method } = JSON.parse(Buffer.concat(chunks).toString()) as { method: string };
        this.asked.push(method);
        response.setHeader('content-type', 'application/json');
        const text = JSON.stringify({ jsonrpc: '2.0', id: 1, result: this.#resultOf(method) });
        response.writeHead(this.refusing === undefined ? 200 : 500).end(this.refusing ?? text);
      });
    });
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    await once(this.#server.listen(this.#port, '127.0.0.1'), 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  get url(): string {
    return `http://operator:pass%2Bword@127.0.0.1:${this.#port}/rpc?api-key=query-key`;
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    const closed = new Promise(resolve => server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Another machine takes over the address: open connections break, and new ones reach that machine. */
  async becomes(genesis: string): Promise<void> {
    await this.close();
    this.genesis = genesis;
    await this.open();
  }

  #resultOf(method: string): unknown {
    const context = { slot: this.height };
    if (method === 'getGenesisHash') return this.genesis;
    if (method === 'getSignaturesForAddress') return [];
    if (method === 'getLatestBlockhash')
      return { context, value: { blockhash: OURS, lastValidBlockHeight: this.height + 150 } };
    return null;
  }
}

describe('An RPC server for another chain', () => {
  let ours: Rpc;
  let foreign: Rpc;
  let chain: SolanaChain;
  let logged: string;
  const log = {
    error: (fields: object, message: string) => void (logged += `${JSON.stringify(fields)} ${message}\n`),
  };

  beforeEach(async () => {
    logged = '';
    ours = await new Rpc(OURS, 1_000).open();
    foreign = await new Rpc(FOREIGN, 9_000_000).open();
  });
  afterEach(async () => {
    await chain?.close();
    await Promise.all([ours.close(), foreign.close()]);
  });

  const connect = (...urls: string[]): void => {
    chain = createChain({ urls, network: NETWORK, timeoutMs: 2_000, log });
  };
  const failureOf = async (work: Promise<unknown>): Promise<UpstreamFailure> => {
    const failure: unknown = await work.then(
      () => undefined,
      (error: unknown) => error,
    );
    if (!(failure instanceof UpstreamFailure)) throw new Error(`no failure: ${String(failure)}`);
    return failure;
  };
  const history = () => chain.signaturesFor(ACCOUNT, { finality: 'finalized' }, never);
  const heightSeen = async () => (await chain.latestBlockhash('finalized', never)).lastValidBlockHeight - 150;

  it('is not used for a history or a height, even when the one for our chain fails', async () => {
    connect(ours.url, foreign.url);
    expect(await history()).to.deep.equal([]);
    await ours.close();
    for (const read of [history, heightSeen]) expect((await failureOf(read())).kind).to.equal('unavailable');
    expect(new Set(foreign.asked)).to.deep.equal(new Set(['getGenesisHash']));
  });

  it('is named in the log once, without the credentials of its URL', async () => {
    connect(foreign.url, ours.url);
    for (let turn = 0; turn < 3; turn++) await history();
    expect(logged.trim().split('\n')).to.have.length(1);
    const { host } = new URL(foreign.url);
    expect(logged).to.contain(host).and.to.contain(FOREIGN).and.to.contain('SOLANA_RPC_URL');
    expect(logged).not.to.match(/operator|pass|query-key/);
  });

  it('is skipped in favour of one for our chain, wherever it is in the list', async () => {
    connect(foreign.url, ours.url);
    expect(await heightSeen()).to.equal(1_000);
    expect(await chain.health(never)).to.include({ answering: 1, servers: 2 });
  });

  it('that replaces ours behind the same URL is detected at the next connection', async () => {
    connect(ours.url);
    expect(await heightSeen()).to.equal(1_000);
    await ours.becomes(FOREIGN);
    ours.asked.length = 0;
    expect((await failureOf(history())).kind).to.equal('unavailable');
    expect((await failureOf(heightSeen())).kind).to.equal('unavailable');
    expect(logged).to.contain(FOREIGN);
    await ours.becomes(OURS);
    expect(await heightSeen(), 'and is believed again when it is ours').to.equal(1_000);
  });

  it('is ruled out by one more request for each connection, not for each read', async () => {
    connect(ours.url);
    for (let turn = 0; turn < 10; turn++) await history();
    expect(ours.asked.filter(method => method === 'getGenesisHash').length).to.be.below(4);
    await Promise.all(Array.from({ length: 30 }, () => history()));
    expect(ours.asked.filter(method => method === 'getGenesisHash').length).to.be.below(10);
  });

  it("is skipped, and so is one for our chain whose height can't be true", async () => {
    foreign.genesis = OURS;
    connect(foreign.url, ours.url);
    const check = ({ slot }: { slot: number }): void => {
      if (slot > 2_000) throw new Error('too high');
    };
    expect((await chain.latestBlockhash('confirmed', never, check)).slot).to.equal(1_000);
    expect(logged).to.contain('too high');
  });

  it('is reported with the chain that each URL serves, without credentials', async () => {
    connect(ours.url, foreign.url, 'http://operator:secret@127.0.0.1:1/rpc?api-key=query-key');
    const found = await chain.survey(never);
    expect(found.map(({ genesis }) => genesis)).to.deep.equal([OURS, FOREIGN, undefined]);
    expect(JSON.stringify(found)).not.to.match(/operator|pass|secret|query-key/);
  });

  it("can't put its URL's credentials into an error, even if its answer repeats them", async () => {
    ours.refusing = `can't POST /rpc?api-key=query-key for operator:pass+word (b3BlcmF0b3I6cGFzcyt3b3Jk)`;
    connect(ours.url);
    const failure = await failureOf(history());
    const text = `${failure.message} ${String(failure.cause)} ${failure.stack} ${(failure.cause as Error).stack}`;
    expect(text).to.contain("can't POST");
    expect(text).not.to.match(/operator|pass|query-key|b3BlcmF0b3I6cGFzcyt3b3Jk/);
  });
});
