import { escapeHtml } from '../pages/escape.js';
import type { OwnWords } from './own-words.js';
import { sitePage } from './site-frame.js';

/** The error page for browsers: what is wrong, why, and where to go. */
export type FaultPage = (status: number, error: string) => string;

const TITLES: Record<number, string> = {
  400: 'This request cannot be read',
  404: 'There is nothing here',
  405: 'This address expects a different request',
  500: 'Something went wrong here',
  502: 'A service behind this page failed',
  503: 'Not now',
};

const ADVICE: Record<number, string> = {
  400: 'Check the address, or follow a link on the front page.',
  404: 'The address may be mistyped, or its content is no longer stored.',
  405: 'This address is for programs. The front page shows what is sold and how to call it.',
  503: 'Wait a few seconds and reload the page.',
};

const OTHERWISE = 'Reload the page in a minute.';

export function faultPage(words: OwnWords, hasReference: boolean): FaultPage {
  return (status, error) => {
    const title = TITLES[status] ?? `Error ${status}`;
    const main = `<section class="fault-page"><div class="wide">
<p class="call">${status}</p>
<h1>${title}</h1>
<p role="alert">${escapeHtml(error)}</p>
<p>${ADVICE[status] ?? OTHERWISE}</p>
<p class="actions"><a class="button" href="/">See what is sold</a>${hasReference ? ' <a class="button quiet" href="/docs">API reference</a>' : ''}</p>
</div></section>`;
    return sitePage(words, { title: `${title} – ${words.name}`, main, links: [['/', 'Front page']] });
  };
}
