import { holds, median } from './figures.js';

/** Draws bar charts as SVG, without a library. They are readable on light and dark pages. */

const WIDTH = 760;
const LABEL = 170;
const ROW = 22;
const STYLE =
  '<style>text{font:13px system-ui,sans-serif;fill:#888}.t{font-weight:600;font-size:14px}.o{fill:#e0a92e}.p{fill:#8aa0b8}' +
  '.m{fill:#c0504d}.b{stroke:#888;stroke-width:1.5}</style>';

/** @param {string} text */
const escaped = text => text.replace(/[&<>"]/g, found => `&#${found.charCodeAt(0)};`);

/** @param {number} height @param {string[]} parts */
function svg(height, parts) {
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}">` +
    `${STYLE}\n${parts.join('\n')}\n</svg>\n`
  );
}

/** @param {number} value */
const figure = value => (value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3));

/** One bar per server and table. @param {import('./figures.js').Table[]} tables */
export function plotTable(tables) {
  const parts = [];
  let y = 22;
  for (const { title, unit, better, rows } of tables) {
    parts.push(`<text class="t" x="8" y="${y}">${escaped(`${title} (${unit}, ${better} is better)`)}</text>`);
    y += 10;
    const most = Math.max(...[...rows.values()].map(median));
    for (const [name, rounds] of rows) {
      const value = median(rounds);
      const length = ((WIDTH - LABEL - 90) * value) / most;
      const kind = name.startsWith('coinslot') ? 'o' : 'p';
      parts.push(
        `<text x="${LABEL - 8}" y="${y + 14}" text-anchor="end">${escaped(name)}</text>` +
          `<rect class="${kind}" x="${LABEL}" y="${y + 2}" width="${length.toFixed(1)}" height="${ROW - 6}"/>` +
          `<text x="${(LABEL + length + 6).toFixed(1)}" y="${y + 14}">${figure(value)}</text>`,
      );
      y += ROW;
    }
    y += 26;
  }
  return svg(y, parts);
}

/** Every ratio relative to its bound, which is the line in the middle. Further right is better. @param {import('./figures.js').Gate[]} gates */
export function plotGates(gates) {
  const middle = 520;
  const parts = [
    '<text class="t" x="8" y="22">Measured ratio against its bound (the line); bars to the right of the line meet it</text>',
  ];
  let y = 34;
  for (const gate of gates.filter(({ value }) => value !== undefined)) {
    const { measure, value, kind, bound } = gate;
    const lead = Math.log2(kind === 'least' ? value / bound : bound / value);
    const length = Math.min(150, Math.abs(lead) * 100);
    const x = lead >= 0 ? middle : middle - length;
    const sign = kind === 'least' ? '≥' : '≤';
    parts.push(
      `<text x="8" y="${y + 14}">${escaped(measure)}</text>` +
        `<rect class="${holds(gate) ? 'o' : 'm'}" x="${x.toFixed(1)}" y="${y + 2}" width="${length.toFixed(1)}" height="${ROW - 6}"/>` +
        `<text x="${WIDTH - 8}" y="${y + 14}" text-anchor="end">${value.toFixed(2)} (${sign} ${bound})</text>`,
    );
    y += ROW;
  }
  parts.push(`<line class="b" x1="${middle}" y1="32" x2="${middle}" y2="${y}"/>`);
  return svg(y + 10, parts);
}
