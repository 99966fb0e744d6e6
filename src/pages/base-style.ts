import { tokens } from './design-tokens.js';

/** The styles that all pages with a sign-in share. */
export const BASE_STYLE = `${tokens()}* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 0 1rem 2rem; max-width: 46rem; background: var(--ground); color: var(--ink);
  font: var(--text)/var(--leading) var(--font); overflow-wrap: anywhere;
}
h1 { font-size: var(--text-2xl); line-height: var(--leading-tight); letter-spacing: -.01em; margin: 0; }
main:not(.card) > h1 { margin-top: 1.5rem; }
h2 { font-size: var(--text-l); line-height: 1.35; margin: 0 0 var(--space-1); }
p { margin: .5rem 0; }
main { outline: none; }
.bar {
  display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: .5rem 1rem;
  padding: .75rem 0; border-bottom: 1px solid var(--line);
}
.brand { display: inline-flex; align-items: center; gap: .6rem; min-height: var(--touch); font-weight: 700; color: inherit; text-decoration: none; margin-right: auto; }
.brand .soft { font-weight: 400; }
.coin {
  display: inline-grid; place-items: center; flex: none; width: 2rem; height: 2rem; border-radius: 50%;
  background: var(--accent); color: var(--on-accent); font-weight: 700;
}
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--card); color: inherit; padding: .5rem 1rem; z-index: 1; }
.soft { color: var(--soft); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: var(--radius); padding: 1rem; margin: 1rem 0; }
.narrow { max-width: 40rem; margin-left: auto; margin-right: auto; }
body > .narrow { margin-top: 2rem; padding: 1.5rem; }
#login button { margin-top: .5rem; }
::placeholder { color: var(--soft); opacity: 1; }
.said { border-left: .3rem solid var(--accent); padding: .25rem .75rem; }
.said:empty, .fault:empty { display: none; }
.fault { color: var(--bad); font-weight: 600; }
.foreign { unicode-bidi: isolate; white-space: pre-wrap; margin: .25rem 0; }
.foreign[tabindex] { max-height: 24rem; overflow: auto; }
.mark { font-weight: 600; }
.mark.positive { color: var(--good); }
.mark.negative { color: var(--bad); }
fieldset { border: 0; margin: 1rem 0; padding: 0; min-width: 0; }
legend, label.above { font-weight: 600; padding: 0; margin-bottom: .35rem; }
label.above { display: block; margin-top: .75rem; }
textarea, input[type=password] {
  width: 100%; font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--edge);
  border-radius: var(--radius-s); padding: .6rem; min-height: var(--touch);
}
textarea { min-height: 6.5rem; resize: vertical; display: block; }
button {
  font: inherit; font-weight: 600; min-height: var(--touch); padding: .5rem 1.1rem; border-radius: var(--radius-s); cursor: pointer;
  border: 1px solid var(--accent); background: var(--accent); color: var(--on-accent);
}
button.quiet { background: transparent; color: var(--ink); border-color: var(--edge); font-weight: 400; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
summary { cursor: pointer; min-height: var(--touch); display: list-item; padding: .6rem 0; }
@media (forced-colors: active) { .card, button, .coin { border: 1px solid; } }
`;
