import { escapeHtml } from '../pages/escape.js';

/** One bar. `label` names it in full, `value` is its height in any unit, `shown` its value for people. */
export type Bar = { label: string; value: number; shown: string };

const WIDTH = 10;
const GAP = 2;
const HEIGHT = 100;
/** A value that is not zero can be seen. */
const LEAST = 2;

/**
 * A bar chart with its title, its greatest value and its first and last label. The texts stand beside the drawing, so that they keep
 * their size on a narrow screen. The numbers are in a table for those who cannot see it.
 */
export function barChart(title: string, unit: string, bars: readonly Bar[], total: string): string {
  const most = Math.max(...bars.map(({ value }) => value), 0);
  const best = bars.find(({ value }) => value === most);
  const rects = bars
    .map(({ label, value, shown }, index) => {
      const height = value > 0 ? Math.max((value / most) * HEIGHT, LEAST) : 0;
      const last = index === bars.length - 1 ? ' class="now"' : '';
      const x = index * WIDTH + GAP / 2;
      return `<rect${last} x="${x}" y="${(HEIGHT - height).toFixed(2)}" width="${WIDTH - GAP}" height="${height.toFixed(2)}"><title>${escapeHtml(`${label}: ${shown}`)}</title></rect>`;
    })
    .join('');
  const peak = most > 0 && best ? `most: ${best.shown}, ${best.label}` : 'none yet';
  return `<figure class="chart">
<figcaption><span class="chart-title">${escapeHtml(title)}</span> <strong>${escapeHtml(total)}</strong></figcaption>
<svg viewBox="0 0 ${bars.length * WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${escapeHtml(
    `${title} by day: ${total}, ${peak}`,
  )}"><line x1="0" y1="${HEIGHT}" x2="${bars.length * WIDTH}" y2="${HEIGHT}"/>${rects}</svg>
<div class="axis soft" aria-hidden="true"><span>${escapeHtml(bars[0]?.label ?? '')}</span><span>${escapeHtml(peak)}</span><span>today</span></div>
<details><summary>Numbers</summary>
<div class="scroll" tabindex="0" role="region" aria-label="${escapeHtml(title)} by day"><table><thead><tr><th scope="col">Day</th><th scope="col" class="number">${escapeHtml(unit)}</th></tr></thead>
<tbody>${bars
    .toReversed()
    .map(
      ({ label, shown }) =>
        `<tr><th scope="row">${escapeHtml(label)}</th><td class="number">${escapeHtml(shown)}</td></tr>`,
    )
    .join('')}</tbody></table></div></details>
</figure>`;
}
