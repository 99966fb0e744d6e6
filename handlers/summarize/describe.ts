import type { Block } from './plain-text.js';
import { countWords, SPACELESS } from './words.js';

/** One sentence that describes a text without sentences: JSON, tables, code, logs, lists. */

const MOST_NAMES = 8;
const LONGEST_NAME = 40;

const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`;
const clean = (name: string): string => {
  const line = name.replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return line.length > LONGEST_NAME
    ? `${line.slice(0, LONGEST_NAME).replace(/[\ud800-\udbff]$/, '')}…`
    : line;
};

/** "a, b, c and 4 more" */
function names(all: string[]): string {
  const shown = all.slice(0, MOST_NAMES).map(clean);
  const more = all.length - shown.length;
  if (more > 0) return `${shown.join(', ')} and ${more} more`;
  return shown.length > 1 ? `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}` : (shown[0] ?? '');
}

/** "price from 3 to 99", for values that are all numbers or all dates; undefined otherwise. */
function range(name: string, values: string[]): string | undefined {
  const given = values.map(value => value.trim()).filter(value => value !== '');
  if (given.length < 2) return undefined;
  if (given.every(value => /^-?\d{1,15}(?:\.\d{1,15})?$/.test(value))) {
    const sorted = [...given].sort((left, right) => Number(left) - Number(right));
    return `${clean(name)} from ${sorted[0]} to ${sorted.at(-1)}`;
  }
  if (!given.every(value => /^\d{4}-\d\d-\d\d(?:[T ][\d:.]+Z?)?$/.test(value))) return undefined;
  const sorted = [...given].sort();
  return `${clean(name)} from ${sorted[0]} to ${sorted.at(-1)}`;
}

const MOST_RANGES = 3;
function ranges(columns: [string, string[]][]): string {
  const found = columns.flatMap(([name, values]) => range(name, values) ?? []).slice(0, MOST_RANGES);
  return found.length > 0 ? `; ${found.join(', ')}` : '';
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const scalar = (value: unknown): string =>
  typeof value === 'number' || typeof value === 'string' ? String(value) : '';

function describeJson(value: unknown): string {
  if (isRecord(value)) {
    const keys = Object.keys(value);
    return keys.length === 0
      ? 'An empty JSON object.'
      : `A JSON object with ${plural(keys.length, 'key')}: ${names(keys)}.`;
  }
  if (!Array.isArray(value)) return `A JSON value: ${clean(JSON.stringify(value))}.`;
  const records = value.filter(isRecord);
  if (value.length === 0) return 'An empty JSON array.';
  if (records.length < value.length)
    return `A JSON array of ${plural(value.length, 'value')}${ranges([['value', value.map(scalar)]])}.`;
  const keys = [...new Set(records.flatMap(record => Object.keys(record)))];
  const columns = keys.map((key): [string, string[]] => [key, records.map(record => scalar(record[key]))]);
  const inAll = records.every(record => Object.keys(record).length === keys.length) ? '' : ' in all';
  return `A JSON array of ${plural(value.length, 'object')} with ${plural(keys.length, 'key')}${inAll}: ${names(keys)}${ranges(columns)}.`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function readJson(text: string): string | undefined {
  if (!/^[[{]/.test(text)) return undefined;
  const value = parsed(text);
  if (value !== undefined) return describeJson(value);
  const lines = text.split('\n').filter(line => line.trim() !== '');
  if (lines.length < 2) return undefined;
  const values = lines.map(parsed);
  return values.every(isRecord) ? describeJson(values).replace('A JSON array of', 'JSON lines:') : undefined;
}

function describeRows(rows: string[][], kind: string): string {
  const [head = [], ...body] = rows;
  const columns = head.map((name, index): [string, string[]] => [name, body.map(row => row[index] ?? '')]);
  return `${kind} of ${plural(body.length, 'row')} and ${plural(head.length, 'column')}: ${names(head)}${ranges(columns)}.`;
}

const FEWEST_ROWS = 3;
/** Lines whose cells have more words than this on average are sentences with commas, not table rows. */
const CELL_WORDS = 6;

/** The cells of a line. In lines separated by commas, quoted cells may contain the separator. */
function cells(line: string, mark: string): string[] {
  if (mark !== ',' || !line.includes('"')) return line.split(mark).map(cell => cell.trim());
  const found: string[] = [];
  let quoted = false;
  let cell = '';
  for (const character of line) {
    if (character === '"') quoted = !quoted;
    else if (character === ',' && !quoted) {
      found.push(cell.trim());
      cell = '';
    } else cell += character;
  }
  return [...found, cell.trim()];
}

function readTable(text: string, blocks: Block[]): string | undefined {
  const piped = blocks.filter(({ kind }) => kind === 'row').map(block => block.text.split(', '));
  const words = blocks.reduce((sum, block) => sum + (block.kind === 'row' ? 0 : countWords(block.text)), 0);
  if (piped.length >= FEWEST_ROWS && words < 20) return describeRows(piped, 'A table');
  const lines = text.split(/\r?\n/).filter(line => line.trim() !== '');
  if (lines.length < FEWEST_ROWS) return undefined;
  for (const mark of [',', ';', '\t']) {
    const rows = lines.map(line => cells(line, mark));
    const width = rows[0]?.length ?? 0;
    const even = width >= 2 && rows.every(row => row.length === width);
    const average = even
      ? rows.flat().reduce((sum, cell) => sum + countWords(cell), 0) / (width * rows.length)
      : 0;
    if (even && average <= CELL_WORDS && !rows.some(row => /[.!?]$/.test(row.at(-1) ?? '')))
      return describeRows(rows, 'A table');
  }
  return undefined;
}

/** Definitions at the start of a line, which are valid for the whole file. */
const DEFINES =
  /^(?:(?:export|declare|default|async|abstract|public|pub)[ \t]+){0,3}(?:function\*?|class|def|fn|func|interface|struct|type|enum|const)[ \t]+([A-Za-z_$][\w$]{0,60})/gm;
const CODE_SHARE = 0.5;

/** Whether nearly all lines end like lines of code, or are comments. */
function isCommented(lines: string[]): boolean {
  const ends = lines.filter(line => /[;{}]$/.test(line.trimEnd())).length;
  const comments = lines.filter(line => /^\s*(?:\/[/*]|\*|#)/.test(line)).length;
  return ends >= FEWEST_ENDS && ends + comments >= COMMENTED_SHARE * lines.length;
}
/** Whether half of the lines are statements or comments of Python, and some import or define. */
function isPython(lines: string[]): boolean {
  const names = lines.filter(line => PYTHON_NAMES.test(line)).length;
  const statements = lines.filter(line => PYTHON.test(line)).length;
  return names >= FEWEST_NAMES && statements >= STATEMENTS_SHARE * lines.length;
}
const PYTHON_NAMES =
  /^(?:import [a-z_][\w.]{0,80}(?: as \w{1,80})?$|from [\w.]{1,80} import |class [A-Z]\w{0,80}[(:]|[ \t]{0,40}(?:async )?def \w{1,80}\()/;
const PYTHON =
  /^\s*(?:#|@\w|"""|'''|(?:import|from|class|def|async|return|raise|if|elif|else|for|while|try|except|finally|with|yield|pass)\b.{0,200}$|[\w.[\]'"]{1,80}(?:: [^=]{1,80})? [-+*/]?= |[\w.]{1,80}\(|[)\]}])/;
const FEWEST_NAMES = 3;
const STATEMENTS_SHARE = 0.5;
const FEWEST_ENDS = 5;
const COMMENTED_SHARE = 0.8;

const COMMENT = /^\s*(?:\/[/*]+|\*\/?|#+|--)/;
const LEGAL = /copyright|licen[cs]e|SPDX|\(c\)|©/i;
/** The first sentence of the comment that a file of code begins with, unless it is about copyright or a licence. */
function firstComment(lines: string[]): string {
  const end = lines.findIndex(line => line.trim() !== '' && !COMMENT.test(line));
  const text = lines
    .slice(0, Math.min(end < 0 ? lines.length : end, MOST_COMMENTS))
    .filter(line => !/^#!|-\*-/.test(line))
    .map(line =>
      line
        .replace(COMMENT, '')
        .replace(/\*\/\s*$/, '')
        .trim(),
    )
    .join(' ')
    .replace(/\s+/g, ' ')
    .trim();
  const sentence = /^.{20,199}?\p{L}{2}[.!?](?= |$)/u.exec(text)?.[0] ?? '';
  return LEGAL.test(text) || countWords(sentence) < 4 ? '' : `, which begins with ${quoted(sentence)}`;
}
const MOST_COMMENTS = 20;

function readCode(source: string, blocks: Block[]): string | undefined {
  const code = blocks.filter(({ kind }) => kind === 'code');
  const length = (list: Block[]): number => list.reduce((sum, { text }) => sum + text.length, 0);
  const text = blocks.filter(
    ({ kind, text }) =>
      kind === 'heading' || (kind === 'prose' && text.length > 60 && /[.!?:。]$/u.test(text)),
  );
  const isBare = code.length >= 2 && text.length === 0 && length(code) >= CODE_SHARE * length(blocks);
  const lines = source.split(/\r\n?|\n/);
  const filled = lines.filter(line => line.trim() !== '');
  if (!isBare && !isCommented(filled) && !isPython(filled)) return undefined;
  const defined = [...new Set([...source.matchAll(DEFINES)].map(([, name = '']) => name))];
  return `Source code of ${plural(lines.length, 'line')}${defined.length > 0 ? ` that defines ${names(defined)}` : ''}${firstComment(lines)}.`;
}

const LEVEL = /\b(?:FATAL|ERROR|WARN(?:ING)?)\b/;
const ANY_LEVEL = /\b(?:FATAL|ERROR|WARN(?:ING)?|NOTICE|INFO|DEBUG|TRACE)\b/;
const STAMPED = /^\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?)/;

function readLog(blocks: Block[]): string | undefined {
  const lines = blocks.filter(({ text }) => STAMPED.test(text));
  if (lines.length < FEWEST_ROWS || lines.length < 0.8 * blocks.length) return undefined;
  const at = (line: Block | undefined): string => STAMPED.exec(line?.text ?? '')?.[1] ?? '';
  const bad = lines.filter(({ text }) => /\b(?:FATAL|ERROR)\b/.test(text));
  const warned = lines.filter(({ text }) => LEVEL.test(text)).length - bad.length;
  const first = bad[0]?.text.replace(/^\S+\s+/, '');
  const said =
    first === undefined || first.length > 200
      ? ''
      : `, the first error being “${first.replace(/[“”]/g, '"')}”`;
  // If the lines have no log levels, as in a chat, "0 errors" would wrongly suggest that nothing went wrong.
  const counts = lines.some(({ text }) => ANY_LEVEL.test(text))
    ? ` with ${plural(bad.length, 'error')} and ${plural(warned, 'warning')}${said}`
    : '';
  return `A log of ${plural(lines.length, 'line')} from ${at(lines[0])} to ${at(lines.at(-1))}${counts}.`;
}

/** The start and end times in a line of captions (WebVTT, section 4.3; SubRip has commas). */
const CUE = /^((?:\d{1,3}:)?\d\d:\d\d[.,]\d{3})[ \t]+-->[ \t]+((?:\d{1,3}:)?\d\d:\d\d[.,]\d{3})/gm;

function readCaptions(text: string): string | undefined {
  const cues = [...text.matchAll(CUE)];
  if (cues.length === 0 || !/^\ufeff?(?:WEBVTT|\d+\s*\n)/.test(text)) return undefined;
  return `Captions of ${plural(cues.length, 'cue')}, from ${cues[0]?.[1]} to ${cues.at(-1)?.[2]}.`;
}

/** A description of a text that is data, such as JSON or a log; undefined if the text is prose. */
export function describeData(text: string, blocks: Block[]): string | undefined {
  const trimmed = text.trim();
  return (
    readJson(trimmed) ??
    readCaptions(trimmed) ??
    readLog(blocks) ??
    readTable(trimmed, blocks) ??
    readCode(trimmed, blocks) ??
    readChanges(blocks) ??
    readList(blocks)
  );
}

const withoutEnd = (text: string): string => text.replace(/(?<![\s.;,])[\s.;,]+$/, '');

/** A line that contains only a version, perhaps with its date. */
const VERSION =
  /^[[(]?(?:version |release |v)?\d{1,4}\.\d{1,4}\.\d{1,4}(?:[.+-]?[\da-z]{1,12}){0,3}[\])]?[\s/—–:,(-]{0,4}(?:\d{4}[-./]\d{1,2}[-./]\d{1,2})?\)?$/iu;
const FEWEST_VERSIONS = 2;

function readChanges(blocks: Block[]): string | undefined {
  const versions = blocks.flatMap(({ kind, text }, index) =>
    kind !== 'item' && text.length <= 60 && VERSION.test(text) ? [index] : [],
  );
  const [first = 0, second = 0] = versions;
  const entries = blocks.slice(first).filter(({ kind }) => kind === 'item').length;
  if (versions.length < FEWEST_VERSIONS || entries + versions.length < 0.5 * blocks.length) return undefined;
  const name = (index: number): string => clean(blocks[index]?.text ?? '');
  const said = entriesOf(blocks.slice(first + 1, second));
  return `Changes by version, ${name(first)} first${said === '' ? '' : `: ${said}`}.`;
}

const MOST_QUOTED = 200;
const MOST_ENTRIES = 3;
export const quoted = (text: string): string => `“${text.replace(/[“”]/g, '"')}”`;

/** The first entries of a version, each with its heading. */
function entriesOf(blocks: Block[]): string {
  const said: string[] = [];
  let under = '';
  for (const { kind, text } of blocks) {
    if (kind === 'row') continue;
    if (kind === 'heading') under = `${clean(text)}: `;
    else if (kind !== 'item' || text.length > MOST_QUOTED || said.length === MOST_ENTRIES) break;
    else {
      said.push(`${under}${quoted(text)}`);
      under = '';
    }
  }
  return said.join(', ');
}

/** A list, if the text has only entries and a title. */
function readList(blocks: Block[]): string | undefined {
  const [title, ...rest] = blocks;
  const titled = title !== undefined && title.kind !== 'item' && !/[.!?。！？]/u.test(title.text);
  const items = titled ? rest : blocks;
  if (
    items.length < FEWEST_ROWS ||
    items.some(({ kind, text }) => kind !== 'item' || countWords(text) > ENTRY_WORDS)
  )
    return undefined;
  const under = titled ? ` under ${quoted(withoutEnd(title.text).replace(/[:：]$/u, ''))}` : '';
  return `A list of ${plural(items.length, 'item')}${under}: ${names(items.map(({ text }) => withoutEnd(text)))}.`;
}
const ENTRY_WORDS = 12;

/** Words of a description, by language. Other descriptions are in English. */
const ENGLISH = ['words', 'sections', 'questions'] as const;
const WORDS: Record<string, readonly [words: string, sections: string, questions: string]> = {
  de: ['Wörter', 'Abschnitte', 'Fragen'],
  fr: ['mots', 'sections', 'questions'],
  es: ['palabras', 'secciones', 'preguntas'],
  it: ['parole', 'sezioni', 'domande'],
  pt: ['palavras', 'seções', 'perguntas'],
  nl: ['woorden', 'secties', 'vragen'],
  ru: ['слов', 'разделы', 'вопросы'],
  ja: ['文字', '見出し', '質問'],
  zh: ['字', '章节', '问题'],
};
const LONGEST_HEADING = 90;

/** 643 becomes "about 640", because there are several ways to count words. */
function about(count: number): string {
  const unit = 10 ** Math.max(0, String(count).length - 2);
  return `≈ ${Math.round(count / unit) * unit}`;
}

function sizeOf(blocks: Block[], language: string): string {
  const [words] = WORDS[language] ?? ENGLISH;
  const text = blocks.map(block => block.text);
  const byLetters = language === 'ja' || language === 'zh';
  const count = byLetters
    ? text.join('').replace(/\s/g, '').length
    : text.reduce((sum, line) => sum + (line.match(/\S+/g)?.length ?? 0), 0);
  return `${about(count)} ${words}`;
}

/** As many whole headings as fit, with "…" in place of the rest. */
function headingsOf(headings: string[], language: string): string {
  if (headings.length === 0) return '';
  const [, sections, questions] = WORDS[language] ?? ENGLISH;
  const asked = headings.filter(text => /[?？]$/u.test(text)).length > headings.length / 2;
  const fit = headings.slice(0, MOST_NAMES).filter(text => text.length <= LONGEST_HEADING);
  const shown = fit.map(text => text.replace(/[.:：]$/u, '').replace(/[“”]/g, '"')).join('; ');
  return `; ${asked ? questions : sections}: ${shown}${fit.length < headings.length ? '; …' : ''}`;
}

/** The text, with "…" in place of code. Otherwise the sentence before the code would seem to lead to the text after it. */
function linesOf(blocks: Block[]): string[] {
  const lines: string[] = [];
  for (const { kind, text } of blocks)
    if (kind !== 'code') lines.push(text);
    else if (lines.length > 0 && lines.at(-1) !== '…') lines.push('…');
  return lines;
}

/** The beginning of a text: its first lines, whole, or the first words of a long one. */
function firstLines(blocks: Block[]): string {
  const lines = linesOf(blocks);
  const most = MOST_BEGUN / (SPACELESS.test(lines.join(' ').slice(0, MOST_BEGUN)) ? 2.5 : 1);
  const joined = lines.slice(0, MOST_LINES).join(' / ');
  const begun = (ENOUGH.exec(joined)?.[0] ?? joined).slice(0, most);
  if (begun === joined && lines.length <= MOST_LINES) return begun;
  const last = [...begun.matchAll(ENDS)].at(-1);
  const end = last === undefined ? 0 : last.index + last[0].length;
  const space = Math.max(begun.lastIndexOf(' '), 0);
  const cut = end > most / 2 ? end : begun.length < most ? begun.length : space || begun.length;
  return `${begun
    .slice(0, cut)
    .replace(/[\s/]$|[\ud800-\udbff]$/, '')
    .trim()} …`;
}
const ENDS = /\p{L}{3}[.!?]["”’)]?(?=\s)|[。！？]| (?=\/)/gu;
const MOST_BEGUN = 450;
const MOST_LINES = 8;
const ENOUGH = /^[\s\S]{120,}?\p{L}{3}[.!?](?=\s)|^[\s\S]{50,}?[。！？]/u;

const lengthOf = (blocks: Block[]): number => blocks.reduce((sum, { text }) => sum + text.length, 0);
/** Whether the beginning of a text is worth quoting: it must consist mostly of letters, without an extremely long word. */
export const isText = (begun: string): boolean => {
  const letters = begun.match(/[\p{L}\p{M}\s]/gu)?.length ?? 0;
  const longest = Math.max(...begun.split(/[\s。！？、，]/u).map(word => word.length));
  return letters >= 0.7 * begun.length && longest <= LONGEST_WORD;
};
const LONGEST_WORD = 100;

/** A description of a text in its own words: its title, or else its beginning; its length; and its headings. */
export function describeText(
  blocks: Block[],
  { title, headings, language }: { title: string | undefined; headings: string[]; language: string },
): string {
  const size = `${sizeOf(blocks, language)}${headingsOf(headings, language)}`;
  const named = title ?? firstLines(blocks);
  if (!isText(named)) return `A text of ${about(lengthOf(blocks))} characters (${size}).`;
  return named === '' ? `${size}.` : `${quoted(named)} (${size}).`;
}
