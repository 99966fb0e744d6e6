import { tokens } from '../pages/design-tokens.js';
import type { OwnWords } from './own-words.js';

/** The style sheet of the landing page, in the colours of the shop. */
export function siteStyle({ colour }: OwnWords): string {
  return tokens(colour) + RULES;
}

const RULES = `* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; scroll-padding-top: 5rem; }
@media (prefers-reduced-motion: no-preference) { html { scroll-behavior: smooth; } }
body { margin: 0; background: var(--ground); color: var(--ink); font: var(--text)/1.6 var(--font); overflow-wrap: break-word; }
.wide { max-width: 70rem; margin: 0 auto; padding: 0 1.25rem; }
h1 { font-size: var(--text-3xl); line-height: 1.12; letter-spacing: -.02em; margin: 0 0 1rem; text-wrap: balance; }
h2 { font-size: var(--text-2xl); line-height: 1.2; letter-spacing: -.01em; margin: 0 0 1.5rem; }
h3 { font-size: var(--text-l); line-height: 1.35; margin: 0 0 .25rem; }
p { margin: .5rem 0; }
a { color: inherit; text-underline-offset: .2em; }
code, pre { font-family: var(--mono); font-size: .9em; }
code { overflow-wrap: anywhere; }
.soft { color: var(--soft); }
.skip { position: absolute; left: -999rem; }
.skip:focus { left: 1rem; top: 1rem; z-index: 2; background: var(--card); padding: .75rem 1rem; }
.bar { position: sticky; top: 0; z-index: 1; background: var(--ground); border-bottom: 1px solid var(--line); }
.bar .wide { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 0 1.5rem; min-height: 4rem; }
.brand { display: inline-flex; align-items: center; gap: .6rem; font-weight: 700; font-size: var(--text-l); text-decoration: none; min-height: var(--touch); }
.coin {
  display: inline-grid; place-items: center; width: 2rem; height: 2rem; border-radius: 50%; background: var(--accent);
  color: var(--on-accent); box-shadow: inset 0 0 0 2px var(--accent), inset 0 0 0 3px var(--on-accent);
}
nav { display: flex; flex-wrap: wrap; gap: 0 1.25rem; }
nav a { display: inline-flex; align-items: center; min-height: var(--touch); text-decoration: none; color: var(--soft); }
nav a:hover { color: var(--ink); text-decoration: underline; }
section { padding: 3rem 0; }
.hero { padding: 3.5rem 0; background: var(--tint); border-bottom: 1px solid var(--line); }
.lead { font-size: var(--text-l); color: var(--soft); max-width: 40rem; }
.tinted { background: var(--tint); border-block: 1px solid var(--line); }
.split { display: grid; gap: 1.5rem 3rem; grid-template-columns: minmax(0, 1fr); }
.split > * { min-width: 0; }
.even { gap: 1rem; margin-top: 1rem; }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0 0; }
.button, button {
  display: inline-flex; align-items: center; min-height: var(--touch); padding: .5rem 1.1rem; border-radius: var(--radius-s); cursor: pointer;
  font: inherit; font-weight: 600; text-decoration: none; border: 1px solid var(--edge); background: var(--accent); color: var(--on-accent);
}
.button.quiet, button.quiet { background: transparent; color: var(--ink); }
.button:hover, button:hover { text-decoration: underline; }
button[disabled] { opacity: .6; cursor: progress; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: var(--radius-l); padding: 1.5rem; margin: 1.5rem 0 0; }
.call { margin: 0; color: var(--soft); }
figure { margin: 0; position: relative; min-width: 0; }
figcaption { font-weight: 600; font-size: var(--text-s); margin-bottom: .35rem; min-height: 1.6rem; padding-right: 5rem; }
pre {
  margin: 0; padding: 1rem; background: var(--code); color: var(--on-code); border-radius: var(--radius); overflow: auto; max-height: 24rem;
  line-height: 1.5; white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid var(--line);
}
.copy {
  position: absolute; right: 0; top: -.35rem; min-height: 1.9rem; padding: .1rem .7rem; font-size: var(--text-xs); font-weight: 500;
  background: transparent; color: var(--ink); border-color: var(--line);
}
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .65rem 1.25rem .65rem 0; border-top: 1px solid var(--line); font-weight: 400; }
thead :is(th, td) { border-top: 0; color: var(--soft); font-size: var(--text-s); }
.buy { padding: 0; }
.paywall .split { align-items: start; }
.paywall .card { margin: 0; }
.paywall h1 { font-size: var(--text-2xl); line-height: var(--leading-tight); }
.price-tag { margin: 0 0 1rem; }
.price-tag strong { font-size: var(--text-2xl); font-variant-numeric: tabular-nums; }
.price-tag span, .hint { color: var(--soft); font-size: var(--text-s); }
.hint { margin: .25rem 0 0; }
.field { margin-bottom: var(--space-4); }
.field > label { margin: 0; }
select { width: 100%; font: inherit; min-height: var(--touch); color: inherit; background: var(--ground); border: 1px solid var(--edge); border-radius: var(--radius-s); padding: .5rem .75rem; margin-top: .25rem; }
button img { margin-right: .5rem; border-radius: var(--radius-s); }
.pay { margin-top: var(--space-4); }
.pay button:not(.quiet) { flex: 1 1 auto; justify-content: center; }
.say[data-kind=bad] { border-color: var(--bad); }
.say[data-kind=good] { border-color: var(--good); }
.result:empty { display: none; }
.result:focus { outline: none; }
.result audio, .result video, .result img { display: block; max-width: 100%; width: 100%; }
.result img { width: auto; }
.facts-list, .json { display: grid; grid-template-columns: fit-content(40%) minmax(0, 1fr); gap: .25rem 1rem; margin: .5rem 0; }
:is(.facts-list, .json) dt { color: var(--soft); overflow-wrap: anywhere; }
:is(.facts-list, .json) dd { margin: 0; overflow-wrap: anywhere; }
.json { border-left: 2px solid var(--line); padding-left: var(--space-3); }
.json summary { padding: 0; min-height: 1.6rem; font-weight: 400; color: var(--soft); }
.json-text { white-space: pre-wrap; }
.json-value { font-family: var(--mono); font-size: .9em; }
.fault-page h1 { font-size: var(--text-2xl); }
.operations { list-style: none; margin: 0; padding: 0; }
.operations li { border-top: 1px solid var(--line); }
.operations li:first-child { border-top: 0; }
.operations a { display: grid; grid-template-columns: minmax(0, 1fr) max-content; gap: 0 1rem; padding: .5rem 0; min-height: var(--touch); text-decoration: none; align-content: center; }
.operations a:hover span { text-decoration: underline; }
.operations strong { font-variant-numeric: tabular-nums; white-space: nowrap; }
.operations code { grid-column: 1 / -1; color: var(--soft); }
.hero .operations { background: var(--card); border: 1px solid var(--line); border-radius: var(--radius-l); padding: .5rem 1.25rem; }
.group { border-top: 1px solid var(--line); }
.group .operations { padding-left: 1rem; }
.search { max-width: 34rem; margin-bottom: 1rem; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.tabs fieldset { border-bottom: 1px solid var(--line); gap: 0 .25rem; }
.tabs fieldset label { padding: 0 1rem; border-bottom: 3px solid transparent; }
.tabs fieldset label:has(:checked) { border-bottom-color: var(--accent); }
.tabs fieldset label:has(:focus-visible) { outline: 3px solid var(--focus); outline-offset: -3px; }
.tabs input[type=radio] { appearance: none; width: 0; height: 0; margin: 0; outline: none; }
.tabs pre { max-height: 26rem; }
.tab { display: none; }
.why { flex-basis: 100%; color: var(--soft); font-size: var(--text-s); overflow-wrap: anywhere; }
summary { cursor: pointer; min-height: var(--touch); padding: .6rem 0; font-weight: 600; }
label { font-weight: 600; display: block; margin-top: .75rem; }
input:not([type=radio]), textarea {
  width: 100%; font: var(--text)/1.5 var(--font); color: inherit; background: var(--ground);
  border: 1px solid var(--edge); border-radius: var(--radius-s); padding: .65rem .75rem; margin-top: .25rem;
}
#try .even, .tab figure { margin-top: var(--space-3); }
.even { align-items: start; }
#try .card { margin: 0; }
textarea { resize: vertical; display: block; field-sizing: content; min-height: 4lh; max-height: 24rem; }
.code-entry { font: .9em/1.5 var(--mono); }
input[type=number] { font-variant-numeric: tabular-nums; }
.say:empty { display: none; }
.say { border-left: .3rem solid var(--accent); padding: .35rem 1rem; margin: 1rem 0; }
fieldset { border: 0; padding: 0; margin: 0 0 1rem; display: flex; flex-wrap: wrap; gap: 0 1.5rem; }
legend { font-weight: 600; padding: 0; }
fieldset label { display: inline-flex; align-items: center; gap: .5rem; min-height: var(--touch); margin: 0; cursor: pointer; font-weight: 500; }
input[type=radio] { width: 1.15rem; height: 1.15rem; margin: 0; accent-color: var(--focus); }
${['agent', 'code', 'mcp'].map(id => `.tabs:has(#tab-${id}:checked) .of-${id}`).join(', ')} { display: block; }
.backends { list-style: none; padding: 0; display: grid; gap: .5rem 2rem; grid-template-columns: repeat(auto-fill, minmax(min(14rem, 100%), 1fr)); }
.backends:empty { display: none; }
.backends li { border-top: 1px solid var(--line); padding-top: .5rem; display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem; }
.ok { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
nav[aria-label="On this page"] ul { list-style: none; margin: 0 0 1.5rem; padding: 0; display: flex; flex-wrap: wrap; gap: 0 1.5rem; }
.guide { padding: 2.5rem 0 3rem; }
.guide .wide > :is(p, ul, ol, h2, h3, pre, blockquote) { max-width: 50rem; }
.guide h1 { font-size: var(--text-2xl); }
.guide h2 { font-size: var(--text-xl); margin: 2.5rem 0 .75rem; }
.guide h3 { margin: 1.75rem 0 .5rem; }
.guide :is(p, li) { overflow-wrap: anywhere; }
.guide pre { max-height: none; margin: 1rem 0; }
.guide .scroll { margin: 1rem 0; }
.guide td { min-width: 8rem; }
footer { border-top: 1px solid var(--line); padding: 2rem 0 3rem; color: var(--soft); background: var(--tint); }
footer ul { list-style: none; padding: 0; margin: .5rem 0 0; display: flex; flex-wrap: wrap; gap: 0 1.5rem; }
footer li { display: inline-flex; align-items: center; min-height: var(--touch); }
footer a { display: inline-flex; align-items: center; min-height: var(--touch); }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
[hidden] { display: none !important; }
@media (min-width: 52rem) {
  .hero .split { grid-template-columns: minmax(0, 7fr) minmax(0, 5fr); }
  .paywall .split { grid-template-columns: minmax(0, 5fr) minmax(0, 6fr); }
  .groups { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 2.5rem; align-items: start; }
  .even { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
}
@media (max-width: 30rem) {
  .bar { position: static; }
  nav { gap: 0 .9rem; font-size: var(--text-s); }
  section, .hero { padding: 2.5rem 0; }
  .card { padding: 1.1rem; }
}
@media (forced-colors: active) {   .coin { border: 1px solid; } }
`;
