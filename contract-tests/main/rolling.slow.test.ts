import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { messageOf } from '../../src/ledger/fault.js';
import { openLedgerReader } from '../../src/ledger/store.js';
import { SCHEMA_VERSION } from '../../src/ledger/migrations.js';
import { copyRepository } from '../support/copied-repository.js';
import { craftPayment, v2Header } from '../support/craft.js';
import { freePort } from '../support/free-port.js';
import { onEachEngine, type LedgerPlace, databaseSettings } from '../support/ledger-places.js';
import {
  noProxy,
  openCaddyOver,
  openHaproxyOver,
  type Beside,
  type Proxy,
  type ProxyName,
} from '../support/proxies.js';
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

const BUYERS = 3;
const ASKING = 3;
/** The folder with the build of an earlier release (set by make rolling), which this version then replaces. */
const EARLIER = process.env['EARLIER_RELEASE'];

const PROXIES = { haproxy: openHaproxyOver, caddy: openCaddyOver };

/** A command that runs a build other than this one. */
const running = (folder: string): string[] => [
  'sh',
  '-c',
  `exec '${process.execPath}' '${folder}/dist/src/main.js'`,
];

/** This program, in a folder of its own, with an additional migration that only adds a column. */
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

onEachEngine(
  'a new token, given to one server after the other, fails no call and cuts no connection',
  (make, engine) => {
    if (engine === 'PostgreSQL') changingTokens(make);
  },
);

/** Buyers, and others who only ask for the price, until `end`. */
class Load {
  readonly statuses = new Map<string, number>();
  /** All answers other than a price, a sold answer, or a 503 with Retry-After. */
  readonly failed: string[] = [];
  readonly paid = new Set<string>();
  readonly #url: string;
  readonly #callers: Promise<void>[];
  #stopped = false;
  #calls = 0;

  constructor(url: string) {
    this.#url = url;
    this.#callers = [
      ...Array.from({ length: BUYERS }, () => this.#repeat(() => this.#buy())),
      ...Array.from({ length: ASKING }, () => this.#repeat(() => this.#send({ text: TEXT }, {}))),
    ];
  }

  async enough(more: number): Promise<void> {
    for (const before = this.paid.size; this.paid.size < before + more;) await sleep(100);
  }

  async end(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#callers);
  }

  async #repeat(act: () => Promise<unknown>): Promise<void> {
    // The pause leaves processor time for servers that are starting.
    for (; !this.#stopped; await sleep(20))
      await act().catch((error: unknown) => this.failed.push(messageOf((error as Error).cause ?? error)));
  }

  async #buy(): Promise<void> {
    const offer = await offerOf(this.#url);
    const { transaction, messageBytes } = craftPayment(recipeOf(offer, buyer));
    const body = { text: `${TEXT} This is call number ${++this.#calls}.` };
    const headers = { 'PAYMENT-SIGNATURE': v2Header(offer, transaction) };
    let answer = await this.#send(body, headers, 200);
    for (let tries = 0; answer.status === 503 && tries < 40; tries += 1) {
      await sleep(500);
      answer = await this.#send(body, headers, 200);
    }
    if (answer.status === 200) this.paid.add(sha256(messageBytes));
  }

  async #send(body: object, headers: Environment, wanted = 402): Promise<Answer> {
    const answer = await post(`${this.#url}/v1/summarize`, body, headers);
    this.statuses.set(String(answer.status), (this.statuses.get(String(answer.status)) ?? 0) + 1);
    const announced = answer.status === 503 && answer.headers.get('retry-after') !== null;
    if (answer.status !== wanted && !announced)
      this.failed.push(`${answer.status} ${answer.body.toString().slice(0, 200)}`);
    return answer;
  }
}

/** The server that sent an answer records it as delivered, at the latest when it starts again. */
async function expectAllDelivered(place: LedgerPlace, { paid }: Load): Promise<void> {
  const reader = await openLedgerReader({ url: place.url });
  const counts = async (): Promise<number[]> => {
    const { delivered, owed, settling } = await reader.counts();
    return [delivered.payments, owed.payments, settling.payments];
  };
  for (const end = Date.now() + 30_000; (await counts())[2] !== 0 && Date.now() < end;) await sleep(200);
  expect(await counts(), 'delivered, owed, settling').to.deep.equal([paid.size, 0, 0]);
  await reader.close();
}

/** The admin listener's answer to a token: 303 if it opens the page. */
async function signIn(env: Environment, token: string): Promise<number> {
  const body = new URLSearchParams({ token });
  const { status } = await fetch(`http://${env['ADMIN_HOST']}:${env['ADMIN_PORT']}/login`, {
    method: 'POST',
    body,
    redirect: 'manual',
  });
  return status;
}

