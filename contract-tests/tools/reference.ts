import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Registry, type Metric } from 'prom-client';
import { readConfig } from '../../src/config.js';
import { EVENT_KINDS } from '../../src/config/event-kinds.js';
import { SETTING_TEXTS } from '../../src/config/setting-texts.js';
import { SettingReader } from '../../src/config/setting-reader.js';
import { STATUS_MEANINGS } from '../../src/documents/status-meanings.js';
import { createMetrics } from '../../src/observe/metrics.js';
import { REFUSAL_REASONS } from '../../src/observe/refusal-reason.js';
import { loadShop } from '../../src/shop/load-shop.js';

/** Writes the parts of docs/reference/ that are generated from the code, each between its two markers. Run by `make generate`. */

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FOLDER = join(ROOT, 'docs', 'reference');
const PART = /(<!-- (\w+): written by make generate -->\n)[^]*?(\n<!-- end of \2 -->)/g;

/** Records the default and the allowed values of each variable that is read. */
class RecordingReader extends SettingReader {
  readonly recorded = new Map<string, { values: string; fallback: string }>();

  override integer(name: string, fallback: number, min: number, max: number): number {
    this.recorded.set(name, { values: `${min}–${max}`, fallback: String(fallback) });
    return super.integer(name, fallback, min, max);
  }

  override oneOf<T extends string>(name: string, values: readonly T[], fallback: T): T {
    this.recorded.set(name, { values: values.map(code).join(', '), fallback: code(fallback) });
    return super.oneOf(name, values, fallback);
  }

  override text(name: string): string | undefined {
    if (!this.recorded.has(name)) this.recorded.set(name, { values: '', fallback: '' });
    return super.text(name);
  }
}

const code = (text: string): string => `\`${text}\``;
const table = (header: string[], rows: string[][]): string =>
  [header, header.map(() => '---'), ...rows]
    .map(row => `| ${row.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');

/** The names of the variables that the server itself reads. */
export function namesRead(): string[] {
  const read = new RecordingReader({});
  readConfig({}, read);
  return [...read.recorded.keys()];
}

function settings(): string {
  const read = new RecordingReader({});
  readConfig({}, read);
  const rows = Object.entries(SETTING_TEXTS).map(([name, { what, values, fallback, see }]) => {
    const recorded = read.recorded.get(name);
    const more = see ? ` ([more](../${see}))` : '';
    return [
      code(name),
      values ?? recorded?.values ?? '',
      fallback ?? recorded?.fallback ?? '',
      `${what}${more}`,
    ];
  });
  return table(['variable', 'values', 'default', 'meaning'], rows);
}

async function handlers(): Promise<string> {
  const shop = await loadShop(ROOT);
  const known = new Map<string, { row: string[]; ids: string[] }>();
  for (const [id, { settings: declared = {} }] of Object.entries(shop.handlers))
    for (const { name, what, secret, read } of Object.values(declared)) {
      const fallback = read(new SettingReader({})) as string | number | undefined;
      const shown = fallback === undefined ? '' : code(String(fallback));
      const row = [code(name), shown, `${what}${secret ? ' (secret)' : ''}`];
      const one = known.get(name) ?? { row, ids: [] };
      known.set(name, { row, ids: [...one.ids, code(id)] });
    }
  const rows = [...known.values()].map(({ row, ids }) => [...row, ids.join(', ')]);
  return table(['variable', 'default', 'meaning', 'read by'], rows);
}

function metrics(): string {
  const registry = new Registry();
  createMetrics([], () => undefined, registry);
  const all = registry.getMetricsAsArray() as unknown as (Metric & Described)[];
  const own = all.filter(({ name }) => name.startsWith('coinslot_'));
  const rows = own.map(({ name, help, labelNames }) => [code(name), labelNames.map(code).join(', '), help]);
  return table(['metric', 'labels', 'meaning'], rows);
}

type Described = { name: string; help: string; labelNames: string[] };

function statuses(): string {
  return table(
    ['status', 'what it means for your money'],
    STATUS_MEANINGS.map(row => [...row]),
  );
}

function refusals(): string {
  const rows = Object.entries(REFUSAL_REASONS).map(([reason, meaning]) => [code(reason), meaning]);
  return table(['`error` begins with', 'meaning'], rows);
}

/** The output of each command with `--help`, in the folder of a shop. */
async function commands(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'reference-'));
  const main = join(ROOT, 'dist', 'src', 'cli', 'main.js');
  const run = async (...words: string[]): Promise<string> => {
    const env = { PATH: process.env.PATH };
    const { stdout } = await promisify(execFile)(process.execPath, [main, ...words], { cwd: folder, env });
    return stdout.trimEnd();
  };
  try {
    const usage = await run('help');
    const names = [...usage.matchAll(/^ {2}(\w+) {2,}/gm)].map(([, name = '']) => name);
    const texts = await Promise.all(names.map(name => run(name, '--help')));
    const sections = names.map((name, at) => `## ${name}\n\n\`\`\`text\n${texts[at]}\n\`\`\``);
    return [`\`\`\`text\n${usage}\n\`\`\``, ...sections].join('\n\n');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function events(): string {
  return table(
    ['type', 'means that'],
    Object.entries(EVENT_KINDS).map(([kind, meaning]) => [code(kind), meaning]),
  );
}

const PARTS: Record<string, () => string | Promise<string>> = {
  settings,
  handlers,
  events,
  metrics,
  statuses,
  refusals,
  commands,
};

/** The pages of docs/reference/ with their generated parts up to date, by file. */
export async function referencePages(): Promise<Map<string, { before: string; after: string }>> {
  const written = new Map<string, string>();
  for (const [name, write] of Object.entries(PARTS)) written.set(name, await write());
  return new Map(
    readdirSync(FOLDER).map(name => {
      const file = join(FOLDER, name);
      const before = readFileSync(file, 'utf8');
      const after = before.replace(PART, (_all, begin: string, part: string, end: string) => {
        const text = written.get(part);
        if (text === undefined) throw new Error(`${file}: nothing writes the part ${part}`);
        return `${begin}\n${text}\n${end}`;
      });
      return [file, { before, after }];
    }),
  );
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  for (const [file, { before, after }] of await referencePages())
    if (after !== before) writeFileSync(file, after);
