import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { arch, availableParallelism, cpus, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { holds, median } from './figures.js';
import { PACE } from './pace.js';
import { plotGates, plotTable } from './plot.js';
import { PINNED, revision } from './processes.js';

const RESULTS = fileURLToPath(new URL('results/', import.meta.url));

/** @typedef {import('./figures.js').Gate} Gate */

/** Collects tables and the ratios that have bounds, prints them as they are added, and writes them to files. */
export class Report {
  /** @type {import('./figures.js').Table[]} */
  tables = [];
  /** @type {Gate[]} */
  gates = [];
  /** @type {string[]} */
  notRun = [];
  /** @param {import('./figures.js').Table} table */
  add(table) {
    this.tables.push(table);
    process.stdout.write(`\n${textOf(table)}\n`);
  }

  /** @param {string} measure @param {number | undefined} value @param {'least' | 'most'} kind @param {number} bound */
  gate(measure, value, kind, bound) {
    this.gates.push({ measure, value, kind, bound });
  }

  /** @param {string} what @param {string} why */
  skip(what, why) {
    this.notRun.push(`${what}: ${why}`);
    process.stdout.write(`\nnot run: ${what}, ${why}\n`);
  }

  /** Writes results/ and prints every ratio with its bound. @returns {boolean} whether all bounds hold; true for a smoke run */
  finish() {
    if (PACE === 'smoke') return true;
    mkdirSync(RESULTS, { recursive: true });
    const machine = { run: PACE, ...machineOf() };
    const whole = process.env.ONLY === undefined;
    const name = !whole ? 'selected' : PACE === 'full' ? 'results' : PACE;
    writeFileSync(join(RESULTS, `${name}.md`), this.#markdown(machine));
    writeFileSync(join(RESULTS, `${name}.json`), `${JSON.stringify(this.#json(machine), null, 2)}\n`);
    if (PACE === 'full' && whole) {
      for (const [file, titles] of Object.entries(PLOTS)) {
        const shown = this.tables.filter(table => titles.some(title => table.title.startsWith(title)));
        if (shown.length) writeFileSync(join(RESULTS, file), plotTable(shown));
      }
      writeFileSync(join(RESULTS, 'ratios.svg'), plotGates(this.gates));
    }
    process.stdout.write(`\n${this.gates.map(gateText).join('\n')}\n`);
    return this.gates.every(holds);
  }

  #json(machine) {
    return {
      machine,
      tables: this.tables.map(({ title, unit, better, rows, notes }) => ({
        title,
        unit,
        better,
        notes,
        rows: Object.fromEntries(
          [...rows].map(([row, rounds]) => [
            row,
            { median: round(median(rounds)), rounds: rounds.map(round) },
          ]),
        ),
      })),
      ratios: this.gates.map(gate => ({ ...gate, holds: holds(gate) })),
      notRun: this.notRun,
    };
  }

  #markdown(machine) {
    const lines = ['# Benchmarks', ''];
    lines.push(...Object.entries(machine).map(([key, value]) => `- ${key}: ${value}`), '');
    lines.push('| ratio | value | bound | |', '|---|---|---|---|');
    for (const gate of this.gates) {
      const bound = `${gate.kind === 'least' ? '≥' : '≤'} ${gate.bound}`;
      lines.push(
        `| ${gate.measure} | ${shown(gate.value)} | ${bound} | ${holds(gate) ? 'holds' : 'missed'} |`,
      );
    }
    for (const table of this.tables) lines.push('', `## ${table.title}`, '', ...markdownOf(table));
    if (this.notRun.length) lines.push('', '## Not run', '', ...this.notRun.map(line => `- ${line}`));
    return `${lines.join('\n')}\n`;
  }
}

/** The tables that each plot shows, by the beginnings of their titles. */
const PLOTS = {
  'unpaid.svg': ['402,'],
  'paid.svg': ['Paid call, instant', 'Paid summarize', 'Latency of a paid call', 'Speech of'],
};

function gateText(gate) {
  const { measure, value, kind, bound } = gate;
  const sign = kind === 'least' ? '>=' : '<=';
  return `${holds(gate) ? 'holds ' : 'MISSED'}  ${measure}: ${shown(value)} (${sign} ${bound})`;
}

const round = value => Math.round(value * 1000) / 1000;
const shown = value => (value === undefined ? 'not measured' : value.toFixed(value < 10 ? 3 : 1));

/** @param {number} value */
function figure(value) {
  if (value >= 1000) return Math.round(value).toLocaleString('en').replaceAll(',', ' ');
  return value >= 100 ? value.toFixed(0) : value.toFixed(value < 10 ? 2 : 1);
}

/** @param {import('./figures.js').Table} table */
function rowsOf({ rows, better }) {
  const sign = better === 'more' ? -1 : 1;
  return [...rows]
    .map(([name, rounds]) => ({
      name,
      median: median(rounds),
      low: Math.min(...rounds),
      high: Math.max(...rounds),
    }))
    .sort((a, b) => sign * (a.median - b.median));
}

function markdownOf(table) {
  const lines = [`| | ${table.unit}, median | lowest | highest |`, '|---|---:|---:|---:|'];
  for (const { name, median: middle, low, high } of rowsOf(table)) {
    lines.push(`| ${name} | ${figure(middle)} | ${figure(low)} | ${figure(high)} |`);
  }
  return table.notes.length ? [...lines, '', ...table.notes] : lines;
}

function textOf(table) {
  const rows = rowsOf(table).map(
    ({ name, median: middle, low, high }) =>
      `  ${name.padEnd(28)} ${figure(middle).padStart(9)}   (${figure(low)} to ${figure(high)})`,
  );
  return [`${table.title} [${table.unit}]`, ...rows, ...table.notes.map(note => `  ${note}`)].join('\n');
}

function machineOf() {
  const packages = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8')).dependencies;
  const versions = Object.entries(packages).map(([name, version]) => `${name} ${version}`);
  return {
    measured: new Date().toISOString().slice(0, 10),
    revision: revision(),
    node: process.version,
    system: `${platform()} ${release()} ${arch()}`,
    processor: `${cpus()[0]?.model.trim() ?? 'unknown'}, ${availableParallelism()} cores`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GB`,
    pinning: PINNED ? 'servers on one core, load generator and stubs on another' : 'none: taskset is missing',
    peers: versions.join(', '),
  };
}
