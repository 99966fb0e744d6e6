/**
 * Buys the calls of a page with a wallet: one of the browser's (Wallet Standard), or the sandbox's own. A payment is kept in the browser
 * from its signature to its answer, and resent until then. Until its outcome is known, no other payment is signed for the operation.
 */
import '/site/page.js';
import { getWallets } from '/site/wallet-standard.js';
import { answered, keep, lastAnswered, release, undecided, update } from '/site/kept-payments.js';
import { fieldValues, fillIn, readCall, sendCall } from '/site/read-call.js';
import { answerParts, block, decoded, errorOf, facts, folded, linkTo, make } from '/site/shown-answer.js';
import { unsignedTransaction } from '/site/solana-payment.js';

const SANDBOX_WALLET = '/sandbox/wallet';
const [CONNECT, SIGN] = ['standard:connect', 'solana:signTransaction'];
/** How long a page resends a payment without a click. */
const PATIENCE_MS = 10 * 60_000;
const MOST_WAIT_SECONDS = 60;
const CHAINS = { mainnet: 'solana:mainnet', devnet: 'solana:devnet', sandbox: 'solana:devnet' };
const IDENTIFIER = 'payment-identifier';

const pause = seconds => new Promise(resolve => setTimeout(resolve, seconds * 1000));
const base64 = bytes => btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(''));
const usdc = atomic => {
  const digits = String(atomic).padStart(7, '0');
  return (digits.slice(0, -6) + '.' + digits.slice(-6)).replace(/\.?0+$/, '') + ' USDC';
};
const short = address => address.slice(0, 4) + '…' + address.slice(-4);
const sentence = text => text.replace(/\.?\s*$/, '.');

/** One tab at a time. Without the Web Locks API (http from another machine), keep() still admits only one payment. */
async function alone(operation, wait, work) {
  if (!navigator.locks) return work();
  return navigator.locks.request('coinslot ' + operation, { ifAvailable: !wait }, lock =>
    lock ? work() : OCCUPIED,
  );
}
const OCCUPIED = Symbol('another tab is paying for this call');

/** The parts of one operation on the page. */
class Purchase {
  constructor(section) {
    this.section = section;
    this.operation = section.dataset.operation;
    this.network = section.dataset.network;
    this.explorer = section.dataset.explorer;
    this.shape = JSON.parse(section.dataset.call);
    this.form = section.querySelector('form');
    this.buttons = section.querySelector('.pay');
    this.result = section.querySelector('.result');
    this.form.addEventListener('submit', event => event.preventDefault());
    this.payment = undefined;
    this.isBusy = false;
  }

  say(text, kind = '') {
    const line = this.section.querySelector('.say');
    line.textContent = text;
    line.dataset.kind = kind;
  }

  /** Continues with a payment of an earlier visit. */
  async begin() {
    this.payment = await undecided(this.operation).catch(() => undefined);
    this.showButtons();
    if (!this.payment) return this.showLast();
    fillIn(this.form, this.payment.fields);
    const at = new Date(this.payment.signedAt).toLocaleTimeString();
    this.say(
      'A payment of ' +
        usdc(this.payment.amount) +
        ', signed at ' +
        at +
        ', has no answer yet. It is being sent again.',
    );
    await this.busy(true, () => this.resume());
  }

  async resume() {
    this.payment = await undecided(this.operation);
    if (this.payment) return this.redeem();
    this.say('That payment was answered in another tab.');
    return this.showLast();
  }

  async showLast() {
    const last = await lastAnswered(this.operation).catch(() => undefined);
    if (last)
      this.result.replaceChildren(folded('Your last purchase here', ...receiptParts(last, this.explorer)));
  }

