import { VersionedTransaction, type Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import {
  FacilitatorUnreachable,
  REFUSALS_BEFORE_SIGNING,
  type FacilitatorRequest,
} from '../../src/facilitators/facilitator.js';
import { fundedKey, ownFacilitator, WIDE, type OwnFacilitator } from '../support/own-facilitator.js';
import { countingProxy, type CountingProxy, type Intervention } from '../support/proxy.js';
import { TestChain } from '../support/test-chain.js';

describe('the embedded facilitator', function () {
  this.timeout(30_000);
  let testChain: TestChain;
  let payer: Keypair;
  let rpc: CountingProxy;
  let own: OwnFacilitator;
  const opened: { close(): Promise<void> }[] = [];

  before(async () => {
    testChain = await TestChain.open();
  });
  after(() => testChain.close());
  beforeEach(async () => {
    [payer] = (await testChain.payers(1)) as [Keypair];
    rpc = await countingProxy(testChain.sandbox.rpc.url);
    own = await open();
  });
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close();
    await rpc.close();
  });

  async function open(options: Parameters<typeof ownFacilitator>[1] = {}): Promise<OwnFacilitator> {
    const made = await ownFacilitator(testChain, { rpcUrls: [rpc.url], ...options });
    opened.push(made);
    return made;
  }

  /** Signs a payment. @returns the request that settles it */
  async function signed(by = own, request = by.payment({ payer })): Promise<FacilitatorRequest> {
    const found = await by.facilitator.sign(request);
    if (found.kind !== 'signed') throw new Error(JSON.stringify(found));
    return { ...request, transaction: found.transaction };
  }

  const landings = (): number[] => [...testChain.landed([payer]).values()];
  const signatureIn = ({ transaction }: FacilitatorRequest): Uint8Array =>
    VersionedTransaction.deserialize(Buffer.from(transaction, 'base64')).signatures[0]!;

  /** Makes the RPC server accept this many transactions and lose them. */
  function loseSends(count: number): Intervention {
    let lost = 0;
    return async ({ method, forward, respond }) => {
      if (method === 'sendTransaction' && lost++ < count)
        return respond(200, JSON.stringify({ jsonrpc: '2.0', id: 1, result: 'signature' }));
      const { status, body } = await forward();
      respond(status, body);
    };
  }

  it('names its fee payer, verifies, signs without sending, and settles what it signed', async () => {
    const { facilitator } = own;
    expect(await facilitator.supported(testChain.terms.network)).to.deep.equal({
      feePayer: own.keyPair.address,
    });
    const request = own.payment({ payer });
    expect(await facilitator.verify(request)).to.deep.equal({ kind: 'valid' });
    const before = own.lamports();
    const stored = await signed(own, request);
    expect(rpc.count('sendTransaction')).to.equal(0);
    expect(landings()).to.deep.equal([]);
    expect(own.lamports()).to.equal(before);
    const settled = await facilitator.settle(stored);
    expect(settled).to.have.property('kind', 'settled');
    expect(landings()).to.deep.equal([1]);
    const { signature } = settled as { signature: string };
    expect(testChain.sandbox.chain.find(signature)?.err).to.equal(null);
    expect(own.lamports()).to.equal(before - 10_001n);
    expect(own.guard.lamports).to.equal(own.lamports());
  });

  it('settles the same bytes again without a second transfer, even at a server with another key', async () => {
    const stored = await signed();
    const settled = await own.facilitator.settle(stored);
    const other = await open();
    expect(await own.facilitator.settle(stored)).to.deep.equal(settled);
    expect(await other.facilitator.settle(stored)).to.deep.equal(settled);
    expect(landings()).to.deep.equal([1]);
  });

  it('signs the same payment again with the same signature, so a run that died before its row was written leaves nothing behind', async () => {
    const request = own.payment({ payer });
    const [first, second] = [await signed(own, request), await signed(own, request)];
    expect(second).to.deep.equal(first);
    expect(own.guard.lamports).to.equal(own.lamports() - 10_001n);
  });

  /** Funds a new wallet with the money for this many payments. @returns that wallet */
  async function walletWith(payments: bigint): Promise<Keypair> {
    const [wallet] = (await testChain.payers(1, payments * BigInt(own.requirements.amount))) as [Keypair];
    return wallet;
  }

  for (const [funded, count] of [
    [1n, 12],
    [3n, 12],
  ] as const)
    it(`pays the fee of ${funded} of ${count} concurrent payments if the wallet has the money for ${funded}, and refuses to sign the others`, async () => {
      const wallet = await walletWith(funded);
      const before = own.lamports();
      // Each has a different memo, as payments for different calls do.
      const requests = Array.from({ length: count }, (_, n) =>
        own.payment({ payer: wallet, memo: `call number ${n} of this wallet` }),
      );
      const found = await Promise.all(requests.map(request => own.facilitator.sign(request)));
      const refused = found.filter(each => each.kind === 'refused');
      expect(refused).to.have.length(count - Number(funded));
      for (const { reason } of refused) {
        const [code = ''] = reason.split(':');
        expect(REFUSALS_BEFORE_SIGNING.has(code), reason).to.equal(true);
      }
      const settled = await Promise.all(
        found.flatMap((each, n) =>
          each.kind === 'signed'
            ? own.facilitator.settle({ ...requests[n]!, transaction: each.transaction })
            : [],
        ),
      );
      expect(settled.map(({ kind }) => kind)).to.deep.equal(Array.from(settled, () => 'settled'));
      expect(before - own.lamports()).to.equal(funded * 10_001n);
      const late = await own.facilitator.sign(own.payment({ payer: wallet, memo: 'after all the others' }));
      expect(late, 'an empty wallet').to.have.property('kind', 'refused');
    });

  it('lets a wallet pay one call after the other down to its last cent; a transfer that landed unseen does not count twice', async () => {
    const wallet = await walletWith(2n);
    const first = await signed(own, own.payment({ payer: wallet, memo: 'the first of two calls' }));
    // It lands without this facilitator, which still considers it in flight.
    const elsewhere = await open({ feePayer: own.feePayer });
    expect(await elsewhere.facilitator.settle(first)).to.have.property('kind', 'settled');
    const second = await signed(own, own.payment({ payer: wallet, memo: 'the second of two calls' }));
    expect(await own.facilitator.settle(second)).to.have.property('kind', 'settled');
  });

  it('sends a transaction again if an RPC server lost it', async () => {
    rpc.intervene(loseSends(3));
    expect(await own.facilitator.settle(await signed())).to.have.property('kind', 'settled');
    expect(rpc.count('sendTransaction')).to.equal(4);
    expect(landings()).to.deep.equal([1]);
  });

  it('sends to all RPC servers, so that one that is down does not matter', async () => {
    const lame = await countingProxy(testChain.sandbox.rpc.url);
    try {
      lame.intervene(({ drop }) => drop());
      const both = await open({ rpcUrls: [lame.url, rpc.url] });
      expect(await both.facilitator.settle(await signed(both))).to.have.property('kind', 'settled');
      expect(landings()).to.deep.equal([1]);
    } finally {
      await lame.close();
    }
  });

  it('reports a transaction that is lost every time as unknown, names it, and stops when its blockhash expires', async () => {
    // A blockhash expires after a second and a half.
    const hasty = await TestChain.open(10);
    const lossy = await countingProxy(hasty.sandbox.rpc.url);
    lossy.intervene(loseSends(Infinity));
    const patient = await ownFacilitator(hasty, { rpcUrls: [lossy.url], timing: { settleMs: 25_000 } });
    try {
      const [buyer] = (await hasty.payers(1)) as [Keypair];
      const settled = await patient.facilitator.settle(
        await signed(patient, patient.payment({ payer: buyer })),
      );
      expect(settled).to.include({
        kind: 'unknown',
        reason: 'the blockhash expired before the transaction was confirmed',
      });
      expect(settled).to.have.property('signature').with.length.above(80);
      expect(hasty.landed([buyer]).size).to.equal(0);
    } finally {
      await patient.close();
      await lossy.close();
      await hasty.close();
    }
  });

  it('finds in its last check a transfer that landed while the RPC server did not show it', async () => {
    const stored = await signed();
    let blind = true;
    rpc.intervene(async ({ method, forward, respond }) => {
      const { status, body } = await forward();
      if (method === 'isBlockhashValid') {
        blind = false;
        return respond(
          200,
          JSON.stringify({ jsonrpc: '2.0', id: 1, result: { context: { slot: 1 }, value: false } }),
        );
      }
      if (method === 'getSignatureStatuses' && blind)
        return respond(
          200,
          JSON.stringify({ jsonrpc: '2.0', id: 1, result: { context: { slot: 1 }, value: [null] } }),
        );
      respond(status, body);
    });
    expect(await own.facilitator.settle(stored)).to.have.property('kind', 'settled');
  });

  it('does not count, in its last check, a transaction that is only processed, because it can be rolled back', async () => {
    const stored = await signed();
    const respondWith = (value: unknown): string =>
      JSON.stringify({ jsonrpc: '2.0', id: 1, result: { context: { slot: 1 }, value } });
    const processed = { slot: 1, confirmations: 0, err: null, confirmationStatus: 'processed' };
    rpc.intervene(async ({ method, forward, respond }) => {
      const { status, body } = await forward();
      if (method === 'isBlockhashValid') return respond(200, respondWith(false));
      if (method === 'getSignatureStatuses') return respond(200, respondWith([processed]));
      respond(status, body);
    });
    expect(await own.facilitator.settle(stored)).to.include({
      kind: 'unknown',
      reason: 'the blockhash expired before the transaction was confirmed',
    });
  });

  it('treats a failure on the chain as unknown: only `finalized` proves it', async () => {
    const request = own.payment({ payer, amount: 10_000n });
    const stored = await signed(own, request);
    await testChain.spendAll(payer);
    const before = own.lamports();
    const settled = await own.facilitator.settle(stored);
    expect(settled).to.include({ kind: 'unknown', reason: 'the transaction failed on the chain' });
    expect(own.lamports(), 'the fee is charged all the same').to.equal(before - 10_001n);
  });

  it('signs nothing more for a payer whose transfers keep failing on the chain after they passed the simulation', async () => {
    const stored = [];
    for (let n = 0; n < 11; n++) stored.push(await signed(own, own.payment({ payer, amount: 10_000n })));
    await testChain.spendAll(payer);
    await Promise.all(stored.map(each => own.facilitator.settle(each)));
    const [honest] = (await testChain.payers(1)) as [Keypair];
    for (const ask of ['verify', 'sign'] as const) {
      const refused = await own.facilitator[ask](own.payment({ payer }));
      expect(refused).to.have.property('kind', 'refused');
      expect(refused)
        .to.have.property('reason')
        .that.matches(/by this payer failed on the chain/);
      expect((await own.facilitator[ask](own.payment({ payer: honest }))).kind).to.not.equal('refused');
    }
  });

  it('does not refuse a payment because of an outage of the chain', async () => {
    const request = own.payment({ payer });
    rpc.intervene(({ drop }) => drop());
    expect(await own.facilitator.verify(request)).to.have.property('kind', 'unavailable');
    expect(await own.facilitator.sign(request)).to.have.property('kind', 'unavailable');
    rpc.intervene(({ respond }) => respond(429, '{}'));
    expect(await own.facilitator.verify(request)).to.have.property('kind', 'unavailable');
    rpc.intervene(undefined);
    expect(await own.facilitator.verify(request)).to.have.property('kind', 'valid');
  });

  it('verifies again when it signs, so that a payment whose money was moved meanwhile costs no fee', async () => {
    const request = own.payment({ payer });
    expect(await own.facilitator.verify(request)).to.have.property('kind', 'valid');
    await testChain.spendAll(payer);
    const found = await own.facilitator.sign(request);
    expect(found.kind).to.equal('refused');
    expect(found)
      .to.have.property('reason')
      .that.matches(/simulation_failed: Simulation failed: .*Custom":1/);
  });

  it('never sends what it has not signed', async () => {
    const before = rpc.count('sendTransaction');
    expect(await own.facilitator.settle(own.payment({ payer }))).to.deep.equal({
      kind: 'unknown',
      reason: 'the fee payer has not signed the stored transaction',
      signature: '',
    });
    expect(rpc.count('sendTransaction')).to.equal(before);
  });

  it('pays no fee for a payment that names another fee payer', async () => {
    const another = (await fundedKey(testChain)).publicKey.toBase58();
    const found = await own.facilitator.sign(own.payment({ payer, feePayer: another }));
    expect(found).to.have.property('kind', 'refused');
    const { requirements } = own.payment({ payer });
    const misnamed = { ...requirements, extra: { ...requirements.extra, feePayer: another } };
    const request = { ...own.payment({ payer }), requirements: misnamed };
    expect(await own.facilitator.sign(request)).to.have.property('kind', 'refused');
  });

  it('is unavailable and signs nothing with too little SOL in its fee payer, but still settles what was signed', async () => {
    const dry = await open({ lamports: 1_100_000 });
    const stored = await signed(dry);
    const poor = await open({ feePayer: dry.feePayer, limits: { ...WIDE, floor: 1_099_999n } });
    const request = poor.payment({ payer });
    const error = await poor.facilitator.supported('solana:any').catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(FacilitatorUnreachable);
    expect((error as Error).message).to.match(/FEE_PAYER_FLOOR/);
    expect(await poor.facilitator.verify(request)).to.have.property('kind', 'unavailable');
    expect(await poor.facilitator.sign(request)).to.have.property('kind', 'unavailable');
    expect(await poor.facilitator.settle(stored)).to.have.property('kind', 'settled');
    // A refusal stays a refusal even while nothing can be signed.
    expect(await poor.facilitator.verify(poor.payment({ payer, computeLimit: 200_001 }))).to.have.property(
      'kind',
      'refused',
    );
  });

  it('ends a settlement when the server stops', async () => {
    rpc.intervene(loseSends(Infinity));
    const settling = own.facilitator.settle(await signed());
    await own.facilitator.close();
    expect(await settling).to.include({ kind: 'unknown', reason: 'the server is shutting down' });
  });

  it('puts its own signature where the chain looks for it', async () => {
    const stored = await signed();
    const settled = await own.facilitator.settle(stored);
    const { signature } = settled as { signature: string };
    const landed = await testChain.connection.getTransaction(signature, {
      maxSupportedTransactionVersion: 0,
    });
    expect(landed?.transaction.signatures[0]).to.equal(signature);
    expect(signatureIn(stored).every(byte => byte === 0)).to.equal(false);
  });
});