/** Two servers, each at an address of its own. */
async function twoServers(
  name: string,
  more: Environment,
): Promise<{ beside: Beside; envs: [Environment, Environment] }> {
  const [port, ready] = [await freePort(), await freePort()];
  const [one, two] = ['127.0.0.1', '127.0.0.2'];
  const at = (host: string): Environment =>
    proxied(`${name}-${host}`, {
      HOST: host,
      ADMIN_HOST: host,
      PORT: String(port),
      ADMIN_PORT: String(ready),
      ...more,
    });
  return { beside: { hosts: [one, two], port, ready }, envs: [at(one), at(two)] };
}

function changingTokens(make: () => Promise<LedgerPlace>): void {
  describe('under load', function () {
    this.timeout(300_000);
    allOnOneChain();

    for (const [name, open] of Object.entries(PROXIES))
      it(`through ${name}`, async function () {
        if (noProxy(name as ProxyName)) return this.skip();
        const file = join(folder, `token-of-${name}`);
        const tokens = ['the-token-of-before', 'the-token-from-now-on'] as const;
        writeFileSync(file, tokens[0]);
        const place = await make();
        const own = { ...databaseSettings(place), ADMIN_TOKEN_FILE: file };
        const { beside, envs } = await twoServers(name, own);
        const servers = await Promise.all(envs.map(each => serve(each)));
        const front = await open(beside);
        const load = new Load(front.url);
        try {
          await load.enough(5);
          writeFileSync(file, tokens[1]);
          for (const [index, each] of envs.entries()) {
            expect(await signIn(each, tokens[0]), 'until it is restarted').to.equal(303);
            servers[index]?.child.kill('SIGTERM');
            expect(await servers[index]?.ended).to.include({ code: 0 });
            servers[index] = await serve(each);
            expect(await signIn(each, tokens[0])).to.equal(401);
            expect(await signIn(each, tokens[1])).to.equal(303);
            await load.enough(5);
          }
        } finally {
          await load.end();
          await front.close();
        }
        expect(load.failed).to.deep.equal([]);
        expect(load.statuses.get('402') ?? 0).to.be.above(20);
        await expectAllDelivered(place, load);
        for (const each of servers) await each.kill();
        await place.remove();
      });
  });
}

function rolling(make: () => Promise<LedgerPlace>): void {
  const missing = noProxy('haproxy');
  const suite = missing === undefined ? describe : describe.skip;
  suite(`behind HAProxy ${missing ?? ''}`, function () {
    this.timeout(300_000);
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

    it('fails no call: each is answered, immediately or after a 503 with Retry-After', async () => {
      const own = { ...databaseSettings(place) };
      const { beside, envs } = await twoServers('rolling', own);
      const old: Served[] = [];
      const earlier = EARLIER === undefined ? [] : running(EARLIER);
      const later = EARLIER === undefined ? running(next) : [];
      for (const each of envs) old.push(await serve(each, () => {}, earlier));
      proxy = await openHaproxyOver(beside);
      const load = new Load(proxy.url);
      const started: Served[] = [];
      try {
        await load.enough(10);
        for (const [index, each] of envs.entries()) {
          old[index]?.child.kill('SIGTERM');
          expect(await old[index]?.ended).to.include({ code: 0 });
          started.push(await serve(each, () => {}, later));
          // Both versions are running.
          await load.enough(15);
        }
      } finally {
        await load.end();
      }
      if (EARLIER !== undefined)
        process.stdout.write(`answers by status: ${JSON.stringify([...load.statuses])}\n`);
      expect(load.failed).to.deep.equal([]);
      await expectAllDelivered(place, load);
      // The earlier version starts again, because it can run without the added column.
      await started[0]?.kill();
      await (await serve({ ...envs[0], STATE_DIR: join(folder, 'back') }, () => {}, earlier)).kill();
      await started[1]?.kill();
    });

    it('explains why a program that is too old for the ledger does not start', async () => {
      const file = join(next, 'dist/src/ledger/migrations.js');
      const text = readFileSync(file, 'utf8');
      writeFileSync(
        file,
        text
          .replace(/OLDEST_BESIDE = \d+/, `OLDEST_BESIDE = ${SCHEMA_VERSION + 2}`)
          .replace(/\n\];/, "\n    () => ['alter table payments add column of_a_later_version text'],\n];"),
      );
      const env = proxied('later', { ...databaseSettings(place) });
      await (await serve(env, () => {}, running(next))).kill();
      const refused = await refusedStart(env, EARLIER === undefined ? [] : running(EARLIER));
      expect(refused).to.match(
        /schema version \d+; this program supports versions up to.*Run the newer program/,
      );
    });
  });
}