  showButtons() {
    const add = (text, className, work) => {
      const button = make('button', text, className);
      button.type = 'button';
      button.disabled = this.isBusy;
      button.addEventListener('click', work);
      return button;
    };
    const all = [];
    const again = () => this.busy(false, () => this.again());
    if (this.payment)
      all.push(add(this.isBusy ? 'Waiting for the answer…' : 'Send the same payment again', '', again));
    else
      for (const wallet of walletsFor(this.network)) {
        const button = add('Pay ' + this.section.dataset.price + ' with ' + wallet.name, '', () =>
          this.busy(false, () => this.buy(wallet)),
        );
        if (wallet.icon) button.prepend(iconOf(wallet.icon));
        all.push(button);
      }
    const ask = add('Call without paying', 'quiet', () => this.busy(false, () => this.ask()));
    this.buttons.replaceChildren(...all, ask);
    const none = this.section.querySelector('.no-wallet');
    none.hidden = this.payment !== undefined || all.length > 0;
  }

  async busy(wait, work) {
    if (this.isBusy) return;
    this.isBusy = true;
    this.showButtons();
    try {
      if ((await alone(this.operation, wait, work)) === OCCUPIED)
        this.say('Another tab of this browser is buying this call. Its answer is shown there.');
    } catch (error) {
      this.say('This did not work: ' + sentence(/** @type {Error} */ (error).message), 'bad');
    }
    this.isBusy = false;
    this.showButtons();
  }

  async ask() {
    const answer = await sendCall(readCall(this.form, this.shape));
    const challenge = answer.status === 402 && decoded(answer.headers.get('PAYMENT-REQUIRED'));
    if (!challenge) return this.showUnpriced(answer);
    this.say('402 Payment Required. Nothing was charged: this is the price, and how to pay it.');
    this.result.replaceChildren(
      offerFacts(challenge.accepts[0]),
      folded('The whole challenge, decoded', block(JSON.stringify(challenge, null, 2), 'Decoded challenge')),
    );
  }

  async showUnpriced(answer) {
    if (!answer.ok) return this.say(answer.status + ': ' + sentence(await errorOf(answer)), 'bad');
    this.say('This call was answered without a payment.');
    this.result.replaceChildren(...(await answerParts(this.operation, typeOf(answer), await answer.blob())));
  }

  /** Signs a payment for the call of the form, unless one is undecided. */
  async buy(wallet) {
    this.payment = await undecided(this.operation);
    if (this.payment) return this.redeem();
    if (!this.form.reportValidity()) return;
    const call = readCall(this.form, this.shape);
    const unpaid = await sendCall(call);
    const challenge = unpaid.status === 402 && decoded(unpaid.headers.get('PAYMENT-REQUIRED'));
    if (!challenge) return this.showUnpriced(unpaid);
    const offer = challenge.accepts.find(
      each => each.scheme === 'exact' && each.network.startsWith('solana:'),
    );
    if (!offer) throw new Error('the challenge has no payment in USDC on Solana');
    if (BigInt(offer.amount) > BigInt(this.section.dataset.most))
      throw new Error('the price is now ' + usdc(offer.amount) + '. Reload the page; nothing was signed');
    this.say('Confirm the payment of ' + usdc(offer.amount) + ' in ' + wallet.name + '.');
    const { header, payer } = await wallet.sign(challenge, offer, this.operation);
    const payment = {
      ...{ operation: this.operation, call, fields: fieldValues(this.form), header, payer },
      ...{ amount: offer.amount, network: this.network, signedAt: Date.now() },
    };
    if (!(await keep(payment)))
      throw new Error(
        'another payment for this call has no outcome yet. This one was discarded without being sent',
      );
    this.payment = payment;
    return this.redeem();
  }

  /** The payment stays the same; the call is taken from the form again, because an invalid call did not use the payment. */
  async again() {
    this.payment = await undecided(this.operation);
    if (!this.payment) return this.resume();
    if (this.payment.isWrong) {
      this.payment = {
        ...this.payment,
        ...{ call: readCall(this.form, this.shape), fields: fieldValues(this.form), isWrong: false },
      };
      await update(this.payment);
    }
    return this.redeem();
  }

