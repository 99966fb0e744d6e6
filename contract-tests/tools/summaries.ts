import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  leadAsLong,
  leadThree,
  readCorpus,
  scoreOf,
  type CorpusText,
  type Score,
} from '../support/summary-corpus.js';
import { coinslot, textRank } from './baselines.js';

/**
 * Scores the embedded summarizer on the corpus, and for comparison the first three sentences, a beginning of the same
 * length, and the npm package `textrank`; prints the tables and writes them into docs/reports/summaries.md. `--show`
 * prints every summary of the texts that are not held back.
 */

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const PAGE = join(ROOT, 'docs', 'reports', 'summaries.md');
const FROM = '<!-- figures: written by make summaries -->';
const TO = '<!-- end of figures -->';

const METHODS: Record<string, (text: CorpusText) => string> = {
  Coinslot: coinslot,
  'lead-3': leadThree,
  'lead, same length': text => leadAsLong(text, scoreOf(coinslot(text), text).words),
  textrank: textRank,
};
type Row = { text: CorpusText; scores: Record<string, Score> };

const mean = (values: number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
const line = (cells: (string | number)[]): string => `| ${cells.join(' | ')} |`;
const head = (cells: string[]): string[] => [line(cells), `|${'---|'.repeat(cells.length)}`];

function totals(rows: Row[]): string[] {
  const table = head(['method', 'score', 'facts kept', 'unwanted', 'faults of form', 'words']);
  for (const name of Object.keys(METHODS)) {
    const scores = rows.flatMap(({ scores }) => scores[name] ?? []);
    const of = (read: (score: Score) => number): number => mean(scores.map(read));
    table.push(
      line([
        name,
        of(({ score }) => score).toFixed(2),
        `${Math.round(100 * of(({ facts }) => facts))} %`,
        scores.reduce((sum, { unwanted }) => sum + unwanted, 0),
        scores.filter(({ faults }) => faults.length > 0).length,
        Math.round(of(({ words }) => words)),
      ]),
    );
  }
  return table;
}

function groups(rows: Row[], title: string, read: (text: CorpusText) => string): string[] {
  const names = Object.keys(METHODS);
  const table = head([title, 'texts', ...names]);
  for (const group of [...new Set(rows.map(({ text }) => read(text)))].sort()) {
    const members = rows.filter(({ text }) => read(text) === group);
    const cells = names.map(name =>
      mean(members.flatMap(({ scores }) => scores[name]?.score ?? [])).toFixed(2),
    );
    table.push(line([group, members.length, ...cells]));
  }
  return table;
}

function show({ text, scores }: Row): void {
  const summary = coinslot(text);
  const score = scores.Coinslot;
  const missing = text.must.filter(wordings => scoreOf(summary, { ...text, must: [wordings] }).facts === 0);
  process.stdout.write(
    `\n${text.id}: ${score?.score.toFixed(2)} (lead-3 ${scores['lead-3']?.score.toFixed(2)}), ${score?.words} words, ` +
      `missing ${JSON.stringify(missing)}, unwanted ${score?.unwanted}, ${score?.faults.join('; ')}\n${summary}\n`,
  );
}

const rows: Row[] = readCorpus().map(text => ({
  text,
  scores: Object.fromEntries(
    Object.entries(METHODS).map(([name, summarize]) => [name, scoreOf(summarize(text), text)]),
  ),
}));
const held = rows.filter(({ text }) => text.held);
const tuned = rows.filter(({ text }) => !text.held);
if (process.argv.includes('--show')) tuned.forEach(show);

const figures = [
  `All ${rows.length} texts:`,
  '',
  ...totals(rows),
  '',
  `The ${tuned.length} texts that the summarizer was tuned on:`,
  '',
  ...totals(tuned),
  '',
  `The ${held.length} texts that were held back:`,
  '',
  ...totals(held),
  '',
  'Scores by language:',
  '',
  ...groups(rows, 'language', text => text.language),
  '',
  'Scores by kind:',
  '',
  ...groups(rows, 'kind', text => text.kind),
].join('\n');
process.stdout.write(`${figures}\n`);

if (!process.argv.includes('--show')) {
  const page = readFileSync(PAGE, 'utf8');
  const [before, rest] = page.split(FROM);
  const after = rest?.split(TO)[1];
  if (before === undefined || after === undefined)
    throw new Error(`docs/reports/summaries.md has no ${FROM} … ${TO}`);
  writeFileSync(PAGE, `${before}${FROM}\n\n${figures}\n\n${TO}${after}`);
}
