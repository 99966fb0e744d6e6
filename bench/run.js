import process from 'node:process';
import { before } from './before.js';
import { contracts } from './contracts.js';
import { ledger, operations } from './growth.js';
import { memory, starts } from './life.js';
import { PREPARED } from './measure.js';
import { observation } from './observation.js';
import { mcp } from './over-mcp.js';
import { PACE } from './pace.js';
import { paths } from './paths.js';
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
  contracts,
  paths,
  ledger,
  starts,
  memory,
  postgres,
};

/** Scenarios that run only if selected (ONLY) or in a smoke run: one needs another version, the other takes a quarter of an hour. */
const NAMED = { before, observation };
const smoke = PACE === 'smoke';
const chosen = process.env.ONLY?.split(',') ?? Object.keys(smoke ? { ...SCENARIOS, ...NAMED } : SCENARIOS);
const report = new Report();
cleanRuns();
process.stdout.write('signing payments in advance\n');
await prepareSignatures(PRICE, PREPARED);
const stubs = new Partner('stubs.js');
const load = new Partner('load.js');
const asked = async () => (await stubs.ask({})).asked;
const bench = { stubs: await stubs.hears(), load, report, asked };
const began = Date.now();
for (const name of chosen) {
  const scenario = SCENARIOS[name] ?? NAMED[name];
  if (!scenario) throw new Error(`there is no scenario ${name}, only ${Object.keys(SCENARIOS).join(', ')}`);
  await scenario(bench);
}
stubs.end();
load.end();
const took = Math.round((Date.now() - began) / 1000);
process.stdout.write(
  smoke ? `every scenario ran, in ${took} s\n` : `measured for ${took} s; see bench/results/\n`,
);
const fine = report.finish();
process.exitCode = fine ? 0 : 1;
