import { setTimeout as wait } from 'node:timers/promises';
import { openLedger } from '../../src/ledger/store.js';
import { openTarget } from '../../src/webhooks/open-webhooks.js';
import { TargetTeller } from '../../src/webhooks/tell-targets.js';
import { claimed, OWNER, payment, settles } from '../support/ledgers.js';

/**
 * A server that writes sales, owed payments and refunds as fast as the ledger allows, and reports them to a
 * webhook, until it is killed. Prints the id of each payment that is refunded. With SALES=0 it only reports,
 * and prints a line when nothing is left.
 */
const { DATABASE_URL = '', WEBHOOK = '', SALES = '0' } = process.env;
const SECRET = Buffer.from(process.env['SECRET'] ?? '', 'base64');

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const ledger = await openLedger({ url: DATABASE_URL, ...OWNER });
const log = { info: () => {}, warn: () => {}, error: () => {} };
const sender = { shop: 'Tea', publicUrl: 'https://tea.example', operatorUrl: 'http://127.0.0.1:8404' };
const config = { targets: [], secrets: [SECRET], allowPrivate: true };
const target = await openTarget({ name: 'receiver', form: 'signed', url: WEBHOOK, kinds: [] }, config);
await new TargetTeller({ ledger, sender, log }).start([{ target, kinds: [] }]);
say('ready');

for (let n = 0; n < Number(SALES); n++) {
  const request = payment({
    limits: { ...payment().limits, maxUnsettledPerPayer: 1_000_000 },
    payer: `Payer${n}`,
  });
  const claim = await claimed(ledger, request);
  await settles(ledger, request.id, claim);
  await ledger.owe(request.id, claim, { settlement: `sig ${request.id}` });
  await ledger.refund(request.id, {
    signature: `back ${request.id}`,
    amount: 10_000n,
    slot: 1,
    refundedAt: 1,
  });
  say(request.id);
}
if (SALES === '0') {
  while ((await ledger.eventsWaiting()).length > 0) await wait(200);
  say('told');
}
setInterval(() => {}, 60_000);
