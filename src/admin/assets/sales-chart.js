'use strict';

/** Charts by figure. */
const drawn = new Map();
const HEIGHT = 240;
const HOUR = 3_600;
const DAY = 86_400;
/** Seconds between two marks on the time axis. */
const STEPS = { hour: [1, 2, 3, 6, 12].map(n => n * HOUR), day: [1, 2, 7, 14, 30].map(n => n * DAY) };

/**
 * Draws the chart of a figure from its table, with stacked operations. The values under the pointer are shown next to it. Without the
 * library there is only the table.
 * @param {Element} element
 */
function drawChart(element) {
  const figure = /** @type {HTMLElement} */ (element);
  for (const [old, chart] of drawn) {
    if (old.isConnected && old !== figure) continue;
    chart.destroy();
    drawn.delete(old);
  }
  /** @type {HTMLElement} */
  const place = figure.querySelector('.plot');
  if (!place || typeof uPlot === 'undefined') return;
  const read = numbersOf(figure);
  const options = optionsOf(figure, place, read);
  // The highest series is drawn first, the others over it.
  const stacked = read.values.map((_, n) =>
    read.times.map((_time, at) => read.values.slice(0, n + 1).reduce((sum, of) => sum + of[at], 0)),
  );
  const chart = new uPlot(options, [read.times, ...stacked.reverse()], place);
  drawn.set(figure, chart);
  const resized = new ResizeObserver(() => {
    const width = place.clientWidth;
    if (!place.isConnected) resized.disconnect();
    else if (width > 0 && width !== chart.width) chart.setSize({ width, height: HEIGHT });
  });
  resized.observe(place);
}

/** The rows, oldest first. @param {HTMLElement} figure */
function numbersOf(figure) {
  const rows = [...figure.querySelectorAll('tbody tr')].reverse();
  const cellsOf = row => [...row.querySelectorAll('td')].map(cell => cell.textContent);
  const heads = [...figure.querySelectorAll('thead th')].slice(1).map(head => head.textContent);
  const cells = rows.map(cellsOf);
  const names = heads.slice(0, -2);
  return {
    names,
    heads,
    cells,
    labels: rows.map(row => row.querySelector('th').textContent),
    times: rows.map(row => Number(row.querySelector('th').dataset.at)),
    values: names.map((_, n) => cells.map(each => Number(each[n]))),
  };
}

/** @param {HTMLElement} figure @param {HTMLElement} place @returns {import('uplot').Options} */
function optionsOf(figure, place, read) {
  const css = getComputedStyle(figure);
  const colour = name => css.getPropertyValue(name).trim();
  const fills = [...figure.querySelectorAll('.swatch')].map(each => getComputedStyle(each).backgroundColor);
  const isHours = figure.dataset.unit === 'hour';
  const unit = isHours ? HOUR : DAY;
  const font = `12px ${css.fontFamily}`;
  const axis = { stroke: colour('--soft'), font, ticks: { stroke: colour('--line'), width: 1 } };
  /** @type {Intl.DateTimeFormatOptions} */
  const look = isHours ? { hour: '2-digit', minute: '2-digit' } : { day: 'numeric', month: 'short' };
  const named = new Intl.DateTimeFormat('en-GB', { ...look, timeZone: 'UTC' });
  const { times } = read;
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.hidden = true;
  return {
    width: place.clientWidth || 300,
    height: HEIGHT,
    tzDate: at => uPlot.tzDate(new Date(at * 1_000), 'Etc/UTC'),
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { range: () => [times[0] - 0.6 * unit, times[times.length - 1] + 0.6 * unit] },
      y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.06 : 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 64,
        incrs: isHours ? STEPS.hour : STEPS.day,
        values: (_u, marks) => marks.map(at => named.format(at * 1_000)),
      },
      {
        ...axis,
        ticks: { show: false },
        grid: { stroke: colour('--line'), width: 1 },
        size: 58,
        values: (_u, marks) => marks.map(mark => mark.toLocaleString('en', { maximumFractionDigits: 6 })),
      },
    ],
    series: [
      {},
      ...fills
        .map((fill, n) => ({
          label: read.names[n],
          fill,
          stroke: colour('--card'),
          width: 1,
          points: { show: false },
          paths: uPlot.paths.bars({ size: [0.78, 48] }),
        }))
        .reverse(),
    ],
    hooks: {
      init: [u => void u.over.append(tip)],
      setCursor: [u => showTip(u, tip, read, times)],
    },
  };
}

/** The sales of the hour or day under the pointer. */
function showTip(chart, tip, { heads, cells, labels }, times) {
  const { idx } = chart.cursor;
  tip.hidden = idx === null || idx === undefined;
  if (tip.hidden) return;
  const line = text => {
    const element = document.createElement('div');
    element.textContent = text;
    return element;
  };
  const shown = heads.map((head, n) => [head, cells[idx][n]]).filter(([, value]) => Number(value) > 0);
  tip.replaceChildren(
    line(labels[idx]),
    ...(shown.length > 0 ? shown : [['Sales', '0']]).map(([head, value]) => line(`${head}: ${value}`)),
  );
  const left = chart.valToPos(times[idx], 'x');
  const isRight = left > chart.over.clientWidth / 2;
  tip.style.left = isRight ? 'auto' : `${left + 12}px`;
  tip.style.right = isRight ? `${chart.over.clientWidth - left + 12}px` : 'auto';
}
