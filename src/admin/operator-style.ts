import { BASE_STYLE } from '../pages/base-style.js';

/** The style sheet of the operator page: a wider page, tables, charts and states. */
export const STYLE = `${BASE_STYLE}
body { max-width: 76rem; font-variant-numeric: tabular-nums; }
a { color: inherit; text-underline-offset: .15em; }
code, .id { font-family: var(--mono); font-size: .92em; }
.bar { flex-wrap: nowrap; }
.search { display: flex; gap: .5rem; flex: 0 1 26rem; }
button { white-space: nowrap; flex: none; }
input[type=search], input[type=text] {
  width: 100%; min-width: 0; font: inherit; color: inherit; background: var(--card); border: 1px solid var(--edge);
  border-radius: .4rem; padding: .5rem .6rem; min-height: 2.75rem;
}
.headline { padding-top: 1.25rem; }
main:has(#headline) { display: grid; grid-template-columns: repeat(12, minmax(0, 1fr)); gap: 1rem; }
main > [data-part] { grid-column: 1 / -1; }
main:has(#headline) .card { margin: 0; min-width: 0; }
.card h2 { margin-bottom: .75rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .5rem; }
h2 + h3 { margin-top: 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem; margin-bottom: .75rem; }
.tile { display: flex; flex-direction: column; background: var(--ground); border-radius: .5rem; padding: .6rem .9rem .7rem; }
.tile strong { font-size: 1.5rem; line-height: 1.3; }
.tile .soft { font-size: .88rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1.5rem; }
figure { margin: 0; min-width: 0; }
figcaption { display: flex; align-items: baseline; gap: .6rem; }
figcaption strong { font-size: 1.25rem; }
.chart svg { display: block; width: 100%; height: 8.5rem; margin-top: .5rem; }
.chart rect { fill: var(--series-2); }
.chart rect.now { fill: var(--accent); }
.chart line { stroke: var(--edge); stroke-width: 1; vector-effect: non-scaling-stroke; }
.axis { display: flex; justify-content: space-between; gap: 1rem; font-size: .82rem; margin-top: .25rem; }
.chart summary { font-size: .9rem; color: var(--soft); }
.chart details .scroll { max-height: 16rem; }
.scroll { overflow: auto; border-radius: .3rem; }
table { border-collapse: collapse; width: 100%; overflow-wrap: normal; }
th, td { text-align: left; padding: .5rem 1.5rem .5rem 0; border-top: 1px solid var(--line); vertical-align: top; }
thead th { border-top: 0; font-size: .85rem; font-weight: 600; color: var(--soft); white-space: nowrap; }
tbody th { font-weight: 400; }
td:first-child, td:first-child a, td time { white-space: nowrap; }
.number { text-align: right; white-space: nowrap; }
td:last-child, th:last-child { padding-right: 0; }
td:last-child { overflow-wrap: anywhere; }
#facilitators td:last-child, #upstreams td:last-child { width: 50%; }
.badge { display: inline-block; border-radius: 1rem; padding: .05rem .65rem; font-size: .85rem; font-weight: 600; white-space: nowrap; vertical-align: .08em; }
.badge.good { color: var(--good); background: var(--good-ground); }
.badge.warn { color: var(--warn); background: var(--warn-ground); }
.badge.bad { color: var(--bad); background: var(--bad-ground); }
.badge.plain { color: var(--soft); background: var(--plain-ground); }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 1rem; }
a.button {
  display: inline-flex; align-items: center; font-weight: 600; min-height: 2.75rem; padding: .5rem 1.1rem; border-radius: .4rem;
  border: 1px solid var(--accent); background: var(--accent); color: var(--on-accent); text-decoration: none;
}
a.button.quiet { background: transparent; color: var(--ink); border-color: var(--edge); font-weight: 400; }
ol.items { list-style: none; margin: 0; padding: 0; }
ol.items li { border-top: 1px solid var(--line); padding: .6rem 0; }
ol.items li:first-child { border-top: 0; padding-top: 0; }
.given { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: .25rem 1rem; }
.given p { margin: 0; }
.quoted { background: var(--ground); border-radius: .4rem; padding: .6rem .75rem; margin: .75rem 0; }
.history { list-style: none; margin: 0; padding: 0; }
.history li { display: flex; flex-wrap: wrap; gap: .1rem 1rem; padding: .45rem 0 .45rem 1rem; border-left: 2px solid var(--series-2); }
.history time { color: var(--soft); white-space: nowrap; }
dl { margin: 0; }
dl > div { display: grid; grid-template-columns: 14rem 1fr; gap: .1rem 1rem; padding: .45rem 0; border-top: 1px solid var(--line); }
dl > div:first-child { border-top: 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
@media (min-width: 62rem) {
  main > #today { grid-column: 1 / 8; } main > #orders { grid-column: 8 / -1; }
}
@media (max-width: 40rem) {
  .bar { flex-wrap: wrap; }
  .brand .soft { display: none; }
  .search { order: 3; flex: 1 1 100%; }
  .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  dl > div { grid-template-columns: 1fr; }
  table.cards, table.cards tbody, table.cards tr, table.cards td { display: block; }
  table.cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table.cards tr { border-top: 1px solid var(--line); padding: .5rem 0; }
  table.cards tbody tr:first-child { border-top: 0; }
  table.cards td:last-child, #facilitators td:last-child, #upstreams td:last-child { width: auto; }
  table.cards td { border: 0; padding: .1rem 0; text-align: right; display: flex; justify-content: space-between; gap: 1rem; white-space: normal; }
  table.cards td:empty { display: none; }
  table.cards td::before { content: attr(data-title); color: var(--soft); text-align: left; flex: none; }
  table.payments tr { display: grid; grid-template-columns: 1fr auto; column-gap: 1rem; }
  table.payments td { display: block; text-align: left; }
  table.payments td:nth-child(even) { text-align: right; }
  table.payments td::before { content: none; }
  table.payments td[data-title="USDC"]::after { content: ' USDC'; color: var(--soft); }
  #sales table.payments tr:nth-child(n+11) { display: none; }
}
@media (forced-colors: active) { .badge, a.button, .tile { border: 1px solid; } .chart rect { fill: CanvasText; } .chart rect.now { fill: Highlight; } }
`;
