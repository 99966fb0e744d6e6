import { BASE_STYLE } from 'coinslot';

/** The style sheet of the panel. */
export const STYLE = `${BASE_STYLE}
.lead { margin: .25rem 0 1.25rem; }
.question { padding: 0; margin: .75rem 0; }
.question summary { display: grid; grid-template-columns: 1fr auto; gap: .1rem 1rem; padding: .8rem 1rem; list-style: none; border-radius: var(--radius); }
.question summary::-webkit-details-marker { display: none; }
.question summary > * { grid-column: 1; min-width: 0; }
.question summary h2 { margin: 0; }
.question summary::after {
  content: ''; grid-column: 2; grid-row: 1; align-self: center; width: .55rem; height: .55rem; margin-right: .2rem;
  border: solid var(--soft); border-width: 0 2px 2px 0; transform: rotate(45deg);
}
.question details[open] > summary::after { transform: rotate(225deg); }
.question summary:hover h2 { text-decoration: underline; text-underline-offset: .15em; }
.question summary:focus-visible { outline-offset: -3px; }
.excerpt { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; unicode-bidi: isolate; }
.question details[open] .excerpt { display: none; }
.state { font-size: .9rem; }
.question:is([data-state=answered], [data-done=answered]) .state::before { content: '✓ ' / ''; color: var(--good); font-weight: 700; }
.draft details:not([open]) .state::after { content: ' · unsent text'; color: var(--bad); font-weight: 600; }
.body { padding: 0 1rem 1rem; }
.asked { font-size: 1.2rem; line-height: 1.45; margin: .25rem 0 1rem; }
.hint { font-size: .9rem; margin: .35rem 0 0; }
.choices { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: .5rem; max-width: 30rem; }
.choice { position: relative; display: grid; min-height: 3rem; }
.choice input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0; cursor: pointer; }
.choice span {
  display: grid; place-items: center; padding: .5rem .25rem; border: 1px solid var(--edge); border-radius: var(--radius-s);
  background: var(--ground); text-align: center; overflow-wrap: normal;
}
.choice input:checked + span { background: var(--accent); color: var(--on-accent); border-color: var(--accent); font-weight: 600; box-shadow: inset 0 0 0 2px var(--card); }
.choice input:focus-visible + span { outline: 3px solid var(--focus); outline-offset: 2px; }
form[data-sending] > button { cursor: progress; opacity: .7; }
form.locked > button, form.locked > .hint, form.locked > fieldset { display: none; }
.note { outline: none; }
form.locked textarea { background: var(--tint); }
.own { background: var(--tint); border-radius: var(--radius-s); padding: .6rem .75rem; margin: .5rem 0; }
.done { border: 1px solid var(--line); border-left: .3rem solid var(--good); border-radius: var(--radius-s); padding: .75rem 1rem; outline: none; }
[data-done=closed] .done { border-left-color: var(--edge); }
.done > p:first-child { margin-top: 0; padding: 0; border: 0; font-weight: 600; }
.done > :last-child { margin-bottom: 0; }
.next { margin-bottom: 0; }
#rest:empty { display: none; }
#questions:empty + #rest, #questions:not(:has(article)) + #rest {
  border: 1px dashed var(--edge); border-radius: var(--radius); padding: 2rem 1rem; text-align: center;
}
@media (min-width: 40rem) { .body { padding: 0 1.25rem 1.25rem; } .question summary { padding: .9rem 1.25rem; } }
@media (max-width: 30rem) { form[data-live] > button, .next button { width: 100%; } }
@media (prefers-reduced-motion: no-preference) { .question.new { animation: appear .4s ease-out; } }
@keyframes appear { from { opacity: 0; } }
@media (forced-colors: active) {
  .choice input:checked + span { forced-color-adjust: none; background: Highlight; color: HighlightText; }
}
`;
