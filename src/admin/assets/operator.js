'use strict';

/**
 * The operator page's own script; the page also works without it. It signs in with a token after `#` in the URL, draws the chart, and
 * keeps the overview up to date without replacing a part that is in use.
 */
(() => {
  if (document.getElementById('login')) {
    // Opening the link on this page changes only the part after #.
    addEventListener('hashchange', exchangeToken);
    return exchangeToken();
  }

  // The token stays out of the address bar of a signed-in browser, too.
  if (location.hash.length > 20) history.replaceState(null, '', location.pathname);
  if (!document.getElementById('headline')) return;

  const draw = () => document.querySelectorAll('[data-chart]').forEach(drawChart);
  /** The HTML of each part as the server sent it. Drawing the chart changes the HTML in the page. */
  const shown = new Map();
  for (const part of document.querySelectorAll('[data-part]')) shown.set(part.id, part.innerHTML);
  draw();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);

  function merge(fresh) {
    for (const part of fresh.querySelectorAll('[data-part]')) {
      const old = document.getElementById(part.id);
      if (!old || shown.get(part.id) === part.innerHTML) continue;
      // Parts with focus or a selection are updated next time.
      const selection = getSelection();
      if (
        old.contains(document.activeElement) ||
        (!selection.isCollapsed && selection.containsNode(old, true))
      )
        continue;
      const open = [...old.querySelectorAll('details')].map(each => each.open);
      const scrolled = [...old.querySelectorAll('.scroll')].map(each => each.scrollTop);
      shown.set(part.id, part.innerHTML);
      old.replaceChildren(...document.importNode(part, true).childNodes);
      old.querySelectorAll('details').forEach((each, n) => {
        each.open = Boolean(open[n]);
      });
      old.querySelectorAll('.scroll').forEach((each, n) => {
        each.scrollTop = scrolled[n] || 0;
      });
      old.querySelectorAll('[data-chart]').forEach(drawChart);
    }
  }

  let loading = false;
  let again = false;
  async function refresh() {
    if (document.hidden) return;
    if (loading) {
      again = true;
      return;
    }
    loading = true;
    try {
      const answer = await fetch(`/overview${location.search}`, {
        headers: { Accept: 'text/html' },
        cache: 'no-store',
      });
      if (answer.status === 401) location.reload();
      else if (answer.ok) merge(new DOMParser().parseFromString(await answer.text(), 'text/html'));
    } catch {
      /* offline: the next refresh catches up */
    }
    loading = false;
    if (again) {
      again = false;
      setTimeout(refresh, 1000);
    }
  }

  setInterval(refresh, 10000);
  document.addEventListener('visibilitychange', refresh);
  const live = new EventSource('/live');
  live.addEventListener('change', refresh);
})();

/** The page of a refund changes as soon as its transfer is recorded. */
(() => {
  if (!document.querySelector('[data-awaits]')) return;
  setInterval(async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.pathname, { headers: { Accept: 'text/html' }, cache: 'no-store' });
      const isWaiting = answer.ok && (await answer.text()).includes('data-awaits');
      if (!isWaiting) location.replace(location.pathname.replace(/\/refund$/, ''));
    } catch {
      /* offline: the next time */
    }
  }, 10000);
})();
