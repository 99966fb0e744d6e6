import process from 'node:process';
import { claimTimes } from './claim-times.js';
import { DAY_MS, fill, open } from './filled-ledger.js';

/**
 * A process that claims payments in a ledger and reports how long that took. On the message `{ fill, rows }` it fills a ledger with old sales; on
 * `{ claim, count }` it claims new payments, one after the other and then 64 at a time.
 */

async function claims(file, count) {
  const ledger = await open(file);
  try {
    return await claimTimes(ledger, count);
  } finally {
    await ledger.close();
  }
}

process.on('disconnect', () => process.exit(0));
process.on('message', ({ fill: toFill, claim, rows, count }) => {
  const long = { began: Date.now() - 40 * DAY_MS, everyMs: 30 };
  (toFill ? fill(toFill, rows, long) : claims(claim, count)).then(
    result => process.send({ result }),
    error => process.send({ error: String(error.stack ?? error) }),
  );
});
