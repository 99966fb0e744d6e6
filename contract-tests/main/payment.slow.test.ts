import { connect } from 'node:net';
import { join } from 'node:path';
import Database from 'libsql';
import { expect } from 'chai';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { Keypair, VersionedTransaction } from '@solana/web3.js';
import { loadContract } from '../../src/contract/parse-contract.js';
import { craftPayment, v2Header } from '../support/craft.js';
import { pause, until } from '../support/faults.js';
import {
  call,
  challengeOf,
  offerOf,
  openWorld,
  post,
  receiptOf,
  recipeOf,
  signFor,
  TEXT,
  type World,
} from '../support/world.js';
import { priceOf } from '../support/sold.js';

type Offer = { extra: { feePayer: string; recentBlockhash?: string }; payTo: string };

function signedOver(headers: Record<string, string>): string {
  const payment = JSON.parse(Buffer.from(headers['PAYMENT-SIGNATURE'] ?? '', 'base64').toString()) as {
    payload: { transaction: string };
  };
  const wire = Buffer.from(payment.payload.transaction, 'base64');
  return VersionedTransaction.deserialize(wire).message.recentBlockhash;
}

describe('a paid call, end to end on a real local Solana', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await openWorld();
  });
  after(() => world.close());

  const summarize = (headers: Record<string, string>, body: unknown = { text: TEXT }) =>
    post(`${world.url}/v1/summarize`, body, headers);

  it('the official fetch client pays and gets its answer, and exactly the price arrives', async () => {
    const signer = await createKeyPairSignerFromBytes(world.buyer);
    const scheme = new ExactSvmScheme(signer, { rpcUrl: world.sandbox.rpc.url });
    const paidFetch = wrapFetchWithPayment(fetch, new x402Client().register('solana:*', scheme));
    const before = await world.earned();
    const response = await paidFetch(`${world.url}/v1/summarize`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text: TEXT }),
    });
    expect(response.status).to.equal(200);
    expect(await response.json())
      .to.have.property('summary')
      .that.includes('harbour bridge');
    expect(await world.earned()).to.equal(before + priceOf('summarize'));
  });

  for (const version of [1, 2] as const) {
    it(`a v${version} payment is charged once, with a receipt that names the transfer`, async () => {
      const before = await world.earned();
      const answer = await summarize(await signFor(world, '/v1/summarize', version));
      expect(answer.status, answer.body.toString()).to.equal(200);
      const receipt = receiptOf(answer);
      expect(receipt).to.include({
        success: true,
        network: version === 2 ? world.sandbox.info.network : 'solana-devnet',
      });
      expect(answer.headers.has(version === 2 ? 'payment-response' : 'x-payment-response')).to.equal(true);
      const landed = await world.connection.getSignatureStatuses([receipt.transaction]);
      expect(landed.value[0]).to.include({ err: null });
      expect(await world.earned()).to.equal(before + priceOf('summarize'));
    });
  }

  it('promise 6: an answer that was cut off while it was being read is delivered to a new signature, and charged once', async function () {
    this.timeout(60_000);
    const body = { text: `${TEXT} `.repeat(40).slice(0, 2_400) };
    const before = await world.earned();
    const headers = await signFor(world, '/v1/tts');
    await new Promise<void>((resolve, reject) => {
      const { hostname, port } = new URL(world.url);
      const socket = connect(Number(port), hostname);
      const text = JSON.stringify(body);
      const lines = Object.entries({ ...headers, 'content-type': 'application/json', host: 'x' });
      socket.write(
        `POST /v1/tts HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}` +
          `content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
      );
      socket.once('readable', () => {
        // The client reads so little that the rest can't have left the server.
        const head = socket.read(Math.min(socket.readableLength, 1_000)) as Buffer;
        expect(head.toString('latin1')).to.match(/^HTTP\/1\.1 200 /);
        socket.resetAndDestroy();
        resolve();
      });
      socket.once('error', reject);
    });
    const again = await post(`${world.url}/v1/tts`, body, await signFor(world, '/v1/tts'));
    expect(again.status, again.body.subarray(0, 200).toString()).to.equal(200);
    expect(again.body.length).to.be.above(4_500_000);
    expect(await world.earned()).to.equal(before + priceOf('textToSpeech'));
  });

  it("every operation's example in the contract can be bought unchanged", async function () {
    this.timeout(60_000);
    const contract = loadContract(new URL('../../../openapi.yaml', import.meta.url));
    for (const { id, path, request, answers } of contract.paid) {
      const answer = await post(`${world.url}${path}`, request?.example, await signFor(world, path));
      expect(answer.status, `${id}: ${answer.body.toString('utf8', 0, 300)}`).to.equal(200);
      if (id === 'solTokenBrief') expect(answer.json().priceUsd).to.be.a('number');
      if (id === 'solMintInfo')
        expect(answer.json().supply).to.equal((answers[0].example as { supply: string }).supply);
    }
  });

  it('solMintInfo returns the facts about every sample mint', async () => {
    const { uninitialised, ...others } = world.sandbox.info.mints;
    for (const mint of [...Object.values(others), uninitialised]) {
      const answer = await post(
        `${world.url}/v1/sol-mint-info`,
        { mint },
        await signFor(world, '/v1/sol-mint-info'),
      );
      expect(answer.status, answer.body.toString()).to.equal(200);
      expect(answer.json()).to.include({
        mint,
        initialized: mint !== uninitialised,
        network: world.sandbox.info.network,
      });
      expect(answer.json().supply).to.match(/^\d+(\.\d+)?$/);
    }
  });

  it('promise 2: the brief of an uninitialised mint is a 400 and costs nothing', async () => {
    const before = await world.earned();
    const path = '/v1/sol-token-brief';
    const { uninitialised, doubtful } = world.sandbox.info.mints;
    const refused = await post(world.url + path, { mint: uninitialised }, await signFor(world, path));
    expect(refused.status).to.equal(400);
    expect(refused.json().error).to.match(/has not been initialised, so it is not a token yet/);
    expect(await world.earned()).to.equal(before);
    const sold = await post(world.url + path, { mint: doubtful }, await signFor(world, path));
    const { findings, warnings } = sold.json() as { findings: { code: string }[]; warnings: string[] };
    expect(findings.map(({ code }) => code)).to.include.members([
      'suspicious',
      'mint-authority',
      'young-pool',
    ]);
    expect(warnings).to.have.length(findings.length);
  });

  it('promise 2: a mint that does not exist is a 400 and costs nothing', async () => {
    const before = await world.earned();
    const headers = await signFor(world, '/v1/sol-mint-info');
    const missing = await post(
      `${world.url}/v1/sol-mint-info`,
      { mint: world.sandbox.info.buyer.replace(/.$/, '2') },
      headers,
    );
    expect(missing.status).to.equal(400);
    expect(await world.earned()).to.equal(before);
  });

  it('promise 1: 200 concurrent copies of one payment are one transfer and 200 equal answers', async function () {
    this.timeout(60_000);
    const before = await world.earned();
    const settles = world.facilitator.count('/settle');
    const headers = await signFor(world, '/v1/summarize');
    const answers = await Promise.all(
      Array.from({ length: 200 }, () => untilAnswered(() => summarize(headers))),
    );
    expect(new Set(answers.map(answer => answer.body.toString()))).to.have.lengthOf(1);
    expect(answers.every(answer => answer.status === 200)).to.equal(true);
    expect(await world.earned()).to.equal(before + priceOf('summarize'));
    expect(world.facilitator.count('/settle') - settles).to.equal(1);
  });

  it('a used payment with a bad body gets a 400 that says it was used, not that nothing was charged', async () => {
    const before = await world.earned();
    const headers = await signFor(world, '/v1/summarize');
    const text = `${TEXT} Used before.`;
    expect((await summarize(headers, { text })).status).to.equal(200);
    for (const body of ['{"text":', { text: '' }, { text: 7 }]) {
      const answer = await post(`${world.url}/v1/summarize`, body, headers);
      expect(answer.status).to.equal(400);
      expect(answer.json().error)
        .to.match(/This payment was used for an earlier call/)
        .and.not.match(/not charged/);
    }
    expect((await summarize(headers, { text })).status).to.equal(200);
    expect(await world.earned()).to.equal(before + priceOf('summarize'));
  });

  it('promise 1: copies as v1 and v2 in both headers are one payment', async () => {
    const before = await world.earned();
    const v2 = await signFor(world, '/v1/summarize');
    const payload = JSON.parse(Buffer.from(v2['PAYMENT-SIGNATURE'] ?? '', 'base64').toString()) as {
      payload: { transaction: string };
    };
    const v1 = { x402Version: 1, scheme: 'exact', network: 'solana-devnet', payload: payload.payload };
    const asV1 = { 'X-PAYMENT': Buffer.from(JSON.stringify(v1)).toString('base64') };
    const swapped = { 'X-PAYMENT': v2['PAYMENT-SIGNATURE'] ?? '' };
    const answers = await Promise.all(
      [v2, asV1, swapped].map(headers =>
        untilAnswered(() => summarize(headers, { text: `${TEXT} In copies.` })),
      ),
    );
    expect(new Set(answers.map(answer => answer.body.toString()))).to.have.lengthOf(1);
    expect(answers.map(answer => answer.status)).to.deep.equal([200, 200, 200]);
    expect(await world.earned()).to.equal(before + priceOf('summarize'));
  });

  /** Signs as a client that adds no memo does: over the offered blockhash, or over one that it fetches if none is offered. */
  async function signWithoutMemo(): Promise<Record<string, string>> {
    const [offer] = challengeOf(await summarize({})).accepts as [Offer];
    const { feePayer, recentBlockhash } = offer.extra;
    const blockhash = recentBlockhash ?? (await world.connection.getLatestBlockhash()).blockhash;
    const payer = Keypair.fromSecretKey(world.buyer);
    const { transaction } = craftPayment({ payer, feePayer, blockhash, payTo: offer.payTo, memo: null });
    return { 'PAYMENT-SIGNATURE': v2Header(offer, transaction) };
  }

  it('a buyer without a memo makes ten different calls in a row, each with a payment of its own', async () => {
    const before = await world.earned();
    for (let n = 0; n < 10; n++) {
      const answer = await summarize(await signWithoutMemo(), { text: `${TEXT} Notice ${n}.` });
      expect(answer.status, answer.body.toString()).to.equal(200);
    }
    expect(await world.earned()).to.equal(before + 100_000n);
  });

  it('a buyer without a memo who sends one transaction for two calls gets an error that says so, and another blockhash', async () => {
    const headers = await signWithoutMemo();
    expect((await summarize(headers)).status).to.equal(200);
    const second = await untilAnswered(() =>
      summarize(headers, { text: 'Another text. It has two sentences.' }),
    );
    expect(second.status).to.equal(402);
    const { error, accepts } = challengeOf(second);
    expect(error).to.match(
      /same transaction was sent for another call.* sign a new one .*with the new blockhash/,
    );
    await until('a blockhash is offered again', async () => {
      const [offer] = challengeOf(await summarize({})).accepts as [Offer];
      return offer.extra.recentBlockhash !== undefined;
    });
    const [offer] = accepts as [Offer];
    const third = challengeOf(await summarize(headers, { text: 'Another text. It has two sentences.' }));
    expect(JSON.stringify([offer, third.accepts])).not.to.include(signedOver(headers));
    expect((third.accepts as [Offer])[0].extra.recentBlockhash).to.be.a('string');
    const renewed = await summarize(await signWithoutMemo(), { text: 'Another text. It has two sentences.' });
    expect(renewed.status, renewed.body.toString()).to.equal(200);
  });

  it('a payment that names a fee payer offered by another server of the ledger is accepted', async () => {
    const feePayer = Keypair.generate().publicKey.toBase58();
    const pay = async (): Promise<string | undefined> => {
      const [offer] = challengeOf(await summarize({})).accepts as [Offer];
      const { blockhash } = await world.connection.getLatestBlockhash();
      const payer = Keypair.fromSecretKey(world.buyer);
      const { transaction } = craftPayment({ payer, feePayer, blockhash, payTo: offer.payTo });
      const answer = await untilAnswered(() =>
        summarize({ 'PAYMENT-SIGNATURE': v2Header(offer, transaction) }),
      );
      return challengeOf(answer).error;
    };
    expect(await pay()).to.include('was not offered');
    const beside = new Database(join(world.stateDir, 'ledger.db'));
    beside
      .prepare('insert into meta (key, value) values (?, ?)')
      .run(`note:fee-payer ${feePayer}`, `${Date.now()}`);
    beside.close();
    expect(await pay(), 'the facilitator is asked').to.match(/refused by the facilitator: .*fee_payer/);
  });

  it('promise 3: the same payment sent again gets the same bytes and is not charged again', async () => {
    const headers = await signFor(world, '/v1/summarize');
    const first = await summarize(headers);
    const earned = await world.earned();
    const again = await summarize(headers);
    expect(again.status).to.equal(200);
    expect(again.body.equals(first.body)).to.equal(true);
    expect(receiptOf(again).transaction).to.equal(receiptOf(first).transaction);
    expect(await world.earned()).to.equal(earned);
  });

  it('promise 3: with another body or operation the payment is refused, without a blockhash over which the buyer would sign the same transaction again', async () => {
    const headers = await signFor(world, '/v1/summarize');
    expect((await summarize(headers)).status).to.equal(200);
    const earned = await world.earned();
    const otherBody = await summarize(headers, { text: 'Something else was asked here.' });
    expect(otherBody.status).to.equal(402);
    const challenge = challengeOf(otherBody);
    expect(challenge.error).to.include('another body');
    expect(JSON.stringify(challenge)).not.to.include('recentBlockhash');
    const other = await post(
      `${world.url}/v1/sol-token-brief`,
      { mint: world.sandbox.info.mints.classic },
      headers,
    );
    expect(other.status).to.equal(402);
    expect(await world.earned()).to.equal(earned);
  });

  it('promise 4: a settlement whose answer is lost is a 503 with a pending receipt, never a 402, and the chain decides it', async function () {
    this.timeout(60_000);
    const before = await world.earned();
    const headers = await signFor(world, '/v1/summarize');
    const body = { text: `${TEXT} Nobody knows how this one was settled.` };
    world.facilitator.intervene(async ({ path, forward, respond, drop }) => {
      const answer = await forward();
      if (path === '/settle') drop();
      else respond(answer.status, answer.body);
    });
    const lost = await summarize(headers, body);
    world.facilitator.intervene(undefined);
    expect(lost.status).to.equal(503);
    expect(receiptOf(lost)).to.include({ success: false, errorReason: 'settlement_pending' });
    const decided = await untilAnswered(() => summarize(headers, body));
    expect(decided.status).to.equal(200);
    expect(receiptOf(decided).success).to.equal(true);
    expect(await world.earned()).to.equal(before + priceOf('summarize'));
  });

  it('promise 6: a client that signs again after such a 503 gets what it paid for and is not charged again', async function () {
    this.timeout(60_000);
    const before = await world.earned();
    const body = { text: `${TEXT} A stock client signs anew after every failure.` };
    world.facilitator.intervene(async ({ path, forward, respond, drop }) => {
      const answer = await forward();
      if (path === '/settle') drop();
      else respond(answer.status, answer.body);
    });
    expect((await summarize(await signFor(world, '/v1/summarize'), body)).status).to.equal(503);
    world.facilitator.intervene(undefined);
    const renewed = await untilAnswered(async () => summarize(await signFor(world, '/v1/summarize'), body));
    expect(renewed.status).to.equal(200);
    expect(await world.earned()).to.equal(before + priceOf('summarize'));
    const sale = await summarize(await signFor(world, '/v1/summarize'), body);
    expect(sale.status).to.equal(200);
    expect(await world.earned(), 'once the answer was written out, a new payment is a new sale').to.equal(
      before + 20_000n,
    );
  });

  it('promise 6: an answer that was queued behind another one when its connection broke is delivered to a new signature', async () => {
    const before = await world.earned();
    const [ahead, behind] = [{ text: `${TEXT} It comes first.` }, { text: `${TEXT} It waits behind.` }];
    let release = (): void => undefined;
    const released = new Promise<void>(resolve => (release = resolve));
    let verifies = 0;
    world.facilitator.intervene(async ({ path, forward, respond }) => {
      if (path === '/verify' && ++verifies === 1) await released;
      const answer = await forward();
      respond(answer.status, answer.body);
    });
    const { hostname, port } = new URL(world.url);
    const socket = connect(Number(port), hostname);
    const write = (headers: Record<string, string>, body: unknown): void => {
      const text = JSON.stringify(body);
      const lines = Object.entries({
        ...headers,
        Host: 'x',
        'Content-Type': 'application/json',
        'Content-Length': String(Buffer.byteLength(text)),
      }).map(([name, value]) => `${name}: ${value}`);
      socket.write(`POST /v1/summarize HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${text}`);
    };
    // The payer is new and has no money, because payments from known payers are not verified.
    const offer = await offerOf(world.url);
    const { transaction } = craftPayment(recipeOf(offer, Keypair.generate()));
    write({ 'PAYMENT-SIGNATURE': v2Header(offer, transaction) }, ahead);
    await until('the first is being verified', () => verifies === 1);
    write(await signFor(world, '/v1/summarize'), behind);
    await until('the second is paid', async () => (await world.earned()) > before);
    await pause(200);
    socket.destroy();
    await pause(200);
    release();
    const renewed = await untilAnswered(async () => summarize(await signFor(world, '/v1/summarize'), behind));
    world.facilitator.intervene(undefined);
    expect(renewed.status).to.equal(200);
    expect(await world.earned()).to.equal(before + priceOf('summarize'));
  });

  it('a facilitator that is down results in a 503, and the same payment is charged once when it is back', async () => {
    const before = await world.earned();
    const headers = await signFor(world, '/v1/summarize');
    const body = { text: `${TEXT} The facilitator sleeps.` };
    world.facilitator.intervene(({ drop }) => drop());
    const down = await summarize(headers, body);
    world.facilitator.intervene(undefined);
    expect(down.status).to.equal(503);
    expect(down.headers.get('retry-after')).to.match(/^\d+$/);
    expect(await world.earned()).to.equal(before);
    expect((await untilAnswered(() => summarize(headers, body))).status).to.equal(200);
    expect(await world.earned()).to.equal(before + priceOf('summarize'));
  });

  it('tools see the sale: getSignaturesForAddress of the receiver lists the transfer', async () => {
    const answer = await summarize(await signFor(world, '/v1/summarize'));
    const { transaction } = receiptOf(answer);
    const parsed = await world.connection.getParsedTransaction(transaction, {
      maxSupportedTransactionVersion: 0,
    });
    expect(JSON.stringify(parsed)).to.include('transferChecked');
    expect((await call(`${world.url}/health`)).status).to.equal(200);
  });
});

/** Sends again after each 503, as an agent would. */
async function untilAnswered(send: () => ReturnType<typeof post>): ReturnType<typeof post> {
  for (let attempt = 0; ; attempt++) {
    const answer = await send();
    if (answer.status !== 503 || attempt === 20) return answer;
    await new Promise(resolve => setTimeout(resolve, 500));
  }
}