  /** Sends the payment until its outcome is known, or until only the buyer can continue. */
  async redeem() {
    this.showButtons();
    const end = Date.now() + PATIENCE_MS;
    for (let attempt = 0; ; attempt++) {
      this.say('Paying ' + usdc(this.payment.amount) + '. Waiting for the answer.');
      const { wait, why } = await this.attempt(Math.min(2 ** attempt, 30));
      if (wait === undefined) return;
      if (Date.now() > end) return this.say(why + ' The payment is kept: send it again later.', 'bad');
      this.say(why + ' The same payment is sent again in ' + wait + ' s.');
      await pause(wait);
    }
  }

  /** @returns seconds until the next try, and the reason; undefined if the payment is not sent again */
  async attempt(usualWait) {
    let answer;
    let body;
    try {
      answer = await sendCall(this.payment.call, { 'PAYMENT-SIGNATURE': this.payment.header });
      body = await answer.clone().blob();
    } catch {
      return { wait: usualWait, why: 'The connection failed.' };
    }
    const receipt = decoded(answer.headers.get('PAYMENT-RESPONSE'));
    const link = answer.headers.get('Location') || undefined;
    if (answer.ok) return this.deliver(answer, body, receipt, link);
    const error = sentence(await errorOf(answer));
    const isPaid = Boolean(receipt && receipt.success);
    const isRefused = answer.status === 402 && !isPaid && answer.headers.has('PAYMENT-REQUIRED');
    if (isRefused || (receipt && receipt.errorReason === 'refunded')) return this.close(error);
    // An invalid call did not use the payment, which is sent again with the corrected call.
    await this.remember({ isWrong: answer.status === 400, ...(isPaid || link ? { receipt, link } : {}) });
    if (answer.status === 503) {
      const named = Number(answer.headers.get('Retry-After'));
      return { wait: Math.min(named > 0 ? named : usualWait, MOST_WAIT_SECONDS), why: error };
    }
    this.say(
      answer.status + ': ' + error + (isPaid ? '' : ' Your payment is kept, and can be sent again.'),
      'bad',
    );
    return {};
  }

  async remember(known) {
    this.payment = { ...this.payment, ...known };
    await update(this.payment);
    if (this.payment.receipt || this.payment.link)
      this.result.replaceChildren(...receiptParts(this.payment, this.explorer));
  }

  /** The payment can buy nothing more: the next click signs another one. */
  async close(error) {
    await release(this.operation);
    this.payment = undefined;
    this.say(error, 'bad');
    return {};
  }

  async deliver(answer, body, receipt, link) {
    const { amount, payer, network, operation } = this.payment;
    const done = { operation, amount, payer, network, receipt, link, at: Date.now() };
    const parts = await answerParts(operation, typeOf(answer), body);
    this.result.replaceChildren(
      ...parts,
      folded('Paid ' + usdc(amount) + ' · receipt', ...receiptParts(done, this.explorer)),
    );
    await answered(done);
    this.payment = undefined;
    this.say('Paid ' + usdc(amount) + ' and answered.', 'good');
    this.result.focus();
    return {};
  }
}

const typeOf = answer => (answer.headers.get('Content-Type') || '').split(';')[0].trim();

function offerFacts({ amount, network, payTo, extra }) {
  return facts([
    ['Price', usdc(amount)],
    ['Network', network],
    ['Receiver', payTo],
    ['Charged', extra && extra.paymentFlow === 'upfront' ? 'before the work' : 'only for an answer'],
  ]);
}

/**
 * The data for showing a purchase later: amount, transfer, and the link to its answer. `explorer`: the URL pattern with TRANSACTION, if
 * there is one.
 */
