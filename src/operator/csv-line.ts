/**
 * `decimal` marks a string as a number, which may be negative. Other strings that begin with `-` might be formulas.
 */
type Cell = string | number | bigint | { decimal: string } | null | undefined;

/** One CSV record. Cells that a spreadsheet would run as a formula are turned into text. */
export function csvLine(cells: readonly Cell[]): string {
  const texts = cells.map(cell => {
    if (typeof cell === 'object' && cell !== null) return cell.decimal;
    const text = cell === null || cell === undefined ? '' : String(cell);
    const safe = /^[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]/.test(text) ? `'${text}` : text;
    return /[",\r\n;\t]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  });
  return `${texts.join(',')}\r\n`;
}
