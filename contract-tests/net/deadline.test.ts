import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ESLint } from 'eslint';

const SOURCES = join(dirname(fileURLToPath(import.meta.url)), '../../src');
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Runs a program in a process that can trigger garbage collection: `collect()` does so while it waits. */
async function run(program: string): Promise<string> {
  const prelude = `const pause = ms => new Promise(resolve => setTimeout(resolve, ms));
    const collect = async (ms = 400) => { for (const end = Date.now() + ms; Date.now() < end; await pause(20)) gc(); };`;
  const args = ['--expose-gc', '--input-type=module', '-e', prelude + program];
  return (await promisify(execFile)(process.execPath, args, { timeout: 30_000 })).stdout.trim();
}

const imported = (file: string): string => JSON.stringify(join(SOURCES, file));

describe('A deadline', function () {
  this.timeout(60_000);

  it('fires even if nothing else refers to its signal and garbage is collected in the meantime', async () => {
    const said = await run(`
      import { withAbortAfter } from ${imported('net/deadline.js')};
      const stop = new AbortController();
      let fired = 0;
      for (let n = 0; n < 200; n++)
        void withAbortAfter(100, stop.signal, signal => new Promise((_, reject) => {
          const seen = new WeakRef(signal);
          const poll = () => seen.deref()?.aborted ? reject(new Error('late')) : setTimeout(poll, 10);
          poll();
        })).catch(() => fired++);
      await collect();
      console.log(fired);
      process.exit();
    `);
    expect(said).to.equal('200');
  });

  it("ends the reconciler's read from a chain that hangs, even if garbage is collected in the meantime", async () => {
    const said = await run(`
      import { Reconciler } from ${imported('sale/reconciler.js')};
      import { SolanaRail } from ${imported('rails/solana/solana-rail.js')};
      const rows = Array.from({ length: 8 }, (_, n) => ({
        id: String(n), payer: 'payer', state: 'released', claim: 1, settledAt: null, createdAt: 0, position: 0, after: 0,
      }));
      let left = 0, ended = 0;
      const ledger = {
        openFates: async () => rows,
        adopt: async id => rows[Number(id)],
        extendLease: async () => void left++,
      };
      const chain = {
        // Checks its signal now and then, as a page-by-page search does.
        latestBlockhash: (_finality, signal) => new Promise((_, reject) => {
          const seen = new WeakRef(signal);
          signal = undefined;
          const poll = () => seen.deref()?.aborted ? reject(new Error('late')) : setTimeout(poll, 10);
          poll();
        }),
      };
      const log = { info() {}, warn() { ended++; }, error() {} };
      const rail = new SolanaRail({ chain, terms: {}, receivers: [] });
      const reconciler = new Reconciler({ ledger, rail, log, timing: { look: 100 } });
      await Promise.race([reconciler.reconcile(), collect(2000)]);
      console.log(left, ended);
      process.exit();
    `);
    expect(said).to.equal('8 1');
  });

  it('made with AbortSignal.any or AbortSignal.timeout is rejected by the linter', async () => {
    const eslint = new ESLint({ cwd: ROOT });
    // The linter checks JavaScript without the project's types.
    const filePath = join(ROOT, 'src/any.js');
    const lint = async (text: string): Promise<string[]> => {
      const [result] = await eslint.lintText(text, { filePath });
      return result!.messages.map(({ ruleId }) => String(ruleId)).filter(rule => rule !== 'no-undef');
    };
    const never = 'export const a = b => AbortSignal.any([b, AbortSignal.timeout(5)]);\n';
    expect(await lint(never)).to.deep.equal(['no-restricted-syntax']);
    expect(await lint('export const a = b => AbortSignal.any([b]);\n')).to.deep.equal([]);
  });
});
