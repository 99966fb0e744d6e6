import { randomInt } from 'node:crypto';
import type { Keypair } from '@solana/web3.js';
import { repeated } from '../support/extent.js';
import { fundedKey } from '../support/own-facilitator.js';
import { SeededRandom } from '../support/seeded-random.js';
import { PLACES, sqlitePlace } from '../support/ledger-places.js';
import { Schedule, type Totals } from '../support/schedule.js';
import { memoryLedgerPlace, TestChain } from '../support/test-chain.js';

const REPLAYED = process.env['FAULT_SEED'];
/** `embedded` or `http`; by default the seed decides. */
const FACILITATOR = process.env['FAULT_FACILITATOR'];
const ASKED_FOR = process.env['FAULT_SCHEDULES'];
const SCHEDULES = Number(ASKED_FOR ?? (REPLAYED === undefined ? repeated(8, 3) : 1));

for (const { name, make } of PLACES) {
  const suite = make ? describe : describe.skip;
  suite(
    `promise 10: whatever fails, the money on the chain equals the settled rows, and every settled row is delivered or owed (${name})`,
    function () {
      this.timeout(300_000);
      let testChain: TestChain;
      let own: Keypair;
      const done: Totals[] = [];
      const isEmbedded = (random: SeededRandom): boolean =>
        FACILITATOR === undefined ? random.roll('embedded') < 0.5 : FACILITATOR === 'embedded';
      before(async () => {
        testChain = await TestChain.open();
        await testChain.addFeePayer();
        own = await fundedKey(testChain, 20_000_000_000);
      });
      after(() => testChain.close());
      after(() => {
        if (ASKED_FOR !== undefined) process.stdout.write(`    ${summaryOf(done)}\n`);
      });

      const sideBySide = name === 'PostgreSQL' ? 2 : 3;
      const first = REPLAYED === undefined ? randomInt(2 ** 31) : Number(REPLAYED);
      const seeds = Array.from({ length: SCHEDULES }, (_, n) => first + n);
      for (let n = 0; n < seeds.length; n += sideBySide) {
        const some = seeds.slice(n, n + sideBySide);
        it(`schedules FAULT_SEED=${some.join(', FAULT_SEED=')}`, async () => {
          const servers = name === 'PostgreSQL' ? 3 : 1;
          const runs = some.map(async seed => {
            const place = await (make === sqlitePlace ? memoryLedgerPlace : make!)();
            const random = new SeededRandom(seed);
            const facilitator = isEmbedded(random) ? own : undefined;
            done.push(await new Schedule(testChain, place, servers, random, facilitator).run());
          });
          const failures = (await Promise.allSettled(runs)).filter(run => run.status === 'rejected');
          const reasons = failures.map(({ reason }) => (reason as Error).message);
          if (reasons.length > 0) throw new Error(reasons.join('\n'));
        });
      }
    },
  );
}

function summaryOf(done: Totals[]): string {
  const sum = (name: keyof Totals): number => done.reduce((total, each) => total + each[name], 0);
  return `${done.length} of ${SCHEDULES} schedules found no violation: ${sum('purchases')} purchases, ${sum('answered')} answered, ${sum('landed')} payments landed, ${sum('deaths')} servers killed`;
}