function receiptParts({ amount, payer, network, receipt, link, at }, explorer) {
  const { transaction } = receipt || {};
  const pairs = [
    ['Amount', usdc(amount)],
    ['From', payer],
  ];
  if (at) pairs.push(['Answered', new Date(at).toLocaleString()]);
  if (transaction)
    pairs.push([
      'Transfer',
      network === 'sandbox' ? localTransfer(transaction) : onChain(transaction, explorer),
    ]);
  if (link) pairs.push(['Answer', linkTo(link, 'Fetch it again, without paying')]);
  const parts = [facts(pairs)];
  if (receipt) parts.push(folded('The whole receipt', block(JSON.stringify(receipt, null, 2), 'Receipt')));
  return parts;
}

function onChain(transaction, explorer) {
  if (!explorer) return transaction;
  const page = explorer.replace('TRANSACTION', encodeURIComponent(transaction));
  const link = linkTo(page, short(transaction) + ' at ' + new URL(page).host);
  link.rel = 'noreferrer';
  return link;
}

/** Explorers can't see the local chain, so the server reads the transfer. */
function localTransfer(transaction) {
  const text = make('span', transaction);
  fromSandbox('/transfers', { signature: transaction }).then(
    ({ slot, from, to, amount }) => {
      text.textContent =
        amount +
        ' USDC from ' +
        from +
        ' to ' +
        to +
        ', slot ' +
        slot +
        ' of the local chain: ' +
        transaction;
    },
    () => {},
  );
  return text;
}

function iconOf(icon) {
  const image = make('img');
  image.src = icon;
  image.alt = '';
  image.width = image.height = 20;
  return image;
}

/** The wallets of this browser that can pay on a network, the sandbox's own first. `sign` returns the payment, ready to be sent. */
function walletsFor(network) {
  const chain = CHAINS[network];
  const own = document.querySelector('[data-sandbox-wallet]') ? [SANDBOX] : [];
  const others = getWallets()
    .get()
    .filter(({ chains, features }) => chains.includes(chain) && SIGN in features && CONNECT in features)
    .map(wallet => ({
      name: wallet.name,
      icon: wallet.icon,
      sign: (challenge, offer) => signWith(wallet, chain, challenge, offer),
    }));
  return [...own, ...others];
}

async function fromSandbox(path, body) {
  const answer = await fetch(SANDBOX_WALLET + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(await errorOf(answer));
  return answer.json();
}

const SANDBOX = {
  name: 'the sandbox wallet',
  icon: undefined,
  sign: (_challenge, { amount }, operation) => fromSandbox('/payments', { operation, amount }),
};

async function signWith(wallet, chain, challenge, offer) {
  const { accounts } = await wallet.features[CONNECT].connect();
  const account = accounts.find(each => each.chains.includes(chain)) || accounts[0];
  if (!account) throw new Error(wallet.name + ' shares no account with this page');
  const memo = Array.from(crypto.getRandomValues(new Uint8Array(16)), byte =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
  const transaction = await unsignedTransaction(offer, new Uint8Array(account.publicKey), memo);
  const [{ signedTransaction }] = await wallet.features[SIGN].signTransaction({
    account,
    chain,
    transaction,
  });
  const { resource, extensions = {} } = challenge;
  const payment = {
    x402Version: 2,
    ...(resource ? { resource } : {}),
    accepted: offer,
    payload: { transaction: base64(signedTransaction) },
    ...(IDENTIFIER in extensions ? { extensions: { [IDENTIFIER]: identified(extensions[IDENTIFIER]) } } : {}),
  };
  return { header: base64(new TextEncoder().encode(JSON.stringify(payment))), payer: account.address };
}

/** The id of the purchase, which makes the server keep its answer for a day. */
function identified(offered) {
  return { ...offered, info: { ...offered.info, id: 'page-' + crypto.randomUUID() } };
}

/** @type {NodeListOf<HTMLElement>} */
const sections = document.querySelectorAll('.buy');
const purchases = [...sections].map(section => new Purchase(section));
const wallets = getWallets();
for (const event of /** @type {const} */ (['register', 'unregister']))
  wallets.on(event, () => purchases.forEach(each => each.showButtons()));
for (const purchase of purchases) void purchase.begin();
