import process from 'node:process';
import { before } from './before.js';
import { ledger, operations } from './growth.js';
import { memory, starts } from './life.js';
import { PREPARED } from './measure.js';
import { observation } from './observation.js';
import { mcp } from './over-mcp.js';
import { prepareSignatures } from './payments.js';
import { cleanRuns, Partner } from './processes.js';
import { Report } from './report.js';
import { PRICE } from './terms.js';
import { postgres } from './postgres.js';
import { asks, cores, throughput } from './throughput.js';
import { latency, speech, summaries } from './work.js';

const SCENARIOS = {
  throughput,
  cores,
  latency,
  asks,
  mcp,
  summaries,
  speech,
  operations,
  ledger,
  starts,
  memory,
  postgres,
  observation,
};

const quick = process.env.QUICK === '1';
const chosen = process.env.ONLY?.split(',') ?? Object.keys(SCENARIOS);
/** Only where they are named: they need something that is not here. */
const NAMED = { before };
const report = new Report(quick);
cleanRuns();
process.stdout.write('signing the payments beforehand\n');
await prepareSignatures(PRICE, PREPARED);
const stubs = new Partner('stubs.js');
const load = new Partner('load.js');
const asked = async () => (await stubs.ask({})).asked;
const bench = { stubs: await stubs.hears(), load, report, quick, asked };
const began = Date.now();
for (const name of chosen) {
  const scenario = SCENARIOS[name] ?? NAMED[name];
  if (!scenario) throw new Error(`there is no scenario ${name}, only ${Object.keys(SCENARIOS).join(', ')}`);
  await scenario(bench);
}
stubs.end();
load.end();
process.stdout.write(`measured for ${Math.round((Date.now() - began) / 1000)} s; see bench/results/\n`);
const fine = report.finish();
process.exitCode = fine ? 0 : 1;
