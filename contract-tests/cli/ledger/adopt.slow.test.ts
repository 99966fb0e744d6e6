import { execFile } from 'node:child_process';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { getAssociatedTokenAddressSync } from '@solana/spl-token';
import { PublicKey } from '@solana/web3.js';
import { expect } from 'chai';
import { craftPayment, v2Header } from '../../support/craft.js';
import { until } from '../../support/faults.js';
import { jsonOf, ledgerCommand } from '../../support/ledger-command.js';
import { onEachEngine, type LedgerPlace } from '../../support/ledger-places.js';
import {
  allOnOneChain,
  buyer,
  connection,
  facilitator,
  folder,
  proxied,
  refusedStart,
  sandbox,
  serve,
  type Environment,
} from '../../support/server-process.js';
import { priceOf } from '../../support/sold.js';
import { sha256 } from '../../support/test-chain.js';
import { offerOf, post, recipeOf, TEXT, type Answer } from '../../support/world.js';

const run = promisify(execFile);
const PRICE = priceOf('summarize');

type Sale = { id: string; headers: Environment; body: { text: string } };
type Adopted = {
  complete: boolean;
  adopted: { payment: string; usdc: string; payer: string }[];
  left: object[];
};
type Verdict = {
  slot: number;
  settled: number;
  differences: { kind: string; payer: string; usdc: string; transaction: string; at: string }[];
};

/** How a ledger is backed up, lost and restored. */
type Losing = { backUp(): Promise<void>; lose(): Promise<void>; restore(): Promise<void> };

onEachEngine('a ledger that was lost, and restored from a backup', lostAndRestored);

