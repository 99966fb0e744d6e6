/**
 * Runs a real Prometheus alongside a server under load, and checks that every query in ops/ returns data. The last line
 * is `N passed, N failed`. Needs Debian's package prometheus.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { compose } from '../../src/compose.js';
import { readConfig } from '../../src/config.js';
import { freePort } from '../support/free-port.js';
import { openWorld, post, signFor, TEXT, type World } from '../support/world.js';

const OPS = fileURLToPath(new URL('../../../ops/', import.meta.url));
const ROUNDS = 12;
const TRIES = 20;
const CALLS_PER_ROUND = 3;

type Rules = { groups: { rules: { alert: string; expr: string }[] }[] };
type Dashboard = { panels: { title: string; targets?: { expr: string }[] }[] };
type Query = { name: string; expr: string };

/** An alert returns nothing while all is well, so the query is its expression without the comparison. */
const COMPARISON = / (==|>|<|>=|<=) [\d.]+$/;

async function queries(): Promise<Query[]> {
  const rules = parse(await readFile(`${OPS}alerts.yml`, 'utf8')) as Rules;
  const dashboard = JSON.parse(await readFile(`${OPS}dashboard.json`, 'utf8')) as Dashboard;
  const alerts = rules.groups.flatMap(group => group.rules);
  return [
    ...alerts.map(({ alert, expr }) => ({ name: alert, expr: expr.replace(COMPARISON, '') })),
    ...dashboard.panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({
        name: title,
        expr: expr.replaceAll('$__rate_interval', '1m').replaceAll('$__range', '5m'),
      })),
    ),
  ];
}

/** Sells calls, and lets a backend and a facilitator fail now and then, so that every metric has a value. */
async function load(world: World): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    for (let n = 0; n < CALLS_PER_ROUND; n++) {
      await post(`${world.url}/v1/tts`, {});
      const payment = await signFor(world, '/v1/tts');
      await post(`${world.url}/v1/tts`, { text: `Call ${round} ${n}.` }, payment);
    }
    // The first call fails because its backend does not exist, the second because its payment is too small.
    await post(`${world.url}/v1/summarize`, { text: TEXT }, await signFor(world, '/v1/summarize'));
    await post(`${world.url}/v1/tts`, { text: TEXT }, await signFor(world, '/v1/summarize'));
    if (round === 2) {
      world.facilitator.intervene(({ drop }) => drop());
      await post(`${world.url}/v1/tts`, { text: 'Lost.' }, await signFor(world, '/v1/tts'));
      world.facilitator.intervene(undefined);
    }
    await pause(300);
  }
}

async function main(): Promise<void> {
  if (spawnSync('prometheus', ['--version']).status !== 0) {
    process.stdout.write(
      'prometheus is not installed (apt-get install prometheus)\n0 passed, 0 failed, 1 skipped\n',
    );
    return;
  }
  let passed = 0;
  let failed = 0;
  const check = (name: string, ok: boolean, detail: string): void => {
    if (ok) passed += 1;
    else failed += 1;
    if (!ok) process.stdout.write(`FAILED: ${name}: ${detail}\n`);
  };
  const rules = spawnSync('promtool', ['check', 'rules', `${OPS}alerts.yml`]);
  check('promtool', rules.status === 0, `${rules.stdout}${rules.stderr}`);
  const folder = await mkdtemp(join(tmpdir(), 'coinslot-prometheus-'));
  const gone = await freePort();
  const world = await openWorld({ SUMMARIZER_URL: `http://127.0.0.1:${gone}/v1`, SUMMARIZER_MODEL: 'none' });
  // Only a server that settles payments itself has a fee payer.
  const own = await compose(
    readConfig({ ...world.env, STATE_DIR: join(folder, 'own'), FACILITATOR_URL: 'embedded' }),
  );
  const targets = [world.server, own].map(({ admin }) => new URL(admin.url).host);
  const port = await freePort();
  const prometheus = await startPrometheus(folder, targets, port);
  try {
    await load(world);
    for (const { name, expr } of await queries()) {
      const result = await ask(port, expr);
      check(name, result.values.length > 0, `no data for ${expr} ${result.error}`);
    }
    const { alerts } = await askAlerts(port);
    check('rules are loaded', alerts > 0, 'Prometheus has no rules');
  } finally {
    prometheus.kill('SIGTERM');
    await once(prometheus, 'exit');
    await own.stop();
    await world.close();
    await rm(folder, { recursive: true, force: true });
  }
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  process.exitCode = failed === 0 ? 0 : 1;
}

async function startPrometheus(
  folder: string,
  targets: string[],
  port: number,
): Promise<ReturnType<typeof spawn>> {
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [`${OPS}alerts.yml`],
    scrape_configs: [{ job_name: 'coinslot', static_configs: [{ targets }] }],
  };
  // JSON is valid YAML.
  await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(config));
  return spawn(
    'prometheus',
    [
      `--config.file=${folder}/prometheus.yml`,
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  );
}

/** The finite values that a query returns. The query is repeated until it returns some, because a rate needs two scrapes. */
async function ask(port: number, expr: string): Promise<{ values: number[]; error: string }> {
  for (let tries = 1; ; tries++) {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(expr)}`);
    const { data, error = '' } = (await answer.json()) as {
      data?: { result: { value: [number, string] }[] };
      error?: string;
    };
    const values = (data?.result ?? []).map(({ value }) => Number(value[1])).filter(Number.isFinite);
    if (values.length > 0 || tries >= TRIES) return { values, error };
    await pause(250);
  }
}

async function askAlerts(port: number): Promise<{ alerts: number }> {
  const answer = await fetch(`http://127.0.0.1:${port}/api/v1/rules`);
  const { data } = (await answer.json()) as { data: { groups: { rules: unknown[] }[] } };
  return { alerts: data.groups.flatMap(({ rules }) => rules).length };
}

await main();
