import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { getAssociatedTokenAddressSync } from '@solana/spl-token';
import { Connection, PublicKey } from '@solana/web3.js';
import { expect } from 'chai';
import { readInfo } from '../../src/config/sandbox-file.js';
import { craftPayment, v2Header, type Recipe } from '../support/craft.js';
import { isEverythingRun } from '../support/extent.js';
import { until } from '../support/faults.js';
import { freePort } from '../support/free-port.js';
import { type Intervention } from '../support/proxy.js';
import { sha256 } from '../support/test-chain.js';
import { offerOf, post, receiptOf, recipeOf, TEXT, type Answer } from '../support/world.js';
import {
  allOnOneChain,
  buyer,
  children,
  connection,
  facilitator,
  folder,
  keypairOf,
  proxied,
  sandbox,
  serve,
  type Environment,
  type Served,
} from '../support/server-process.js';
import { priceOf } from '../support/sold.js';

const PRICE = priceOf('summarize');
/** A new payment that no server has seen, and its call. */
type Sale = { id: string; transaction: string; headers: Environment; body: { text: string } };

describe('a server that is killed or stopped', function () {
  this.timeout(180_000);
  // No two calls are equal: a new payment would attach to an unresolved payment for an equal call instead of being settled.
  let calls = 0;
  allOnOneChain();

  async function sign(url: string, count: number, bend: Recipe = {}): Promise<Sale[]> {
    const offer = await offerOf(url);
    const recipe = recipeOf(offer, buyer);
    return Array.from({ length: count }, () => {
      const { transaction, messageBytes } = craftPayment({ ...recipe, ...bend });
      return {
        id: sha256(messageBytes),
        transaction,
        headers: { 'PAYMENT-SIGNATURE': v2Header(offer, transaction) },
        body: { text: `${TEXT} This is call number ${++calls}.` },
      };
    });
  }

  const redeem = (url: string, { headers, body }: Sale): Promise<Answer> =>
    post(`${url}/v1/summarize`, body, headers);

  const receiver = (
    chain: Connection,
    payTo: string,
    mint: string,
  ): { account: PublicKey; earned(): Promise<bigint> } => {
    const account = getAssociatedTokenAddressSync(new PublicKey(mint), new PublicKey(payTo), true);
    return {
      account,
      earned: async () => BigInt((await chain.getTokenAccountBalance(account)).value.amount),
    };
  };
  const till = () => receiver(connection, sandbox.info.payTo, sandbox.info.usdcMint);

  const messages = new Map<string, string>();

  /** The id of the payment of a landed transfer. */
  async function paymentOf(signature: string): Promise<string> {
    const options = { maxSupportedTransactionVersion: 0, commitment: 'confirmed' } as const;
    const landed = messages.has(signature) ? null : await connection.getTransaction(signature, options);
    if (landed) messages.set(signature, sha256(landed.transaction.message.serialize()));
    return messages.get(signature) ?? '';
  }

  /** How many times each payment has landed on the chain. */
  async function landings(): Promise<Map<string, number>> {
    const counts = new Map<string, number>();
    const listed = await connection.getSignaturesForAddress(till().account);
    for (const { signature } of listed.filter(({ err }) => !err)) {
      const id = await paymentOf(signature);
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    return counts;
  }

  /**
   * Transfers and balance at the same moment. It retries, because unresolved payments may be settled in the background
   * meanwhile.
   */
  async function standing(): Promise<{ landed: Map<string, number>; earned: bigint }> {
    for (;;) {
      const earned = await till().earned();
      const landed = await landings();
      if ((await till().earned()) === earned) return { landed, earned };
    }
  }

  const transactionOf = (body: Buffer): string =>
    (JSON.parse(body.toString()) as { paymentPayload: { payload: { transaction: string } } }).paymentPayload
      .payload.transaction;

  it("killed while a new payer's payments are being verified: they were only claimed, and are redeemed after the restart", async () => {
    const calls = 10;
    const before = await till().earned();
    const served = await serve(proxied('verifying'));
    let verifies = 0;
    facilitator.intervene(async ({ path, forward, respond }) => {
      if (path === '/verify' && ++verifies === calls) served.child.kill('SIGKILL');
      const answer = await forward();
      // No payment passes verify before the last one has reached it.
      while (path === '/verify' && verifies < calls) await sleep(5);
      respond(answer.status, answer.body);
    });
    const made = await sign(served.url, calls);
    const cut = await Promise.allSettled(made.map(sale => redeem(served.url, sale)));
    expect(cut.map(({ status }) => status)).to.deep.equal(made.map(() => 'rejected'));
    expect(await served.ended).to.include({ signal: 'SIGKILL' });
    facilitator.intervene(undefined);
    const again = await serve(proxied('verifying'));
    expect(await till().earned()).to.equal(before);
    for (const sale of made) expect((await redeem(again.url, sale)).status).to.equal(200);
    expect(await till().earned()).to.equal(before + BigInt(calls) * PRICE);
  });

  describe('kill -9 in the middle of many paid calls', () => {
    /** Runs only in make test-all, because the schedules of sale/faults.slow.test.ts also kill servers at such moments. */
    const each = isEverythingRun ? it : it.skip;
    const CALLS = 10;
    let served: Served;
    /** Everything that was ever sold in these tests, with the answer if one came. */
    const sales: Sale[] = [];
    const answered = new Map<string, Buffer>();
    const env = (): Environment => proxied('killed');
    let earlier: Map<string, number>;

    before(async () => {
      earlier = await landings();
      served = await serve(env());
      // Makes the payer known to the server.
      const [first] = await sign(served.url, 1);
      const answer = await redeem(served.url, first!);
      expect(answer.status, answer.body.toString()).to.equal(200);
      answered.set(first!.id, answer.body);
      sales.push(first!);
      children.splice(children.indexOf(served.child), 1);
    });
    after(() => served.kill());
    beforeEach(async () => {
      if (served.child.signalCode === null) return;
      served = await serve(env());
      children.splice(children.indexOf(served.child), 1);
    });

    /** Sends a payment again, as an agent would, until the answer is final. */
    async function redeemWhen(sale: Sale, counts: (answer: Answer) => boolean): Promise<Answer> {
      let answer = await redeem(served.url, sale);
      const isSo = async (): Promise<boolean> =>
        counts(answer) || counts((answer = await redeem(served.url, sale)));
      await until('the answer counts', isSo, 30_000);
      return answer;
    }

    /** Excludes payments that were not charged because the facilitator was considered down. */
    const isOfCharge = ({ status, headers }: Answer): boolean =>
      status !== 503 || headers.has('payment-response');

    const remember = (sale: Sale, answer: Answer | undefined): void => {
      if (answer?.status === 200) answered.set(sale.id, answer.body);
    };

    /** Makes paid calls until the server is dead, then restarts it. @returns the sales */
    async function surviveKill(afterwards?: Intervention): Promise<Sale[]> {
      const made = await sign(served.url, CALLS);
      sales.push(...made);
      await Promise.all(
        made.map(async sale => remember(sale, await redeem(served.url, sale).catch(() => undefined))),
      );
      expect(await served.ended).to.include({ signal: 'SIGKILL' });
      facilitator.intervene(afterwards);
      served = await serve(env());
      children.splice(children.indexOf(served.child), 1);
      return made;
    }

    /** Sends every payment again, as an agent would: each gets its answer, and its money has moved once. */
    async function checkSales(made: Sale[]): Promise<void> {
      for (const sale of made) {
        const before = answered.get(sale.id);
        const answer = await redeemWhen(sale, isOfCharge);
        if (before) expect(answer.status, 'an answer that was given is given again').to.equal(200);
        if (answer.status === 503)
          expect(receiptOf(answer)).to.include({ success: false, errorReason: 'settlement_pending' });
        else expect(answer.status, answer.body.toString()).to.equal(200);
        if (before) expect(answer.body.equals(before)).to.equal(true);
        remember(sale, answer);
      }
      const { landed, earned } = await standing();
      for (const [id, times] of landed) expect(times, id).to.equal(1);
      for (const sale of made) if (answered.has(sale.id)) expect(landed.get(sale.id)).to.equal(1);
      const sold = new Set([...earlier.keys(), ...sales.map(({ id }) => id)]);
      expect([...landed.keys()].filter(id => !sold.has(id))).to.deep.equal([]);
      expect(earned).to.equal(BigInt(landed.size) * PRICE);
    }

    each(
      'while the facilitator is being asked, before it got the request: unresolved, 503 and never 402',
      async () => {
        const asked = new Set<string>();
        facilitator.intervene(async ({ path, body, forward, respond, drop }) => {
          if (path !== '/settle') return pass(await forward(), respond);
          asked.add(transactionOf(body));
          if (asked.size === 4) served.child.kill('SIGKILL');
          drop();
        });
        const made = await surviveKill(async ({ path, forward, respond, drop }) => {
          if (path === '/settle') return drop();
          pass(await forward(), respond);
        });
        const doubtful = made.filter(sale => asked.has(sale.transaction));
        expect(doubtful).to.have.lengthOf.at.least(4);
        for (const sale of doubtful) {
          const answer = await redeem(served.url, sale);
          expect(answer.status).to.equal(503);
          expect(Number(answer.headers.get('retry-after'))).to.be.greaterThan(0);
          expect(receiptOf(answer)).to.include({ success: false, errorReason: 'settlement_pending' });
        }
        facilitator.intervene(undefined);
        await checkSales(made);
      },
    );

    it('leads to no second charge for a payment whose money moved before the server learned of it, because the chain decides', async () => {
      const moved = new Set<string>();
      facilitator.intervene(async ({ path, body, forward, respond, drop }) => {
        const answer = await forward();
        if (path !== '/settle') return pass(answer, respond);
        moved.add(transactionOf(body));
        if (moved.size === 4) served.child.kill('SIGKILL');
        drop();
      });
      const made = await surviveKill();
      await checkSales(made);
      const landed = await landings();
      for (const sale of made.filter(({ transaction }) => moved.has(transaction)))
        expect(landed.get(sale.id)).to.equal(1);
      for (const sale of made.filter(({ transaction }) => moved.has(transaction))) {
        const answer = await redeemWhen(sale, ({ status }) => status !== 503);
        expect(answer.status, answer.body.toString()).to.equal(200);
        expect(receiptOf(answer)).to.include({ success: true });
        remember(sale, answer);
      }
    });

    each('right after settlements were reported: paid once, and answered or unresolved', async () => {
      let settled = 0;
      facilitator.intervene(async ({ path, forward, respond }) => {
        pass(await forward(), respond);
        if (path === '/settle' && ++settled === 5) setImmediate(() => served.child.kill('SIGKILL'));
      });
      await checkSales(await surviveKill());
    });

    it('after delivery: every answer is kept, byte for byte', async () => {
      let delivered = 0;
      const made = await sign(served.url, CALLS);
      sales.push(...made);
      await Promise.all(
        made.map(async sale => {
          remember(sale, await redeem(served.url, sale).catch(() => undefined));
          if (answered.has(sale.id) && ++delivered === 6) served.child.kill('SIGKILL');
        }),
      );
      await served.ended;
      served = await serve(env());
      children.splice(children.indexOf(served.child), 1);
      expect(made.filter(({ id }) => answered.has(id))).to.have.lengthOf.at.least(6);
      await checkSales(made);
    });

    it('after all these kills, the money on the chain equals the answers given', async () => {
      await checkSales(sales);
    });
  });

  it('killed with its own sandbox: the ports are free immediately and the same chain continues', async () => {
    const stateDir = join(folder, 'own');
    const [port, rpcPort, facilitatorPort] = [await freePort(), await freePort(), await freePort()];
    const env = {
      STATE_DIR: stateDir,
      PORT: String(port),
      ADMIN_PORT: '0',
      SANDBOX_RPC_PORT: String(rpcPort),
      SANDBOX_FACILITATOR_PORT: String(facilitatorPort),
    };
    const first = await serve(env);
    const chain = new Connection(`http://127.0.0.1:${rpcPort}`, 'confirmed');
    const info = readInfo(stateDir)!;
    const payer = await keypairOf(stateDir);
    const [sale, other] = await sign(first.url, 2, { payer });
    const answer = await redeem(first.url, sale!);
    expect(answer.status, answer.body.toString()).to.equal(200);
    const { transaction } = receiptOf(answer);
    const cut = redeem(first.url, other!).catch(() => undefined);
    await first.kill();
    await cut;

    const second = await serve(env);
    expect(second.url).to.equal(first.url);
    expect(readInfo(stateDir)).to.include({ id: info.id, payTo: info.payTo, rpcUrl: info.rpcUrl });
    const landed = await chain.getTransaction(transaction, { maxSupportedTransactionVersion: 0 });
    expect(sha256(landed!.transaction.message.serialize())).to.equal(sale!.id);
    const again = await redeem(second.url, sale!);
    expect(again.status).to.equal(200);
    expect(again.body.equals(answer.body)).to.equal(true);
    expect((await redeem(second.url, other!)).status).to.be.oneOf([200, 503]);
    const own = receiver(chain, info.payTo, info.usdcMint);
    const listed = (await chain.getSignaturesForAddress(own.account)).filter(({ err }) => !err);
    expect(await own.earned()).to.equal(BigInt(listed.length) * PRICE);
    expect(listed.length).to.be.at.most(2);
    second.child.kill('SIGTERM');
    expect(await second.ended).to.include({ code: 0 });
  });

  it('asked to stop during a paid call: finishes it, accepts no new one, and exits with 0', async () => {
    const served = await serve(proxied('stopped'));
    const [held, late] = await sign(served.url, 2);
    let reached = (): void => undefined;
    const settling = new Promise<void>(resolve => (reached = resolve));
    let release = (): void => undefined;
    const released = new Promise<void>(resolve => (release = resolve));
    facilitator.intervene(async ({ path, forward, respond }) => {
      if (path === '/settle') {
        reached();
        await released;
      }
      pass(await forward(), respond);
    });
    const earned = await till().earned();
    const finishing = redeem(served.url, held!);
    await settling;
    // A connection on which a request has begun but not ended when the signal comes.
    const socket = connect(Number(new URL(served.url).port), '127.0.0.1');
    await once(socket, 'connect');
    const body = JSON.stringify(late!.body);
    const head =
      `POST /v1/summarize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
      `PAYMENT-SIGNATURE: ${late!.headers['PAYMENT-SIGNATURE']}\r\nContent-Length: ${body.length}\r\n`;
    socket.write(head);
    await sleep(100);
    served.child.kill('SIGTERM');
    await untilRefused(served.url);
    socket.write(`\r\n${body}`);
    const answer = await readAll(socket);
    expect(answer).to.match(/^HTTP\/1\.1 503 /);
    expect(answer).to.match(/^retry-after: [1-9]\d*\r$/im);
    expect(answer).to.match(/^connection: close\r$/im);
    expect(answer).to.include('shutting down');
    release();
    expect((await finishing).status).to.equal(200);
    expect(await served.ended).to.include({ code: 0 });
    expect(await till().earned()).to.equal(earned + PRICE);

    const again = await serve(proxied('stopped'));
    expect((await redeem(again.url, held!)).status, 'given again').to.equal(200);
    expect((await redeem(again.url, late!)).status, 'not charged, still good').to.equal(200);
    expect(await till().earned()).to.equal(earned + 2n * PRICE);
    await again.kill();
  });

  it('asked to stop while a load balancer checks it: fails the check, sells for three seconds more, and closes each connection', async () => {
    const admin = await freePort();
    const served = await serve(proxied('leaving', { ADMIN_PORT: String(admin) }));
    const ready = async (): Promise<number> => (await fetch(`http://127.0.0.1:${admin}/ready`)).status;
    expect(await ready()).to.equal(200);
    const [sale] = await sign(served.url, 1);
    served.child.kill('SIGTERM');
    await until('/ready refuses', async () => (await ready()) === 503);
    const unpaid = await post(`${served.url}/v1/summarize`, { text: TEXT });
    expect([unpaid.status, unpaid.headers.get('connection')]).to.deep.equal([402, 'close']);
    const sold = await redeem(served.url, sale!);
    expect([sold.status, sold.headers.get('connection')]).to.deep.equal([200, 'close']);
    expect(await served.ended).to.include({ code: 0 });
  });
});

function pass(
  { status, body }: { status: number; body: Buffer },
  respond: (status: number, body: Buffer) => void,
): void {
  respond(status, body);
}

/** Waits until nothing listens at a URL any more. */
async function untilRefused(url: string): Promise<void> {
  const { port } = new URL(url);
  for (const deadline = Date.now() + 10_000; Date.now() < deadline; await sleep(20)) {
    const socket = connect(Number(port), '127.0.0.1');
    const refused = await Promise.race([
      once(socket, 'connect').then(() => false),
      once(socket, 'error').then(() => true),
    ]).catch(() => true);
    socket.destroy();
    if (refused) return;
  }
  throw new Error(`${url} still accepts connections`);
}

async function readAll(socket: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
