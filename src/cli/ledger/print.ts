/** The result of a command: data for `--json`, and lines of text otherwise. */
export type Report = {
  data: unknown;
  lines: string[];
  /** False if the command ran but found something that needs attention. */
  ok?: boolean;
};

export type Cell = string | number | bigint | null | undefined;

/** Lays out rows under their titles. Columns of numbers are right-aligned. */
export function table(titles: readonly string[], rows: readonly (readonly Cell[])[]): string[] {
  const texts = rows.map(row => titles.map((_, column) => plain(row[column])));
  const widths = titles.map((title, column) =>
    Math.max(title.length, ...texts.map(row => row[column]?.length ?? 0)),
  );
  const numeric = titles.map((_, column) =>
    texts.every(row => /^-?[0-9.]*$/.test(row[column] ?? '') && row[column] !== ''),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return numeric[column] ? cell.padStart(width) : cell.padEnd(width);
      })
      .join('  ')
      .trimEnd();
  return [line(titles), line(widths.map(width => '-'.repeat(width))), ...texts.map(line)];
}

/** Lays out one record, one line per field. */
export function fields(entries: readonly (readonly [string, Cell])[]): string[] {
  const width = Math.max(...entries.map(([name]) => name.length));
  return entries.map(([name, value]) => `${name.padEnd(width)}  ${plain(value)}`.trimEnd());
}

/** `1 payment`, `2 payments`. */
export function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** Removes control characters: text that callers wrote must not control the operator's terminal. */
export function plain(value: Cell): string {
  if (value === null || value === undefined) return '-';
  // eslint-disable-next-line no-control-regex
  return String(value).replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, ' ');
}

/** @returns an ISO time, or null */
export function time(ms: number | null): string | null {
  return ms === null || Math.abs(ms) > 8.64e15 ? null : new Date(ms).toISOString();
}

/** JSON with money and other big integers as strings. */
export function toJson(data: unknown): string {
  return JSON.stringify(
    data,
    (_key, value: unknown) => (typeof value === 'bigint' ? value.toString() : value),
    2,
  );
}
