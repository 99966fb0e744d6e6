import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { getAssociatedTokenAddressSync } from '@solana/spl-token';
import { PublicKey, type Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { fundedPayers } from '../attack-table/funding.js';
import { craftPayment, DEVNET_V1, v1Header, v2Header } from '../support/craft.js';
import { describeInCi, rows } from '../support/extent.js';
import { callTool, paid } from '../support/mcp-call.js';
import type { Intervention } from '../support/proxy.js';
import { SeededRandom } from '../support/seeded-random.js';
import { sha256 } from '../support/test-chain.js';
import { offerOf, post, recipeOf, TEXT } from '../support/world.js';
import {
  allOnOneChain,
  connection,
  facilitator,
  folder,
  proxied,
  rpc,
  sandbox,
  serve,
  type Served,
} from '../support/server-process.js';

const ROUNDS = Number(process.env['STORM_ROUNDS'] ?? 2);
const CONNECTIONS = 50;
const PURCHASES = 3;
const SEED = Number(process.env['STORM_SEED'] ?? Math.floor(Math.random() * 1e9));
const FINAL_MS = 60_000;

type Json = Record<string, unknown>;
/** A call to send a payment with, as an HTTP request and as a tool call. */
type Call = { path: string; tool: string; body: Json };
type Purchase = {
  id: string;
  /** The v2 and v1 envelopes of one transaction. */
  headers: [Record<string, string>, Record<string, string>];
  /** First the call that the buyer wants, then other calls that try the same payment. */
  calls: [Call, ...Call[]];
  /** The answers, by call. */
  answers: Map<Call, Set<string>>;
};
type Sent = { status: number; answer: string } | 'cut';

for (const kind of rows(['http', 'embedded'] as const))
  describeInCi(
    `a storm of copies, other calls, cut connections and kills; facilitator: ${kind} (STORM_SEED=${SEED})`,
    function () {
      this.timeout(300_000);
      allOnOneChain();
      let served: Served;
      let payers: Keypair[];
      let stderr = '';
      const random = new SeededRandom(SEED);
      let rolls = 0;
      const roll = (): number => random.roll((rolls += 1));
      const purchases: Purchase[] = [];
      /** Calls that were not answered within a minute. */
      let hung = 0;
      let final = false;

      async function start(): Promise<void> {
        const url: Record<string, string> = kind === 'embedded' ? { FACILITATOR_URL: 'embedded' } : {};
        served = await serve(proxied(`storm-${kind}`, url));
        served.child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
      }

      before(async () => {
        payers = await fundedPayers(sandbox.info, join(folder, 'chain'), PURCHASES * ROUNDS);
      });

      async function sign(n: number, round: number): Promise<Purchase> {
        const offer = await offerOf(served.url);
        // Each purchase has its own payer, because a payer's equal call could be served by its earlier payment.
        const payer = payers[round * PURCHASES + n];
        const { transaction, messageBytes } = craftPayment({ ...recipeOf(offer, payer!), computePrice: 1n });
        const text = (more: string): Json => ({ text: `${TEXT} Round ${round}, purchase ${n}${more}.` });
        const summarize = { path: '/v1/summarize', tool: 'summarize' };
        return {
          id: sha256(messageBytes),
          headers: [
            { 'PAYMENT-SIGNATURE': v2Header(offer, transaction) },
            { 'X-PAYMENT': v1Header(DEVNET_V1, transaction) },
          ],
          calls: [
            { ...summarize, body: text('') },
            { ...summarize, body: text(', with another body') },
            { path: '/v1/sol-mint-info', tool: 'solMintInfo', body: { mint: sandbox.info.mints.classic } },
            { path: '/v1/tts', tool: 'textToSpeech', body: { text: 'Another price.' } },
          ],
          answers: new Map(),
        };
      }

      const envelope = (headers: Record<string, string>): Json =>
        JSON.parse(Buffer.from(Object.values(headers)[0] ?? '', 'base64').toString()) as Json;

      /** One request with the payment. Rejects if the connection broke. */
      async function send(purchase: Purchase, call: Call, version: 0 | 1, overMcp: boolean): Promise<Sent> {
        const headers = purchase.headers[version];
        if (overMcp) {
          const { isError, structuredContent } = await callTool(
            served.url,
            call.tool,
            call.body,
            paid(envelope(headers)),
          );
          const { status = 402 } = (structuredContent ?? {}) as { status?: number };
          return isError
            ? { status, answer: '' }
            : { status: 200, answer: JSON.stringify(structuredContent) };
        }
        const odd: Record<string, string> =
          !final && roll() < 0.2 ? { 'x-odd': 'ü'.repeat(2_000), ...purchase.headers[1 - version] } : {};
        const answer = await post(`${served.url}${call.path}`, call.body, { ...odd, ...headers });
        return { status: answer.status, answer: answer.status === 200 ? JSON.stringify(answer.json()) : '' };
      }

      /** Sends a part of a request, or all of it, and cuts the connection. */
      function cut(purchase: Purchase, call: Call, stage: number): Promise<Sent> {
        const { port, hostname } = new URL(served.url);
        const body = JSON.stringify(call.body);
        const [[name, value] = ['', '']] = Object.entries(purchase.headers[stage % 2 === 0 ? 0 : 1]);
        const head = `POST ${call.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${name}: ${value}\r\nContent-Length: ${body.length}\r\n\r\n`;
        const parts = [head.slice(0, -40), head, head + body.slice(0, 40), head + body];
        return new Promise(resolve => {
          const socket = connect(Number(port), hostname);
          socket.on('error', () => resolve('cut'));
          socket.on('close', () => resolve('cut'));
          socket.on('data', () => {});
          socket.on('connect', () => {
            socket.write(parts[stage] ?? '');
            setTimeout(() => socket.resetAndDestroy(), stage === 3 ? roll() * 400 : 20);
          });
        });
      }

      function remember({ answers }: Purchase, call: Call, sent: Sent): void {
        if (sent === 'cut' || sent.status !== 200) return;
        answers.set(call, (answers.get(call) ?? new Set()).add(sent.answer));
      }

      /** Fifty concurrent connections, each with the same payment. */
      async function attack(purchase: Purchase): Promise<void> {
        const [meant] = purchase.calls;
        const one = async (): Promise<void> => {
          await pause(roll() * 60);
          const chosen = roll();
          const call =
            chosen < 0.75
              ? meant
              : random.pick<Call>(
                  purchase.calls.map(each => [1, each]),
                  (rolls += 1),
                );
          const sent =
            roll() < 0.7
              ? send(purchase, call, roll() < 0.5 ? 0 : 1, roll() < 0.5)
              : cut(purchase, call, Math.floor(roll() * 4));
          const cutOff = (error: Error): 'cut' => {
            if (error.name === 'TimeoutError') hung += 1;
            return 'cut';
          };
          remember(purchase, call, await sent.catch(cutOff));
        };
        await Promise.all(Array.from({ length: CONNECTIONS }, one));
      }

      function misbehave(): void {
        const paying = new Set(['/settle', '/verify', 'sendTransaction', 'simulateTransaction']);
        const slow: Intervention = async ({ path, method = path, forward, respond, drop }) => {
          const fault = paying.has(method) ? roll() : 1;
          if (fault < 0.1) return drop();
          if (fault < 0.5) await pause(fault * 400);
          const answer = await forward();
          if (fault > 0.5 && fault < 0.6) return drop();
          respond(answer.status, answer.body);
        };
        facilitator.intervene(slow);
        rpc.intervene(slow);
      }

      async function landings(): Promise<Map<string, number>> {
        const mint = new PublicKey(sandbox.info.usdcMint);
        const account = getAssociatedTokenAddressSync(mint, new PublicKey(sandbox.info.payTo), true);
        const counts = new Map<string, number>();
        for (const { signature, err } of await connection.getSignaturesForAddress(account)) {
          const landed = err
            ? null
            : await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 });
          const id = landed && sha256(landed.transaction.message.serialize());
          if (id) counts.set(id, (counts.get(id) ?? 0) + 1);
        }
        return counts;
      }

      /** Sends a payment until it is answered, or until each of its calls has been refused. */
      async function finish(purchase: Purchase): Promise<'answered' | 'refused' | 'pending'> {
        for (const until = Date.now() + FINAL_MS; Date.now() < until; await pause(500)) {
          const statuses: number[] = [];
          for (const call of purchase.calls) {
            const sent = await send(purchase, call, 0, false);
            remember(purchase, call, sent);
            if (sent !== 'cut') statuses.push(sent.status);
            if (sent !== 'cut' && sent.status === 200) return 'answered';
          }
          if (statuses.every(status => status === 402)) return 'refused';
        }
        return 'pending';
      }

      it('charges each payment at most once, for one call, and each payer gets the answer', async () => {
        await start();
        for (let round = 0; round < ROUNDS; round++) {
          misbehave();
          const made = await Promise.all(Array.from({ length: PURCHASES }, (_, n) => sign(n, round)));
          purchases.push(...made);
          const attacking = Promise.all(made.map(attack));
          if (roll() < 0.8) {
            await pause(roll() * 700);
            await served.kill();
            await attacking;
            await start();
            await Promise.all(made.map(attack));
          }
          await attacking;
          expect(served.child.exitCode, stderr).to.equal(null);
        }
        facilitator.intervene(undefined);
        rpc.intervene(undefined);
        final = true;
        const fates = new Map<string, string>();
        for (const purchase of purchases) fates.set(purchase.id, await finish(purchase));
        const landed = await landings();
        for (const { id, answers, calls } of purchases) {
          const times = landed.get(id) ?? 0;
          const sold = [...answers].map(
            ([call, bodies]) => `${calls.indexOf(call)}: ${[...bodies].join(' | ')}`,
          );
          const about = `${id} ${fates.get(id)}, landed ${times} times, answered ${sold.join('; ').slice(0, 500)}`;
          expect(times, about).to.be.at.most(1);
          expect(answers.size, about).to.equal(times);
          for (const bodies of answers.values()) expect(bodies.size, about).to.equal(1);
          expect(fates.get(id), about).to.be.oneOf(times ? ['answered'] : ['refused', 'pending']);
        }
        expect([hung, stderr]).to.deep.equal([0, '']);
      });
    },
  );
