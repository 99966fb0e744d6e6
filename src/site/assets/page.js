/**
 * The functions of the shop's pages other than calls: copying, the status, and the search among many operations. The pages also work
 * without them.
 */
(() => {
  const make = (name, text, className) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };
  for (const pre of document.querySelectorAll('pre[data-copy]')) {
    const button = make('button', 'Copy', 'copy');
    button.type = 'button';
    button.setAttribute('aria-label', 'Copy: ' + pre.getAttribute('aria-label'));
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(pre.textContent);
        button.textContent = 'Copied';
      } catch {
        getSelection().selectAllChildren(pre);
        button.textContent = 'Selected';
      }
      setTimeout(() => {
        button.textContent = 'Copy';
      }, 2000);
    });
    pre.before(button);
  }

  const health = /** @type {HTMLElement} */ (document.querySelector('[data-health]'));
  async function showHealth() {
    try {
      const answer = await fetch(health.dataset.health, {
        headers: { Accept: 'application/json' },
        cache: 'no-store',
      });
      const { status, uptimeSeconds, upstreams } = await answer.json();
      const hours = Math.floor(uptimeSeconds / 3600);
      const up = hours > 0 ? hours + ' h' : Math.max(1, Math.floor(uptimeSeconds / 60)) + ' min';
      health.replaceChildren(
        make(
          'span',
          status === 'ok' ? 'Everything works.' : 'Some parts do not work at the moment.',
          status === 'ok' ? 'ok' : 'bad',
        ),
        ' Running for ' + up + '.',
      );
      document.getElementById('backends').replaceChildren(
        ...Object.entries(upstreams).map(([name, part]) => {
          const item = make('li');
          const state = part.status === 'ok' ? 'ok' : part.status === 'unknown' ? '' : 'bad';
          item.append(make('span', name), make('span', part.status, state));
          if (part.detail) item.append(make('span', part.detail, 'why'));
          return item;
        }),
      );
    } catch {
      health.textContent = 'The status could not be read.';
    }
  }
  if (health) showHealth();

  const search = /** @type {HTMLInputElement} */ (document.getElementById('search'));
  const rows = [...document.querySelectorAll('.operations li')].map(row => ({
    row: /** @type {HTMLElement} */ (row),
    text: row.textContent.toLowerCase(),
  }));
  function find() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const { row, text } of rows) {
      row.hidden = !words.every(word => text.includes(word));
      if (!row.hidden) found += 1;
    }
    for (const group of /** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll('.group'))) {
      group.hidden = !group.querySelector('li:not([hidden])');
      group.open = words.length > 0 && !group.hidden;
    }
    document.getElementById('found').textContent = words.length > 0 ? found + ' found' : '';
  }
  if (search) {
    /** @type {HTMLElement} */ (document.querySelector('.search')).hidden = false;
    search.addEventListener('input', find);
  }
})();
