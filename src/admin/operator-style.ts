import { BASE_STYLE } from '../pages/base-style.js';

/** The style sheet of the operator page: a wider page, tables, charts and states. */
export const STYLE = `${BASE_STYLE}
body { max-width: 76rem; font-variant-numeric: tabular-nums; }
a { color: inherit; text-underline-offset: .15em; }
code, .id { font-family: var(--mono); font-size: .92em; }
.bar { flex-wrap: nowrap; }
.places { display: flex; gap: var(--space-1); }
.places a {
  display: inline-flex; align-items: center; min-height: var(--touch); padding: 0 var(--space-2); text-decoration: none; color: var(--soft);
}
.places a:hover { color: var(--ink); text-decoration: underline; }
.search { display: flex; gap: var(--space-2); flex: 0 1 24rem; }
button { white-space: nowrap; flex: none; }
input[type=search], input[type=text], input[type=date], select {
  width: 100%; min-width: 0; font: inherit; color: inherit; background: var(--card); border: 1px solid var(--edge);
  border-radius: var(--radius-s); padding: var(--space-2) .6rem; min-height: var(--touch);
}
.headline { padding-top: var(--space-4); }
main:has(#headline) { display: grid; grid-template-columns: repeat(12, minmax(0, 1fr)); gap: var(--space-4); }
main > [data-part] { grid-column: 1 / -1; }
main:has(#headline) .card { margin: 0; min-width: 0; }
.card { padding: var(--space-4) 1.25rem 1.25rem; }
.card h2 { margin-bottom: var(--space-3); }
h3 { font-size: var(--text); margin: 1.25rem 0 var(--space-2); }
h2 + h3 { margin-top: 0; }
.needs { list-style: none; margin: 0; padding: 0; }
.needs li { display: grid; grid-template-columns: 6.5rem minmax(0, 1fr); gap: var(--space-1) var(--space-3); padding: .6rem 0; border-top: 1px solid var(--line); }
.needs li:first-child { border-top: 0; padding-top: 0; }
.needs .badge { justify-self: start; align-self: start; }
.needs strong { font-weight: 600; }
ul.plain { margin: var(--space-2) 0 var(--space-4); padding-left: 1.2rem; }
.files a { margin-right: var(--space-3); }
.empty { border: 1px dashed var(--edge); border-radius: var(--radius); padding: var(--space-5) var(--space-4); text-align: center; }
.periods { display: flex; flex-wrap: wrap; gap: var(--space-2); margin-bottom: var(--space-3); }
.periods a {
  display: inline-flex; align-items: center; min-height: var(--touch); padding: 0 .9rem; border: 1px solid var(--edge); border-radius: var(--radius-s);
  text-decoration: none;
}
.periods a[aria-current] { background: var(--accent); color: var(--on-accent); border-color: var(--accent); font-weight: 600; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: var(--space-3); margin-bottom: var(--space-3); }
.tile { display: flex; flex-direction: column; background: var(--tint); border-radius: var(--radius-s); padding: .6rem .9rem .7rem; }
.tile strong { font-size: var(--text-xl); line-height: 1.3; }
.tile .soft { font-size: var(--text-s); }
figure { margin: 0; min-width: 0; }
figcaption { font-size: var(--text-s); color: var(--soft); }
.plot { min-height: 15rem; }
.plot:empty { display: none; }
.uplot { font-family: var(--font); }
.u-hz .u-cursor-x { border-color: var(--edge); }
.tip {
  position: absolute; top: .25rem; z-index: 1; pointer-events: none; background: var(--card); color: var(--ink); border: 1px solid var(--edge);
  border-radius: var(--radius-s); padding: var(--space-1) var(--space-2); font-size: var(--text-xs); white-space: nowrap;
}
.tip div:first-child { font-weight: 600; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: var(--space-1) var(--space-4); margin: var(--space-2) 0 0; padding: 0; font-size: var(--text-s); }
.swatch { display: inline-block; width: .75rem; height: .75rem; border-radius: .15rem; margin-right: .35rem; }
${[1, 2, 3, 4, 5, 6, 7].map(n => `.of-${n} { background: var(--series-${n}); }`).join(' ')}
.chart summary { font-size: var(--text-s); color: var(--soft); }
.chart details .scroll { max-height: 20rem; }
.chart td { white-space: nowrap; }
.filter { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: var(--space-3); align-items: end; }
.filter label { font-size: var(--text-s); font-weight: 600; display: grid; gap: var(--space-1); }
.filter input, .filter select { font-weight: 400; }
.filter .actions { margin: 0; }
.scroll { overflow: auto; border-radius: .3rem; }
table { border-collapse: collapse; width: 100%; overflow-wrap: normal; }
th, td { text-align: left; padding: var(--space-2) var(--space-5) var(--space-2) 0; border-top: 1px solid var(--line); vertical-align: top; }
thead th { border-top: 0; font-size: var(--text-s); font-weight: 600; color: var(--soft); white-space: nowrap; }
tbody th { font-weight: 400; white-space: nowrap; }
td:first-child, td:first-child a, td time { white-space: nowrap; }
.number { text-align: right; white-space: nowrap; }
td:last-child, th:last-child { padding-right: 0; }
td:last-child { overflow-wrap: anywhere; }
#healthy td:last-child { width: 45%; }
.badge { display: inline-block; border-radius: var(--round); padding: .05rem .65rem; font-size: var(--text-xs); font-weight: 600; white-space: nowrap; vertical-align: .08em; }
.badge.good { color: var(--good); background: var(--good-ground); }
.badge.warn { color: var(--warn); background: var(--warn-ground); }
.badge.bad { color: var(--bad); background: var(--bad-ground); }
.badge.plain { color: var(--soft); background: var(--plain-ground); }
.actions { display: flex; flex-wrap: wrap; gap: var(--space-3); margin-top: var(--space-4); }
a.button {
  display: inline-flex; align-items: center; font-weight: 600; min-height: var(--touch); padding: var(--space-2) 1.1rem; border-radius: var(--radius-s);
  border: 1px solid var(--accent); background: var(--accent); color: var(--on-accent); text-decoration: none;
}
a.button.quiet { background: transparent; color: var(--ink); border-color: var(--edge); font-weight: 400; }
ol.items { list-style: none; margin: 0; padding: 0; }
ol.items li { border-top: 1px solid var(--line); padding: .6rem 0; }
ol.items li:first-child { border-top: 0; padding-top: 0; }
.given { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: var(--space-1) var(--space-4); }
.given p { margin: 0; }
.quoted { background: var(--tint); border-radius: var(--radius-s); padding: .6rem var(--space-3); margin: var(--space-3) 0; }
.history { list-style: none; margin: 0; padding: 0; }
.history li { display: flex; flex-wrap: wrap; gap: .1rem var(--space-4); padding: .45rem 0 .45rem var(--space-4); border-left: 2px solid var(--series-2); }
.history time { color: var(--soft); white-space: nowrap; }
label.above + input { margin-bottom: var(--space-3); }
.pay { display: flex; flex-wrap: wrap; gap: var(--space-4); align-items: flex-start; margin: var(--space-4) 0; }
.pay > div { flex: 1 1 14rem; min-width: 0; }
.pay p:first-child { margin-top: 0; }
svg.qr { width: 15rem; height: auto; max-width: 100%; border-radius: var(--radius-s); background: var(--paper); flex: none; }
dl { margin: 0; }
dl > div { display: grid; grid-template-columns: 14rem 1fr; gap: .1rem var(--space-4); padding: .45rem 0; border-top: 1px solid var(--line); }
dl > div:first-child { border-top: 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
@media (min-width: 62rem) {
  main > #buyers { grid-column: 1 / 8; } main > #orders { grid-column: 8 / -1; }
}
@media (max-width: 52rem) {
  .bar { flex-wrap: wrap; }
  .search { order: 3; flex: 1 1 100%; }
}
@media (max-width: 40rem) {
  .brand .soft { display: none; }
  .places { order: 2; flex: 1 1 100%; margin-left: calc(-1 * var(--space-2)); }
  .card { padding: var(--space-4) var(--space-4) var(--space-4); }
  .needs li { grid-template-columns: minmax(0, 1fr); }
  .periods { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); }
  .periods a { justify-content: center; padding: 0; font-size: var(--text-s); }
  .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .tile:last-child:nth-child(odd) { grid-column: 1 / -1; }
  dl > div { grid-template-columns: 1fr; }
  table.cards, table.cards tbody, table.cards tr, table.cards td { display: block; }
  table.cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table.cards tr { border-top: 1px solid var(--line); padding: var(--space-2) 0; }
  table.cards tbody tr:first-child { border-top: 0; }
  table.cards td:last-child, #healthy td:last-child { width: auto; }
  table.cards td { border: 0; padding: .1rem 0; text-align: right; display: flex; justify-content: space-between; gap: var(--space-4); white-space: normal; }
  table.cards td:empty { display: none; }
  table.cards td::before { content: attr(data-title); color: var(--soft); text-align: left; flex: none; }
  table.payments tr { display: grid; grid-template-columns: 1fr auto; column-gap: var(--space-4); }
  table.payments td { display: block; text-align: left; }
  table.payments td:nth-child(even) { text-align: right; }
  table.payments td::before { content: none; }
  table.files td { display: block; text-align: left; }
  table.files td::before { content: none; }
  table.buyers tr { display: grid; grid-template-columns: 1fr 1fr auto; column-gap: var(--space-4); }
  table.buyers td { display: block; text-align: left; }
  table.buyers td::before { content: none; }
  table.buyers td[data-title="Payer"] { grid-column: 1 / 3; }
  table.buyers td[data-title="USDC"], table.buyers td[data-title="Last"] { text-align: right; }
  table.buyers td[data-title="USDC"]::after { content: ' USDC'; color: var(--soft); }
  table.buyers td[data-title="Sales"]::after { content: ' sales'; color: var(--soft); }
  table.buyers td[data-title="Days"]::after { content: ' days'; color: var(--soft); }
  table.buyers td[data-title="Hours"]::after { content: ' hours'; color: var(--soft); }
  table.payments td[data-title="USDC"]::after { content: ' USDC'; color: var(--soft); }
}
@media (forced-colors: active) { .badge, a.button, .tile, .periods a { border: 1px solid; } .swatch { forced-color-adjust: none; } }
`;
