import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { getAssociatedTokenAddressSync } from '@solana/spl-token';
import { PublicKey } from '@solana/web3.js';
import { expect } from 'chai';
import Database from 'libsql';
import { openLedgerReader } from '../../src/ledger/store.js';
import { BRAND_PATH, BRAND_PRICE, PANEL_TOKEN, Respondent, signBrand } from './respondent.js';
import { buyer, connection, folder, proxied, sandbox, serve, type Served } from './server-process.js';
import { call, post, receiptOf, type Answer } from './world.js';

const ANSWERED_MS = 100_000;

/** A brandFeedback order for two replies. The servers that work on it are killed and restarted on one ledger. */
export type KilledSale = {
  id: string;
  /** How many times a server was killed. */
  kills: number;
  /** Kills the running server. @returns true, which makes the calling stand-in cut the connection */
  kill(): true;
  /** Resolves when the running server has been killed. */
  killed(): Promise<void>;
  start(env?: Record<string, string>): Promise<void>;
  /** Stops the server, and starts one with other settings. */
  restart(env: Record<string, string>): Promise<void>;
  buy(): Promise<void>;
  /** What the killed server had stored about its marketplace. */
  intent(): string;
  /** Waits until brandFeedback's entry in the health report matches `words`. */
  health(words: RegExp): Promise<string>;
  /** Two respondents answer on the panel. */
  answerOnPanel(): Promise<void>;
  /**
   * Sends the same payment again until it is answered, and checks the promises about it. @param paidOut the amount that
   * marketplaces may have got from the buyer's wallet, which pays them, too
   */
  finish(paidOut: bigint): Promise<Answer>;
};

let sales = 0;

async function usdcOf(owner: string): Promise<bigint> {
  const account = getAssociatedTokenAddressSync(
    new PublicKey(sandbox.info.usdcMint),
    new PublicKey(owner),
    true,
  );
  return BigInt((await connection.getTokenAccountBalance(account)).value.amount);
}

/** @param settings those of the first server, and of every later one that is started without its own */
export async function killedSale(settings: Record<string, string>): Promise<KilledSale> {
  const name = `sale-${++sales}`;
  const file = join(folder, name, 'ledger.db');
  const had = await usdcOf(buyer.publicKey.toBase58());
  const body = { brand: 'Harbour Coffee', question: `What of cup number ${sales}?`, n: 2 };
  let served: Served;
  let headers: Record<string, string> = {};
  let first: Promise<unknown> | undefined;
  const send = (wait: number): Promise<Answer> =>
    post(served.url + BRAND_PATH, body, { ...headers, Prefer: `wait=${wait}` });

  const sale: KilledSale = {
    id: '',
    kills: 0,
    kill() {
      served.child.kill('SIGKILL');
      sale.kills++;
      return true;
    },
    async killed() {
      const { child } = served;
      if (child.exitCode === null && child.signalCode === null)
        await once(child, 'exit', { signal: AbortSignal.timeout(ANSWERED_MS) });
      expect(child.signalCode).to.equal('SIGKILL');
      await first;
    },
    async start(env = settings) {
      served = await serve(proxied(name, { PANEL_TOKEN, HOLD_SECONDS: '1', ...env }));
    },
    async restart(env) {
      await served.kill();
      await first;
      await sale.start(env);
    },
    async buy() {
      const signed = await signBrand(served.url, buyer.secretKey);
      ({ headers } = signed);
      sale.id = signed.id;
      first = send(30).catch(() => undefined);
    },
    intent() {
      const database = new Database(file, { readonly: true });
      try {
        const rows = database.prepare('select payment, intent from brand_feedback_intents').all() as {
          payment: Buffer;
          intent: string;
        }[];
        return rows.find(({ payment }) => Buffer.from(payment).toString('hex') === sale.id)?.intent ?? '';
      } finally {
        database.close();
      }
    },
    async health(words) {
      for (const end = Date.now() + ANSWERED_MS; Date.now() < end; await pause(100)) {
        const said = (await call(`${served.url}/brand/health`)).body.toString();
        if (words.test(said)) return said;
      }
      throw new Error('the health never said so');
    },
    async answerOnPanel() {
      for (const number of [1, 2]) {
        const person = new Respondent(served.url);
        await person.signIn();
        await person.answer(sale.id, `I am number ${number}.`);
      }
    },
    async finish(paidOut) {
      let answer = await send(1);
      for (const end = Date.now() + ANSWERED_MS; answer.status === 503 && Date.now() < end;) {
        await pause(100);
        answer = await send(1);
      }
      expect(answer.status, answer.body.toString()).to.equal(200);
      expect(receiptOf(answer)).to.include({ success: true });
      expect((await send(1)).body.equals(answer.body), 'and again, byte for byte').to.equal(true);
      expect(had - (await usdcOf(buyer.publicKey.toBase58()))).to.equal(BRAND_PRICE + paidOut);
      await served.kill();
      const reader = await openLedgerReader({ url: `file:${file}` });
      const rows = await reader.list({ operation: 'brandFeedback' });
      await reader.close();
      expect(rows.map(({ id, state }) => [id, state])).to.deep.equal([[sale.id, 'delivered']]);
      return answer;
    },
  };
  await sale.start();
  return sale;
}

export const textsOf = (answer: Answer): string[] =>
  (answer.json()['responses'] as { text: string }[]).map(({ text }) => text);
