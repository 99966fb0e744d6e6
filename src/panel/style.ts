/** The page's only style sheet. Both colour schemes have a contrast of at least 4.5 : 1. */
export const STYLE = `:root {
  color-scheme: light dark;
  --ground: #fbfaf7; --card: #ffffff; --ink: #1d1b16; --soft: #575246; --line: #8a8373;
  --deep: #7a4a00; --on-deep: #ffffff; --good: #1b6b33; --bad: #a3201b; --focus: #0b57d0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #16150f; --card: #211f18; --ink: #f1eee4; --soft: #c1bbab; --line: #8f8875;
    --deep: #f2b950; --on-deep: #241800; --good: #83d69b; --bad: #ffb0a8; --focus: #9cc2ff;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 1rem; max-width: 46rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
header { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: .5rem 1rem; }
h1 { font-size: 1.4rem; line-height: 1.25; margin: 0; }
h2 { font-size: 1.1rem; line-height: 1.35; margin: 0 0 .25rem; }
p { margin: .5rem 0; }
.soft { color: var(--soft); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; margin: 1rem 0; }
.foreign { unicode-bidi: isolate; white-space: pre-wrap; margin: .25rem 0; max-height: 24rem; overflow: auto; }
.asked { font-size: 1.15rem; }
fieldset { border: 1px solid var(--line); border-radius: .4rem; margin: .75rem 0; padding: .25rem .75rem .5rem; }
legend, label.above { font-weight: 600; padding: 0 .25rem; }
label.above { display: block; padding: 0; margin-top: .75rem; }
label.choice { display: inline-flex; align-items: center; gap: .5rem; min-height: 2.75rem; margin-right: 1.25rem; cursor: pointer; }
input[type=radio] { width: 1.25rem; height: 1.25rem; margin: 0; accent-color: var(--deep); }
textarea, input[type=password] {
  width: 100%; font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--line);
  border-radius: .4rem; padding: .6rem;
}
textarea { min-height: 6.5rem; resize: vertical; }
button {
  font: inherit; font-weight: 600; min-height: 2.75rem; padding: .5rem 1.1rem; border-radius: .4rem; cursor: pointer;
  border: 1px solid var(--deep); background: var(--deep); color: var(--on-deep);
}
button.quiet { background: transparent; color: var(--ink); border-color: var(--line); font-weight: 400; }
button[disabled] { opacity: .6; cursor: progress; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
summary { cursor: pointer; min-height: 2.75rem; display: list-item; padding: .6rem 0; }
ul.replies { list-style: none; margin: 0; padding: 0; }
ul.replies li { border-top: 1px solid var(--line); padding: .5rem 0; }
.mark { font-weight: 600; }
.mark.positive { color: var(--good); }
.mark.negative { color: var(--bad); }
.fault { color: var(--bad); font-weight: 600; }
.narrow { max-width: 40rem; margin-left: auto; margin-right: auto; }
body > .narrow { margin-top: 3rem; }
.said { border-left: .3rem solid var(--deep); padding: .25rem .75rem; }
[role=status]:empty { display: none; }
[role=status] { border-left: .3rem solid var(--deep); padding: .25rem .75rem; margin: 1rem 0; }
progress { width: 100%; height: .6rem; accent-color: var(--deep); }
@media (prefers-reduced-motion: no-preference) { .card.new { animation: appear .4s ease-out; } }
@keyframes appear { from { opacity: 0; } }
@media (forced-colors: active) { .card, button { border: 1px solid; } }
`;
