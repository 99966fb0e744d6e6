/**
 * The page's only script. The page works without it; with it, a token behind `#` is exchanged, replies are sent without
 * leaving the page and the list follows what happens elsewhere, while what is being typed stays.
 */
export const SCRIPT = `'use strict';
(() => {
  const list = document.getElementById('questions');
  const status = document.getElementById('status');
  if (!list) return exchangeToken();

  function exchangeToken() {
    const form = document.getElementById('login');
    let token = location.hash.slice(1);
    try { token = decodeURIComponent(token); } catch { /* then it was not encoded */ }
    if (!form || !token) return;
    history.replaceState(null, '', location.pathname);
    form.elements.token.value = token;
    form.submit();
  }

  const say = text => { status.textContent = ''; setTimeout(() => { status.textContent = text; }, 50); };
  const busy = card => (card !== document.activeElement && card.contains(document.activeElement))
    || [...card.querySelectorAll('textarea')].some(area => area.value !== area.defaultValue)
    || [...card.querySelectorAll('input[type=radio]')].some(box => box.checked !== box.defaultChecked);

  /** Takes over only what changed; a card that somebody is busy with keeps its form. */
  function merge(fresh) {
    const known = new Map([...list.querySelectorAll('article')].map(card => [card.id, card]));
    let appeared = 0;
    for (const card of fresh.querySelectorAll('article')) {
      const old = known.get(card.id);
      known.delete(card.id);
      if (!old) {
        const added = document.importNode(card, true);
        added.classList.add('new');
        list.append(added);
        appeared++;
      } else if (old.dataset.version !== card.dataset.version) {
        update(old, card);
      }
    }
    for (const card of known.values()) {
      if (!busy(card)) card.remove();
      else if (!card.dataset.gone) {
        card.dataset.gone = 'yes';
        card.querySelector('.state').textContent = 'This question is no longer open.';
      }
    }
    const rest = fresh.querySelector('#rest');
    document.getElementById('rest').textContent = rest ? rest.textContent : '';
    if (appeared) say(appeared === 1 ? 'A new question has arrived.' : appeared + ' new questions have arrived.');
  }

  function update(old, card) {
    const wasOpen = old.querySelector('details') && old.querySelector('details').open;
    if (busy(old)) {
      for (const part of ['.state', '.given']) {
        const [a, b] = [old.querySelector(part), card.querySelector(part)];
        if (a && b && !a.contains(document.activeElement)) a.replaceWith(document.importNode(b, true));
      }
      // The form stays and the version too: once nobody is busy with the card, a later refresh takes over the rest.
    } else {
      old.replaceChildren(...document.importNode(card, true).childNodes);
      old.dataset.version = card.dataset.version;
    }
    const details = old.querySelector('details');
    if (details && wasOpen) details.open = true;
  }

  let loading = false;
  let again = false;
  async function refresh() {
    if (loading) { again = true; return; }
    loading = true;
    try {
      const answer = await fetch('/panel/questions', { headers: { Accept: 'text/html' }, cache: 'no-store' });
      if (answer.status === 401) location.reload();
      else if (answer.ok) merge(new DOMParser().parseFromString(await answer.text(), 'text/html'));
    } catch { /* offline: the next refresh shows what was missed */ }
    loading = false;
    if (again) { again = false; refresh(); }
  }

  list.addEventListener('submit', async event => {
    const form = event.target;
    if (!form.matches('form[data-live]')) return;
    event.preventDefault();
    const button = form.querySelector('button');
    const card = form.closest('article');
    button.disabled = true;
    try {
      const answer = await fetch(form.action, {
        method: 'POST', headers: { Accept: 'application/json' }, body: new URLSearchParams(new FormData(form)),
      });
      const { message, done } = await answer.json();
      say(message);
      if (done) {
        form.reset();
        card.focus();
        card.dataset.version = '';
      }
    } catch {
      say('It could not be sent. What you wrote is still there; try again.');
    }
    button.disabled = false;
    refresh();
  });

  let timer = setInterval(refresh, 30000);
  const live = new EventSource('/panel/live');
  live.addEventListener('change', refresh);
  live.onerror = () => {
    // Too many live pages, or no connection for good: ask now and then instead.
    if (live.readyState === EventSource.CLOSED) { clearInterval(timer); timer = setInterval(refresh, 5000); }
  };
})();
`;
