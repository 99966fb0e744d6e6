/**
 * The page's only script; the page also works without it. It signs in with a token after `#` in the URL, sends replies without
 * reloading the page, and keeps the list up to date without touching a form that is being filled in.
 */
export const SCRIPT = `'use strict';
(() => {
  const list = document.getElementById('questions');
  const status = document.getElementById('status');
  if (!list) return exchangeToken();

  function exchangeToken() {
    const form = document.getElementById('login');
    let token = location.hash.slice(1);
    try { token = decodeURIComponent(token); } catch { /* the token was not encoded */ }
    if (!form || !token) return;
    history.replaceState(null, '', location.pathname);
    form.elements.token.value = token;
    form.submit();
  }

  const announce = text => { status.textContent = ''; setTimeout(() => { status.textContent = text; }, 50); };
  const busy = card => (card !== document.activeElement && card.contains(document.activeElement))
    || [...card.querySelectorAll('textarea')].some(area => area.value !== area.defaultValue)
    || [...card.querySelectorAll('input[type=radio]')].some(box => box.checked !== box.defaultChecked);

  /** Updates only what changed; a card whose form is being filled in keeps its form. */
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
    if (appeared) announce(appeared === 1 ? 'There is a new question.' : 'There are ' + appeared + ' new questions.');
  }

  function update(old, card) {
    const wasOpen = old.querySelector('details') && old.querySelector('details').open;
    if (busy(old)) {
      for (const part of ['.state', '.given']) {
        const [a, b] = [old.querySelector(part), card.querySelector(part)];
        if (a && b && !a.contains(document.activeElement)) a.replaceWith(document.importNode(b, true));
      }
      // The form and the version stay: a later refresh updates the rest when the form is no longer in use.
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
    } catch { /* offline: the next refresh catches up */ }
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
      announce(message);
      if (done) {
        form.reset();
        card.focus();
        card.dataset.version = '';
      }
    } catch {
      announce('Your reply could not be sent. Your text is still here; try again.');
    }
    button.disabled = false;
    refresh();
  });

  // While somebody types, sample respondents do not take the place of the reply.
  const told = new Map();
  list.addEventListener('input', event => {
    const form = event.target.closest('form[data-live]');
    const question = form && form.elements.question && form.elements.question.value;
    if (!question || Date.now() - (told.get(question) || 0) < 10000) return;
    told.set(question, Date.now());
    const body = new URLSearchParams({ form: form.elements.form.value, question });
    fetch('/panel/typing', { method: 'POST', headers: { Accept: 'application/json' }, body }).catch(() => {});
  });

  let timer = setInterval(refresh, 30000);
  const live = new EventSource('/panel/live');
  live.addEventListener('change', refresh);
  live.onerror = () => {
    // The server refused the live stream, for instance because too many are open: poll every 5 s instead.
    if (live.readyState === EventSource.CLOSED) { clearInterval(timer); timer = setInterval(refresh, 5000); }
  };
})();
`;
