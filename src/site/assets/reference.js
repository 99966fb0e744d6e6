/** Starts Redoc with the contract as an object: given a URL, it would offer links to other hosts. Telemetry is off. */
import { init } from '/docs/redoc.js';
const answer = await fetch('/docs/contract.json');
const contract = await answer.json();
// For keyboards and screen readers: Redoc's menu is not a landmark, its search is neither a button nor a dialog, and its headings skip a
// level.
/** @param {(element: Element) => void} then */
const part = (selector, attributes, then = () => {}) => {
  for (const element of document.querySelectorAll(selector + ':not([data-named])')) {
    for (const [name, value] of Object.entries({ ...attributes, 'data-named': '' }))
      element.setAttribute(name, value);
    then(element);
  }
};
const onEnter = element =>
  element.addEventListener('keydown', event => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    element.click();
  });
const named = new MutationObserver(() => {
  part('[data-testid=search-trigger]', { role: 'button', tabindex: '0' }, onEnter);
  part('[data-testid=search-dialog]', { role: 'dialog', 'aria-modal': 'true', 'aria-label': 'Search' });
  part('[data-testid=search-dialog] :is(header, footer)', { role: 'none' });
  part('[data-testid=search-dialog] input', { 'aria-label': 'Search for' });
  part('[data-testid=search-dialog] header button', { 'aria-label': 'Empty the search' });
  part('#reference pre', { tabindex: '0', role: 'group', 'aria-label': 'Example' });
  for (const menu of document.querySelectorAll('.menu-content:not([role])')) {
    menu.setAttribute('role', 'navigation');
    menu.setAttribute('aria-label', 'Operations');
  }
  for (const [name, level] of [
    ['h4', '3'],
    ['h5', '4'],
    ['h6', '5'],
  ])
    for (const heading of document.querySelectorAll(name + ':not([aria-level])'))
      heading.setAttribute('aria-level', level);
});
named.observe(document.body, { childList: true, subtree: true });
init(
  contract,
  {
    disableTelemetry: true,
    hideDownloadButtons: true,
    sortRequiredPropsFirst: true,
    jsonSamplesDepth: 4,
    schemasExpansionLevel: 1,
  },
  document.getElementById('reference'),
);