function lostAndRestored(make: () => Promise<LedgerPlace>, engine: string): void {
  describe('lacks the sales since its backup', function () {
    this.timeout(180_000);
    allOnOneChain({ slotMs: 100 });
    let place: LedgerPlace;
    let env: Environment;
    let losing: Losing;
    let calls = 0;
    const answers = new Map<string, Answer>();

    before(async () => {
      place = await make();
      const name = engine.toLowerCase();
      await mkdir(join(folder, name), { recursive: true });
      const url = engine === 'SQLite' ? `file:${join(folder, name, 'ledger.db')}` : place.url;
      env = proxied(name, { DATABASE_URL: url });
      losing = engine === 'SQLite' ? inFile(env) : inPostgres(url, join(folder, 'ledger.sql'));
    });
    after(() => place.remove());

    async function sign(url: string, count: number): Promise<Sale[]> {
      const offer = await offerOf(url);
      return Array.from({ length: count }, () => {
        const { transaction, messageBytes } = craftPayment(recipeOf(offer, buyer));
        const body = { text: `${TEXT} This is call number ${++calls}.` };
        return {
          id: sha256(messageBytes),
          headers: { 'PAYMENT-SIGNATURE': v2Header(offer, transaction) },
          body,
        };
      });
    }

    async function redeem(url: string, sale: Sale): Promise<Answer | undefined> {
      const answer = await post(`${url}/v1/summarize`, sale.body, sale.headers).catch(() => undefined);
      if (answer?.status === 200) answers.set(sale.id, answer);
      return answer;
    }

    const till = (): PublicKey =>
      getAssociatedTokenAddressSync(
        new PublicKey(sandbox.info.usdcMint),
        new PublicKey(sandbox.info.payTo),
        true,
      );

    /** How many times each payment has landed, once all are final. */
    async function landings(): Promise<Map<string, number>> {
      const counts = new Map<string, number>();
      const options = { maxSupportedTransactionVersion: 0, commitment: 'finalized' } as const;
      let listed = await connection.getSignaturesForAddress(till(), {}, 'confirmed');
      await until('all is final', async () => {
        listed = await connection.getSignaturesForAddress(till(), {}, 'confirmed');
        const final = await connection.getSignaturesForAddress(till(), {}, 'finalized');
        return listed.length === final.length;
      });
      for (const { signature } of listed.filter(({ err }) => !err)) {
        const landed = await connection.getTransaction(signature, options);
        if (!landed) throw new Error('it was final');
        const id = sha256(landed.transaction.message.serialize());
        counts.set(id, (counts.get(id) ?? 0) + 1);
      }
      return counts;
    }

    it('until adopt takes them in; then a buyer who sends again is answered without a second transfer, and the books equal the chain', async () => {
      const first = await serve(env);
      const kept = await sign(first.url, 5);
      for (const sale of kept) expect((await redeem(first.url, sale))?.status).to.equal(200);
      await losing.backUp();
      const lost = await sign(first.url, 25);
      let settled = 0;
      facilitator.intervene(async ({ path, forward, respond }) => {
        const { status, body } = await forward();
        // The server is killed before it learns that the last of these payments are settled.
        if (path === '/settle' && ++settled === 15) first.child.kill('SIGKILL');
        respond(status, body);
      });
      await Promise.all(lost.map(sale => redeem(first.url, sale)));
      await first.ended;
      facilitator.intervene(undefined);
      await losing.lose();
      await losing.restore();

      const landed = await landings();
      const missing = lost.filter(({ id }) => landed.has(id));
      expect(missing).to.have.lengthOf.at.least(15);
      if (engine === 'SQLite') expect(await refusedStart(env)).to.include('adopt');

      const seen = await ledgerCommand(env, 'verify', '--json');
      expect(seen.status, seen.stderr).to.equal(1);
      const verdict = JSON.parse(seen.stdout) as Verdict;
      const unknown = verdict.differences.filter(({ kind }) => kind === 'unknown');
      expect(unknown).to.have.length(missing.length);
      for (const each of unknown)
        expect(each).to.include({ payer: buyer.publicKey.toBase58(), usdc: '0.01' });

      const [one, other] = await Promise.all([0, 1].map(() => jsonOf<Adopted>(env, 'adopt')));
      const adopted = [...one!.adopted, ...other!.adopted].map(({ payment }) => payment);
      expect(adopted).to.have.members(missing.map(({ id }) => id));
      expect((await jsonOf<Adopted>(env, 'adopt')).adopted, 'once more').to.deep.equal([]);

      const again = await serve(env);
      for (const sale of [...missing, ...missing]) {
        const answer = await redeem(again.url, sale);
        expect(answer?.status, answer?.body.toString()).to.equal(200);
      }
      for (const sale of kept) expect((await redeem(again.url, sale))?.status).to.equal(200);
      // A payment that was signed but has not landed buys its call now, or is refused because its blockhash is too old.
      for (const sale of lost.filter(({ id }) => !landed.has(id)))
        expect([200, 402]).to.include((await redeem(again.url, sale))?.status);
      const now = await landings();
      for (const [id, times] of now) expect(times, id).to.equal(1);
      expect([...now.keys()].toSorted(), 'every answer is paid').to.deep.equal(
        [...answers.keys()].toSorted(),
      );
      const books = await jsonOf<Verdict>(env, 'verify');
      expect(books).to.deep.include({ settled: now.size, differences: [] });
      const balance = await connection.getTokenAccountBalance(till());
      expect(BigInt(balance.value.amount)).to.equal(BigInt(now.size) * PRICE);
      await again.kill();
    });
  });
}

function inFile(env: Environment): Losing {
  const stateDir = env['STATE_DIR'] ?? '';
  const copy = join(stateDir, '..', 'copy.db');
  const command = async (...args: string[]): Promise<void> => {
    const { status, stderr } = await ledgerCommand(env, ...args);
    expect(status, stderr).to.equal(0);
  };
  return {
    backUp: () => command('backup', copy),
    lose: async () => {
      await rm(stateDir, { recursive: true });
      await mkdir(stateDir);
    },
    restore: () => command('restore', copy),
  };
}

/** pg_dump and psql, limited to the schema of this test. */
function inPostgres(url: string, file: string): Losing {
  const schema = /search_path(?:=|%3D)(\w+)/.exec(url)?.[1] ?? '';
  const base = url.split('?')[0] ?? url;
  const psql = (...args: string[]) => run('psql', ['-q', '-v', 'ON_ERROR_STOP=1', '-d', base, ...args]);
  return {
    backUp: async () => void (await run('pg_dump', ['-n', schema, '-f', file, '-d', base])),
    lose: async () => void (await psql('-c', `drop schema ${schema} cascade`)),
    restore: async () => void (await psql('-f', file)),
  };
}
