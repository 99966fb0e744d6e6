'use strict';

/**
 * The script of the landing page, which also works without it: copy buttons, the status, and trying a call. It runs only what a click
 * asks for, and shows every text as text.
 */
(() => {
  const WALLET = '/sandbox/wallet';
  const make = (name, text, className) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };
  const pause = ms => new Promise(resolve => setTimeout(resolve, ms));
  const decoded = header => {
    if (!header) return undefined;
    try {
      return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(header), each => each.charCodeAt(0))));
    } catch {
      return undefined;
    }
  };
  const pretty = text => {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
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
          item.append(
            make('span', name),
            make('span', part.status, part.status === 'ok' ? 'ok' : part.status === 'unknown' ? '' : 'bad'),
          );
          return item;
        }),
      );
    } catch {
      health.textContent = 'The status could not be read.';
    }
  }
  if (health) showHealth();

  /** @type {NodeListOf<HTMLDetailsElement>} */
  const sections = document.querySelectorAll('details[data-operation]');
  for (const section of sections) {
    section.hidden = false;
    const form = section.querySelector('form');
    form.addEventListener('submit', event => event.preventDefault());
    section.querySelector('[data-ask]').addEventListener('click', () => run(section, false));
    const pay = section.querySelector('[data-pay]');
    if (pay) pay.addEventListener('click', () => run(section, true));
  }

  /** A link to an operation opens what tries it. */
  function openLinked() {
    const linked = document.getElementById(location.hash.slice(1));
    /** @type {HTMLDetailsElement} */
    const section = linked && linked.querySelector('details[data-operation]');
    if (section) section.open = true;
  }
  addEventListener('hashchange', openLinked);
  openLinked();

  async function run(section, paying) {
    const buttons = [...section.querySelectorAll('form button')];
    const trace = section.querySelector('.trace');
    const say = text => {
      section.querySelector('.say').textContent = text;
    };
    for (const button of buttons) button.disabled = true;
    trace.replaceChildren();
    try {
      const call = callOf(section);
      const unpaid = await call({});
      const challenge = decoded(unpaid.headers.get('PAYMENT-REQUIRED'));
      step(
        trace,
        'Without a payment: ' + unpaid.status + (challenge ? ' Payment Required' : ''),
        ...(challenge ? [offer(challenge), whole(challenge, !paying)] : [await shown(unpaid)]),
      );
      if (!challenge) say('This call was answered without a payment.');
      else if (!paying) say('Nothing was charged. This is the challenge: the price, and how to pay it.');
      else await buy(section, call, trace, say);
    } catch (error) {
      say('This did not work: ' + /** @type {Error} */ (error).message);
    }
    for (const button of buttons) button.disabled = false;
  }

  function callOf(section) {
    const { path, body } = section.querySelector('form').elements;
    const url = new URL(path.value, location.origin);
    if (url.origin !== location.origin) throw new Error('the path must begin with / and name this server.');
    return headers =>
      fetch(url, {
        method: section.dataset.method,
        headers: {
          Accept: 'application/json, */*',
          ...JSON.parse(section.dataset.headers),
          ...headers,
        },
        ...(body ? { body: body.value } : {}),
        cache: 'no-store',
      });
  }

  async function buy(section, call, trace, say) {
    say('Signing with the sandbox wallet.');
    const signed = await ask('/payments', { operation: section.dataset.operation });
    step(
      trace,
      'Signed by the sandbox wallet',
      facts([
        ['Payer', signed.payer],
        ['Amount', signed.amount + ' USDC'],
        ['Header', 'PAYMENT-SIGNATURE'],
      ]),
    );
    const answer = await redeemed(call, signed.header, say);
    const receipt = decoded(answer.headers.get('PAYMENT-RESPONSE'));
    step(trace, 'With the payment: ' + answer.status, await shown(answer));
    if (receipt) step(trace, 'Receipt', text(JSON.stringify(receipt, null, 2), 'Receipt'));
    if (!receipt || !receipt.transaction) return say(answer.ok ? 'Answered.' : 'The call was not charged.');
    const transfer = await ask('/transfers', { signature: receipt.transaction });
    step(
      trace,
      'Transfer on the local chain',
      facts([
        ['Transaction', transfer.signature],
        ['Slot', String(transfer.slot)],
        ['From', transfer.from],
        ['To', transfer.to],
        ['USDC', transfer.amount],
      ]),
    );
    say(answer.ok ? 'Paid ' + transfer.amount + ' USDC and answered.' : 'Paid; the answer is still to come.');
  }

  /** Sends one payment until it is answered: after a 503, the same payment again. */
  async function redeemed(call, payment, say) {
    const end = Date.now() + 600000;
    for (;;) {
      say('Sending the call with the payment.');
      const answer = await call({ 'PAYMENT-SIGNATURE': payment });
      if (answer.status !== 503 || Date.now() > end) return answer;
      const seconds = Math.min(Number(answer.headers.get('Retry-After')) || 2, 60);
      const { error = '' } = await answer.json().catch(() => ({}));
      say('503: ' + error + ' The same payment is sent again in ' + seconds + ' s.');
      await pause(seconds * 1000);
    }
  }

  async function ask(path, body) {
    const answer = await fetch(WALLET + path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    const value = await answer.json();
    if (!answer.ok) throw new Error(value.error);
    return value;
  }

  function step(trace, title, ...parts) {
    const item = make('li');
    item.append(make('h4', title), ...parts);
    trace.append(item);
  }

  function text(content, label) {
    const pre = make('pre', content);
    pre.tabIndex = 0;
    pre.setAttribute('role', 'group');
    pre.setAttribute('aria-label', label);
    return pre;
  }

  /** The decoded challenge; folded where what follows matters more. */
  function whole(challenge, open) {
    const details = make('details');
    details.open = open;
    details.append(
      make('summary', 'The whole challenge, decoded'),
      text(JSON.stringify(challenge, null, 2), 'Decoded challenge'),
    );
    return details;
  }

  function facts(pairs) {
    const list = make('dl');
    for (const [name, value] of pairs) list.append(make('dt', name), make('dd', value));
    return list;
  }

  function offer({ accepts: [first] }) {
    const { amount, network, payTo, extra } = first;
    return facts([
      ['Price', Number(amount) / 1e6 + ' USDC'],
      ['Network', network],
      ['Receiver', payTo],
      ['Charged', extra && extra.paymentFlow === 'upfront' ? 'before the work' : 'only for an answer'],
    ]);
  }

  async function shown(answer) {
    const type = (answer.headers.get('Content-Type') || '').split(';')[0];
    const media = type.startsWith('audio/')
      ? 'audio'
      : /^image\/(png|jpeg|gif|webp)$/.test(type)
        ? 'img'
        : undefined;
    if (!media) {
      if (/^text\/|[/+]json$/.test(type)) return text(pretty(await answer.text()), 'Answer');
      return make('p', (await answer.arrayBuffer()).byteLength + ' bytes of ' + type);
    }
    const element = make(media);
    element.src = URL.createObjectURL(await answer.blob());
    if (media === 'audio') {
      element.controls = true;
      element.setAttribute('aria-label', 'The answer, ' + type);
    } else element.alt = 'The answer, ' + type;
    return element;
  }
})();
