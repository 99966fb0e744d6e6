import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { openLedgerReader } from '../../src/ledger/store.js';
import { SCHEMA_VERSION } from '../../src/ledger/migrations.js';
import { copyRepository } from '../support/copied-repository.js';
import { craftPayment, v2Header } from '../support/craft.js';
import { freePort } from '../support/free-port.js';
import { onEachEngine, type LedgerPlace } from '../support/ledger-places.js';
import { noProxy, openHaproxyOver, type Proxy } from '../support/proxies.js';
import {
  allOnOneChain,
  buyer,
  folder,
  proxied,
  refusedStart,
  serve,
  type Environment,
  type Served,
} from '../support/server-process.js';
import { sha256 } from '../support/test-chain.js';
import { offerOf, post, recipeOf, TEXT, type Answer } from '../support/world.js';

const CALLERS = 3;
/** The folder of an earlier release that was built there (make rolling): it is replaced by this program, then. */
const EARLIER = process.env['EARLIER_RELEASE'];

/** A command that runs another build than this one. */
const running = (folder: string): string[] => [
  'sh',
  '-c',
  `exec '${process.execPath}' '${folder}/dist/src/main.js'`,
];

/** This program with one more migration, which only adds, in a folder of its own. */
function nextVersion(): string {
  const copy = copyRepository('coinslot-next-');
  const file = join(copy, 'dist/src/ledger/migrations.js');
  const text = readFileSync(file, 'utf8');
  const more = "releasedToWatch,\n    () => ['alter table payments add column of_the_next_version text'],";
  const last = /\n {4}(\w+),\n\];/.exec(text)?.[1] ?? '';
  const changed = text.replace(`${last},\n];`, `${more.replace('releasedToWatch', last)}\n];`);
  expect(changed, 'the list of migrations').to.not.equal(text);
  writeFileSync(file, changed);
  return copy;
}

onEachEngine('an upgrade, one server after the other,', (make, engine) => {
  if (engine === 'PostgreSQL') rolling(make);
});

function rolling(make: () => Promise<LedgerPlace>): void {
  const missing = noProxy('haproxy');
  const suite = missing === undefined ? describe : describe.skip;
  suite(`behind HAProxy ${missing ?? ''}`, function () {
    this.timeout(180_000);
    allOnOneChain();
    let place: LedgerPlace;
    let next: string;
    let proxy: Proxy | undefined;

    before(async () => {
      place = await make();
      next = nextVersion();
    });
    after(async () => {
      await proxy?.close();
      await place.remove();
      if (existsSync(next)) await rm(next, { recursive: true });
    });

    it('loses no call: each is answered, or sent away with 503 and Retry-After and answered then', async () => {
      const ports = await Promise.all([1, 2, 3, 4].map(freePort));
      const [one = 0, oneAdmin = 0, two = 0, twoAdmin = 0] = ports;
      const env = (name: string, port: number, admin: number): Environment =>
        proxied(name, { DATABASE_URL: place.url, PORT: String(port), ADMIN_PORT: String(admin) });
      const envs = [env('one', one, oneAdmin), env('two', two, twoAdmin)] as const;
      const old: Served[] = [];
      const earlier = EARLIER === undefined ? [] : running(EARLIER);
      const later = EARLIER === undefined ? running(next) : [];
      for (const each of envs) old.push(await serve(each, () => {}, earlier));
      proxy = await openHaproxyOver([
        { port: one, ready: oneAdmin },
        { port: two, ready: twoAdmin },
      ]);
      const { url } = proxy;

      const statuses = new Map<string, number>();
      const unannounced: string[] = [];
      const paid = new Set<string>();
      let stopped = false;
      let calls = 0;
      const send = async (body: object, headers: Environment): Promise<Answer> => {
        const answer = await post(`${url}/v1/summarize`, body, headers);
        statuses.set(String(answer.status), (statuses.get(String(answer.status)) ?? 0) + 1);
        const announced = answer.status === 503 && answer.headers.get('retry-after') !== null;
        if (answer.status !== 200 && !announced)
          unannounced.push(`${answer.status} ${answer.body.toString().slice(0, 200)}`);
        return answer;
      };
      const caller = async (): Promise<void> => {
        while (!stopped) {
          const offer = await offerOf(url);
          const { transaction, messageBytes } = craftPayment(recipeOf(offer, buyer));
          const body = { text: `${TEXT} This is call number ${++calls}.` };
          const headers = { 'PAYMENT-SIGNATURE': v2Header(offer, transaction) };
          let answer = await send(body, headers);
          for (let tries = 0; answer.status === 503 && tries < 40; tries += 1) {
            await sleep(500);
            answer = await send(body, headers);
          }
          if (answer.status === 200) paid.add(sha256(messageBytes));
        }
      };
      const callers = Array.from({ length: CALLERS }, caller);
      const enough = async (more: number): Promise<void> => {
        for (const before = paid.size; paid.size < before + more;) await sleep(100);
      };
      const started: Served[] = [];
      try {
        await enough(10);
        for (const [index, each] of envs.entries()) {
          old[index]?.child.kill('SIGTERM');
          expect(await old[index]?.ended).to.include({ code: 0 });
          started.push(await serve(each, () => {}, later));
          // Old and new side by side.
          await enough(15);
        }
      } finally {
        stopped = true;
      }
      await Promise.all(callers);
      if (EARLIER !== undefined)
        process.stdout.write(`answers by status: ${JSON.stringify([...statuses])}\n`);
      expect(unannounced).to.deep.equal([]);
      const reader = await openLedgerReader({ url: place.url });
      const { delivered, owed, settling } = await reader.counts();
      await reader.close();
      expect({
        delivered: delivered.payments,
        owed: owed.payments,
        settling: settling.payments,
      }).to.deep.equal({
        delivered: paid.size,
        owed: 0,
        settling: 0,
      });
      // Back to the earlier version: it can do without what is new, so it starts.
      await started[0]?.kill();
      await (await serve({ ...envs[0], STATE_DIR: join(folder, 'back') }, () => {}, earlier)).kill();
    });

    it('says in words that a program which is too old for the ledger must not start', async () => {
      const file = join(next, 'dist/src/ledger/migrations.js');
      const text = readFileSync(file, 'utf8');
      writeFileSync(
        file,
        text
          .replace(/OLDEST_BESIDE = \d+/, `OLDEST_BESIDE = ${SCHEMA_VERSION + 2}`)
          .replace(/\n\];/, "\n    () => ['alter table payments add column of_a_later_version text'],\n];"),
      );
      const env = proxied('later', { DATABASE_URL: place.url });
      await (await serve(env, () => {}, running(next))).kill();
      const refused = await refusedStart(env, EARLIER === undefined ? [] : running(EARLIER));
      expect(refused).to.match(
        /schema version \d+; this program supports versions up to.*Run the newer program/,
      );
    });
  });
}
