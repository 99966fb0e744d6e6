import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { missingPooler, startPooler } from '../support/pooler.js';

/** Runs a command with `TEST_POOLER_URL` set to a PgBouncer in front of `TEST_DATABASE_URL`, which the servers of the tests then use. */
const base = process.env['TEST_DATABASE_URL'];
const [command, ...args] = process.argv.slice(2);
const missing = base === undefined ? 'set TEST_DATABASE_URL=postgres://…' : missingPooler;
if (base === undefined || missing !== undefined || command === undefined) {
  process.stderr.write(`The tests behind PgBouncer can't run: ${missing ?? 'name a command'}.\n`);
  process.exit(1);
}
const pooler = await startPooler(base);
const child = spawn(command, args, {
  stdio: 'inherit',
  env: { ...process.env, TEST_POOLER_URL: pooler.url },
});
const [code] = (await once(child, 'exit')) as [number | null];
await pooler.close();
process.exitCode = code ?? 1;
