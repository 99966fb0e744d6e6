import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { createChain, type SolanaChain } from '../../../src/rails/solana/rpc.js';
import { SignatureWatch } from '../../../src/rails/solana/signature-watch.js';
import { FakeRpc, never, publicFailureOf } from '../../support/fake-rpc.js';

const SENT = 'AQID';
const context = { slot: 7 };

describe('sending a transaction', () => {
  let servers: FakeRpc[];
  let chain: SolanaChain;

  beforeEach(async () => {
    servers = [new FakeRpc(), new FakeRpc(), new FakeRpc()];
    const urls = await Promise.all(servers.map(server => server.open()));
    chain = createChain({ urls, timeoutMs: 1_000 });
  });
  afterEach(async () => {
    await chain.close();
    await Promise.all(servers.map(server => server.close()));
  });

  const refuse = (server: FakeRpc): void => {
    server.answer = (response, _call, id) =>
      response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32002, message: 'no' } }));
  };

  it('goes to all RPC servers concurrently, without preflight, and is accepted if any of them accepts it', async () => {
    const [first, second, third] = servers as [FakeRpc, FakeRpc, FakeRpc];
    // The first server does not answer.
    first.answer = () => undefined;
    refuse(second);
    third.results.set('sendTransaction', 'signature');
    await chain.send(SENT, never);
    for (const { calls } of servers) {
      expect(calls).to.have.length(1);
      expect(calls[0]).to.include({ method: 'sendTransaction' });
      expect(calls[0]?.params).to.deep.equal([
        SENT,
        { encoding: 'base64', skipPreflight: true, maxRetries: 0 },
      ]);
    }
  });

  it('also goes to a server that is paused after a failure', async () => {
    const [first, second] = servers as [FakeRpc, FakeRpc, FakeRpc];
    first.answer = response => response.writeHead(503).end();
    for (const server of servers) server.results.set('getBlockHeight', 5).set('sendTransaction', 'signature');
    await chain.blockHeight('confirmed', never);
    const before = first.calls.length;
    await chain.send(SENT, never);
    expect(first.calls.length).to.equal(before + 1);
    expect(second.calls.at(-1)?.method).to.equal('sendTransaction');
  });

  it('fails if no server accepts, and ends with its signal', async () => {
    for (const server of servers) refuse(server);
    expect((await publicFailureOf(chain.send(SENT, never))).kind).to.equal('failed');
    for (const server of servers) server.answer = () => undefined;
    const giveUp = new AbortController();
    const sending = publicFailureOf(chain.send(SENT, giveUp.signal));
    giveUp.abort();
    expect((await sending).message).to.match(/in time/);
  });

  it("a simulation distinguishes an invalid transaction from a server that can't simulate it", async () => {
    const [first, second, third] = servers as [FakeRpc, FakeRpc, FakeRpc];
    const error = { InstructionError: [2, { Custom: 1 }] };
    first.results.set('simulateTransaction', { context, value: { err: error, logs: [] } });
    expect(await chain.simulate(SENT, never)).to.deep.equal({ error: JSON.stringify(error) });
    first.results.set('simulateTransaction', { context, value: { err: null, logs: [] } });
    expect(await chain.simulate(SENT, never)).to.deep.equal({ error: null });
    // The servers answer as they do when they can't decode a transaction.
    for (const server of servers)
      server.answer = (response, _call, id) =>
        response.end(
          JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32602, message: 'invalid transaction' } }),
        );
    expect((await chain.simulate(SENT, never)).error).to.match(/invalid transaction/);
    for (const server of [first, second, third]) server.answer = response => response.writeHead(429).end();
    expect((await publicFailureOf(chain.simulate(SENT, never))).kind).to.equal('unavailable');
  });

  it('reads statuses, blockhashes and balances, and fails on results with an unexpected structure', async () => {
    const [first, second, third] = servers as [FakeRpc, FakeRpc, FakeRpc];
    const status = (confirmationStatus: string | undefined, err: unknown = null) => ({
      slot: 3,
      confirmations: 1,
      err,
      confirmationStatus,
    });
    const value = [
      null,
      status('processed'),
      status('confirmed'),
      status('finalized', { a: 1 }),
      status(undefined),
    ];
    first.results.set('getSignatureStatuses', { context, value });
    const found = await chain.signatureStatuses(['a', 'b', 'c', 'd', 'e'], never);
    expect(found.map(one => one && `${one.finality} ${one.failed}`)).to.deep.equal([
      null,
      'processed false',
      'confirmed false',
      'finalized true',
      'processed false',
    ]);
    const address = Keypair.generate().publicKey.toBase58();
    first.results
      .set('isBlockhashValid', { context, value: false })
      .set('getBalance', { context, value: 12 });
    expect(await chain.blockhashLives(address, never)).to.equal(false);
    expect(await chain.balance(address, never)).to.equal(12n);
    for (const server of [first, second, third]) {
      server.results.set('getSignatureStatuses', { context, value: [null] });
      server.results
        .set('isBlockhashValid', { context, value: 'no' })
        .set('getBalance', { context, value: '12' });
    }
    for (const asked of [
      chain.signatureStatuses(['a', 'b'], never),
      chain.blockhashLives(address, never),
      chain.balance(address, never),
    ])
      expect((await publicFailureOf(asked)).kind).to.equal('failed');
  });

  describe('is watched until it is confirmed', () => {
    const [a, b] = ['a', 'b'];
    type Status = { finality: 'processed' | 'confirmed' | 'finalized'; failed: boolean; slot: number };
    let seen: Map<string, Status>;
    let asked: string[][];
    let down: boolean;
    let watch: SignatureWatch;
    const landed = (finality: Status['finality'], failed = false): Status => ({ finality, failed, slot: 1 });

    beforeEach(() => {
      seen = new Map();
      asked = [];
      down = false;
      watch = new SignatureWatch(
        {
          signatureStatuses: async signatures => {
            asked.push(signatures);
            if (down) throw new Error('the RPC server is away');
            return signatures.map(signature => seen.get(signature) ?? null);
          },
        },
        20,
      );
    });
    afterEach(() => watch.close());

    it('with one request for all transactions', async () => {
      const both = Promise.all([watch.landing(a, never), watch.landing(b, never)]);
      while (!asked.some(signatures => signatures.length === 2))
        await new Promise(done => setTimeout(done, 5));
      seen.set(a, landed('finalized')).set(b, landed('confirmed', true));
      expect(await both).to.deep.equal([{ failed: false }, { failed: true }]);
    });

    it('even if it is only processed at first, or the server is down for a while', async () => {
      let result: unknown;
      seen.set(a, landed('processed'));
      const watching = watch.landing(a, never).then(found => (result = found));
      const looks = async (count: number): Promise<void> => {
        const until = asked.length + count;
        while (asked.length < until) await new Promise(done => setTimeout(done, 5));
      };
      await looks(3);
      expect(result).to.equal(undefined);
      down = true;
      await looks(3);
      seen.set(a, landed('confirmed'));
      down = false;
      await watching;
      expect(result).to.deep.equal({ failed: false });
    });

    it('for each caller, and only while a caller is waiting', async () => {
      const giveUp = new AbortController();
      const [first, second] = [watch.landing(a, giveUp.signal), watch.landing(a, never)];
      giveUp.abort(new Error('enough'));
      expect(await first.catch((error: Error) => error.message)).to.equal('enough');
      seen.set(a, landed('confirmed'));
      expect(await second).to.deep.equal({ failed: false });
      await new Promise(done => setTimeout(done, 60));
      const before = asked.length;
      await new Promise(done => setTimeout(done, 60));
      expect(asked.length, 'nobody waits: nothing is asked').to.equal(before);
    });

    it('in several requests, if there are more than fit into one', async () => {
      const names = Array.from({ length: 600 }, (_, n) => `s${n}`);
      for (const name of names) seen.set(name, landed('confirmed'));
      await Promise.all(names.map(name => watch.landing(name, new AbortController().signal)));
      expect(Math.max(...asked.map(({ length }) => length))).to.be.at.most(256);
    });
  });
});
