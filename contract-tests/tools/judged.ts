import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { leadThree, readJudged } from '../support/summary-corpus.js';
import { coinslot, textRank } from './baselines.js';

/**
 * Writes the texts of contract-tests/fixtures/judged for judges who must not know which summary is whose:
 * `NN.txt` and `NN.candidates.json` into the folder named by the first argument, and the identities of A, B
 * and C into the file named by the second.
 */

const METHODS = { coinslot, 'lead-3': leadThree, textrank: textRank };
const LETTERS = ['A', 'B', 'C'];

const [folder, keyFile] = process.argv.slice(2);
if (folder === undefined || keyFile === undefined)
  throw new Error('name the folder for the judges and the file for the key');
mkdirSync(folder, { recursive: true });
const key: Record<string, Record<string, string>> = {};
for (const [index, entry] of readJudged().entries()) {
  const number = String(index + 1).padStart(2, '0');
  const drawn = (method: string): string =>
    createHash('sha256').update(`${entry.id} ${method} ${keyFile}`).digest('hex');
  const order = Object.entries(METHODS).sort(([left], [right]) => (drawn(left) < drawn(right) ? -1 : 1));
  const letters = order.map(
    ([method, summarize], place) => [LETTERS[place] ?? '', method, summarize(entry)] as const,
  );
  writeFileSync(join(folder, `${number}.txt`), entry.text);
  const candidates = Object.fromEntries(letters.map(([letter, , summary]) => [letter, summary]));
  writeFileSync(join(folder, `${number}.candidates.json`), `${JSON.stringify(candidates, null, 2)}\n`);
  key[number] = { id: entry.id, ...Object.fromEntries(letters.map(([letter, method]) => [letter, method])) };
}
writeFileSync(keyFile, `${JSON.stringify(key, null, 2)}\n`);
process.stdout.write(`${Object.keys(key).length} texts in ${folder}; who is who: ${keyFile}\n`);
