'use strict';

/**
 * The page's only script; the page also works without it. It signs in with a token after `#` in the URL, sends replies without
 * reloading the page, keeps the list up to date without touching what somebody is writing, and shows times in the browser's zone.
 */
(() => {
  const list = document.getElementById('questions');
  const status = document.getElementById('status');
  const live = document.getElementById('live');
  const title = document.title;
  if (!list) {
    // Opening the link on this page changes only the part after #.
    addEventListener('hashchange', exchangeToken);
    return exchangeToken();
  }

  // After a reload, the message about the last reply is not shown again.
  if (location.search) history.replaceState(null, '', location.pathname + location.hash);

  function make(tag, className, text) {
    const made = document.createElement(tag);
    made.className = className;
    made.textContent = text;
    return made;
  }

  const announce = text => {
    live.textContent = '';
    setTimeout(() => {
      live.textContent = text;
    }, 50);
  };
  const cards = () => [...list.querySelectorAll('article')];
  const detailsOf = card => card.querySelector('details');
  const draftOf = card => {
    const area = card.querySelector('form textarea');
    return area ? area.value.trim() : '';
  };
  const isInUse = card => card.querySelector('.body').contains(document.activeElement);
  const nextOf = card =>
    cards().find(each => each !== card && each.dataset.state === 'open' && each.querySelector('form'));

  /** Times in the zone of the browser, and how much time is left. */
  function localTimes() {
    const now = new Date();
    for (const card of cards()) {
      /** @type {HTMLTimeElement} */
      const time = card.querySelector('.state time');
      if (!time) continue;
      const until = new Date(time.dateTime);
      /** @type {Intl.DateTimeFormatOptions} */
      const day = until.toDateString() === now.toDateString() ? {} : { weekday: 'short' };
      time.textContent = until.toLocaleString(undefined, {
        ...day,
        hour: 'numeric',
        minute: '2-digit',
        timeZoneName: 'short',
      });
      const minutes = Math.ceil((until.getTime() - now.getTime()) / 60000);
      card.querySelector('.left').textContent =
        minutes > 1
          ? 'about ' + minutes + ' minutes left'
          : minutes === 1
            ? 'less than a minute left'
            : 'its time is up';
    }
  }

  function unfold(card) {
    detailsOf(card).open = true;
    const summary = card.querySelector('summary');
    summary.focus({ preventScroll: true });
    summary.scrollIntoView({ block: 'start' });
  }

  /** Replaces the form: what happened, and a link to the next question. */
  function showDone(card, kind, message, text) {
    const used = isInUse(card);
    const done = make('div', 'done', '');
    done.tabIndex = -1;
    const strong = make('p', 'said', message);
    done.append(strong);
    if (text) {
      const own = make('div', 'foreign own', text);
      own.dir = 'auto';
      if (text.length > 600 || text.split('\n').length > 11) own.tabIndex = 0;
      done.append(make('p', 'soft', 'Your reply:'), own);
    }
    done.append(make('p', 'next', ''));
    card.querySelector('form')?.remove();
    card.querySelector('.body').append(done);
    card.dataset.done = kind;
    card.classList.remove('draft');
    offerNext();
    if (!used) return announce(message);
    done.focus({ preventScroll: true });
    done.scrollIntoView({ block: 'nearest' });
  }

  const NO_OTHER = 'No other question is open at the moment. New ones appear on this page.';

  function offerNext() {
    for (const place of list.querySelectorAll('.next')) {
      const card = place.closest('article');
      const next = nextOf(card);
      if (Boolean(next) === Boolean(place.querySelector('button')) && place.childNodes.length) continue;
      if (!next) {
        place.textContent = NO_OTHER;
        continue;
      }
      const button = make('button', '', 'Next question');
      button.type = 'button';
      button.addEventListener('click', () => {
        const target = nextOf(card);
        if (target) unfold(target);
      });
      place.replaceChildren(button);
    }
  }

  /** Locks the form, so that it can no longer be sent; the text stays, so that it can be copied. */
  function lock(card, why) {
    const form = card.querySelector('form');
    if (!form) return;
    const area = form.querySelector('textarea');
    // The choice and the button disappear, and must not take the focus with them.
    const used = form.contains(document.activeElement) && document.activeElement !== area;
    form.classList.add('locked');
    area.readOnly = true;
    let note = form.querySelector('.note');
    if (!note) {
      note = make('div', 'note', '');
      note.tabIndex = -1;
      const discard = make('button', 'quiet', draftOf(card) ? 'Discard my text' : 'Remove this question');
      discard.type = 'button';
      discard.addEventListener('click', () => drop(card));
      note.append(make('p', 'fault', ''), discard);
      form.append(note);
      if (used) note.focus({ preventScroll: true });
    }
    const said = why + (draftOf(card) ? ' You can still copy what you wrote.' : '');
    if (note.firstChild.textContent === said) return;
    note.firstChild.textContent = said;
    announce(said);
  }

  function unlock(card) {
    const form = card.querySelector('form.locked');
    if (!form) return;
    form.classList.remove('locked');
    delete card.dataset.refused;
    const area = form.querySelector('textarea');
    area.readOnly = false;
    const note = form.querySelector('.note');
    if (note.contains(document.activeElement)) area.focus({ preventScroll: true });
    note.remove();
    announce('This question is open again.');
  }

  // Finished cards do not come back unless the page is reloaded.
  const dropped = new Set();

  function drop(card) {
    const next = nextOf(card);
    dropped.add(card.id);
    card.remove();
    if (next) unfold(next);
    else document.getElementById('main').focus();
    refresh();
  }

  const WHY = {
    full: 'Enough people have answered this question in the meantime.',
    answered: 'This question already has your reply.',
  };
  const whyGone = card =>
    Date.parse(card.dataset.until) <= Date.now()
      ? 'The time for this question is up.'
      : 'This question has closed: enough people have answered, or the operator ended it.';

  const isUntouched = card =>
    !draftOf(card) && !card.contains(document.activeElement) && !detailsOf(card).open;

  function showState(card, fresh, state) {
    card.dataset.state = state;
    if (fresh) {
      card.dataset.until = fresh.dataset.until;
      card.querySelector('.state').innerHTML = fresh.querySelector('.state').innerHTML;
    } else
      card.querySelector('.state').textContent = card.dataset.done === 'answered' ? 'Answered' : 'Closed';
  }

  /** Updates a card to the state that the server reports. Text that was typed stays. */
  function change(card, fresh) {
    // A reply is being sent; its outcome will be known soon.
    if (card.querySelector('form[data-sending]')) return;
    const before = card.dataset.state;
    const state = fresh ? fresh.dataset.state : 'gone';
    showState(card, fresh, state);
    if (state === 'open' && card.querySelector('form.locked'))
      return card.dataset.refused === 'duplicate' ? undefined : unlock(card);
    if (!fresh && isUntouched(card)) return card.remove();
    // The reason why a reply was refused stays on the page; it matters more than the state of the question.
    if (before === state || card.dataset.done || card.dataset.refused) return;
    if (draftOf(card) || isInUse(card)) return lock(card, fresh ? WHY[state] : whyGone(card));
    if (!fresh) return showDone(card, 'closed', whyGone(card), '');
    card
      .querySelector('.body')
      .replaceChildren(...document.importNode(fresh.querySelector('.body'), true).childNodes);
  }

  function merge(fresh) {
    const known = new Map(cards().map(card => [card.id, card]));
    const anyToAnswer = cards().some(card => card.dataset.state === 'open');
    let appeared = 0;
    for (const card of fresh.querySelectorAll('article')) {
      const old = known.get(card.id);
      known.delete(card.id);
      if (old) {
        change(old, card);
        continue;
      }
      if (dropped.has(card.id)) continue;
      const added = document.importNode(card, true);
      added.classList.add('new');
      if (anyToAnswer || list.querySelector('details[open]')) detailsOf(added).open = false;
      list.append(added);
      appeared++;
    }
    for (const card of known.values()) change(card, undefined);
    /** @type {HTMLInputElement} */
    const key = fresh.querySelector('[name=form]');
    /** @type {NodeListOf<HTMLInputElement>} */
    const fields = document.querySelectorAll('[name=form]');
    if (key)
      fields.forEach(field => {
        field.value = key.value;
      });
    const rest = fresh.querySelector('#rest').textContent;
    const empty = !list.querySelector('article');
    document.getElementById('rest').textContent = empty
      ? rest || NO_OTHER
      : fresh.querySelector('article')
        ? rest
        : '';
    if (appeared)
      announce(appeared === 1 ? 'There is a new question.' : 'There are ' + appeared + ' new questions.');
    tidy();
  }

  function tidy() {
    const open = cards().filter(card => card.dataset.state === 'open').length;
    document.title = open ? '(' + open + ') ' + title : title;
    localTimes();
    offerNext();
  }

  let loading;
  let again = false;
  /** Resolves when the page shows the server's current state. */
  function refresh() {
    if (loading) again = true;
    else loading = loadAll();
    return loading;
  }

  async function loadAll() {
    do {
      again = false;
      await load();
    } while (again);
    loading = undefined;
  }

  async function load() {
    try {
      const answer = await fetch('/panel/questions', { headers: { Accept: 'text/html' }, cache: 'no-store' });
      if (answer.status === 401) ended();
      else if (answer.ok) {
        merge(new DOMParser().parseFromString(await answer.text(), 'text/html'));
        if (status.dataset.ended) {
          status.textContent = '';
          delete status.dataset.ended;
        }
      }
    } catch {
      /* offline: the next refresh catches up */
    }
  }

  /** A reload would lose typed text. */
  function ended() {
    if (!cards().some(draftOf)) return location.reload();
    if (status.dataset.ended) return;
    status.dataset.ended = 'yes';
    const link = make('a', '', 'Sign in in a new window');
    link.href = '/panel/';
    link.target = '_blank';
    status.replaceChildren(
      'Your session has ended. Your text is still here. ',
      link,
      ', then come back and send it.',
    );
  }

  const post = form =>
    fetch(form.action, {
      method: 'POST',
      headers: { Accept: 'application/json' },
      body: new URLSearchParams(
        /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(form))),
      ),
      signal: AbortSignal.timeout(20000),
    });

  /** Marks the field to correct: the text or the choice. */
  function mark(form, control) {
    for (const marked of form.querySelectorAll('[aria-invalid]')) marked.removeAttribute('aria-invalid');
    const [marked, focused] =
      control === 'sentiment'
        ? [form.querySelector('fieldset'), form.querySelector('fieldset input')]
        : [form.elements[control], form.elements[control]];
    marked?.setAttribute('aria-invalid', 'true');
    focused?.focus();
  }

  list.addEventListener('submit', async event => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    if (!form.matches('form[data-live]')) return;
    event.preventDefault();
    // Not disabled, because that would take the focus away.
    if (form.dataset.sending || form.classList.contains('locked')) return;
    form.dataset.sending = 'yes';
    const card = form.closest('article');
    const text = draftOf(card);
    const fault = form.querySelector('.fault');
    fault.textContent = '';
    mark(form);
    try {
      let answer = await post(form);
      // The session of this form has ended and somebody has signed in again: the list has the key of the new session.
      if (answer.status === 403) {
        await refresh();
        answer = await post(form);
      }
      if (answer.status === 403) throw new Error('the form has no key for this session');
      const { message, outcome, control } = await answer.json();
      if (outcome === 'added' || outcome === 'held') {
        card.dataset.state = 'answered';
        showDone(card, 'answered', message, text);
      } else if (outcome === 'fault') {
        fault.textContent = message;
        mark(form, control);
      } else {
        card.dataset.refused = outcome;
        lock(card, message);
      }
    } catch {
      fault.textContent = 'Your reply could not be sent. Your text is still here; try again.';
    }
    delete form.dataset.sending;
    refresh();
  });

  // For browsers that do not group details elements: only one form is open at a time.
  list.addEventListener(
    'toggle',
    event => {
      const opened = /** @type {HTMLDetailsElement} */ (event.target);
      if (!opened.open) return;
      /** @type {NodeListOf<HTMLDetailsElement>} */
      const all = list.querySelectorAll('details[open]');
      for (const other of all) if (other !== opened) other.open = false;
    },
    true,
  );

  // Tells the server that somebody is typing, so that no sample respondent answers first.
  const told = new Map();
  list.addEventListener('input', event => {
    /** @type {HTMLFormElement} */
    const form = /** @type {Element} */ (event.target).closest('form[data-live]');
    if (!form) return;
    form.closest('article').classList.toggle('draft', draftOf(form.closest('article')) !== '');
    const question = form.elements['question'].value;
    if (Date.now() - (told.get(question) || 0) < 10000) return;
    told.set(question, Date.now());
    const body = new URLSearchParams({ form: form.elements['form'].value, question });
    fetch('/panel/typing', { method: 'POST', headers: { Accept: 'application/json' }, body }).catch(() => {});
  });

  tidy();
  setInterval(localTimes, 15000);
  let timer = setInterval(refresh, 30000);
  const stream = new EventSource('/panel/live');
  stream.addEventListener('change', refresh);
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) refresh();
  });
  stream.onerror = () => {
    // The server refused the live stream, for instance because too many are open: poll every 5 s instead.
    if (stream.readyState === EventSource.CLOSED) {
      clearInterval(timer);
      timer = setInterval(refresh, 5000);
    }
  };
})();
