import { openEngine, opening } from './engines/open-engine.js';
import { runWith } from './engine.js';
import type { Run } from './engine.js';
import { LedgerFault } from './fault.js';
import { checkReadable, readMeta } from './migrate.js';
import { setMeta } from './queries/meta.js';
import { unresolved } from './queries/reports.js';
import { formerReceiversOf } from './receiver-binding.js';
import { raw } from './sql.js';

/**
 * Makes another address the receiver of a ledger. All payments stay: delivered answers can still be fetched, owed payments stay owed, and
 * the former receiver is recorded, so that each payment is judged by the address that it was paid to.
 * @param options.payTo a Solana address
 * @returns the former receiver
 * @throws LedgerFault if a server has the ledger open, a payment is unresolved, or there is nothing to change; nothing was changed then
 */
export async function changeReceiver(options: {
  url: string;
  payTo: string;
  now?: () => number;
}): Promise<{ former: string }> {
  const { url, payTo, now = Date.now } = options;
  const engine = await openEngine(url, 'source');
  try {
    await opening(engine.read(() => checkReadable()));
    return await engine.transact(async run => {
      // A server that runs unnoticed waits here with its sale, and then finds that the receiver has changed.
      if (engine.dialect.concurrentWriters) await run(raw('lock table payments in share row exclusive mode'));
      const meta = await runWith(run, readMeta());
      const former = refuseOrFormer(meta, payTo);
      await refuseUnresolved(run);
      const receivers = [...formerReceiversOf(meta), { payTo: former, until: now() }];
      await run(setMeta({ key: 'former_pay_to', value: JSON.stringify(receivers) }));
      await run(setMeta({ key: 'pay_to', value: payTo }));
      return { former };
    });
  } finally {
    await engine.close();
  }
}

function refuseOrFormer(meta: ReadonlyMap<string, string>, payTo: string): string {
  const retired = meta.get('retired');
  if (retired !== undefined)
    throw new LedgerFault(
      'open',
      `This ledger is retired: it was moved to ${retired}. Change the receiver there.`,
    );
  const former = meta.get('pay_to');
  if (former === undefined)
    throw new LedgerFault(
      'failed',
      `This ledger has sold nothing yet and belongs to no receiver. Start the server with PAY_TO=${payTo}. Nothing was changed.`,
    );
  if (former === payTo)
    throw new LedgerFault('failed', `${payTo} already is the receiver of this ledger. Nothing was changed.`);
  return former;
}

/** The offer of an unresolved payment names the receiver: a settlement may have to be requested again. */
async function refuseUnresolved(run: Run): Promise<void> {
  const [row] = await run(unresolved());
  if (row === undefined || row.payments === 0) return;
  throw new LedgerFault(
    'failed',
    `${row.payments === 1 ? '1 payment is' : `${row.payments} payments are`} being settled. Start the server with the former PAY_TO, wait until npm run ledger -- summary shows ` +
      'no unresolved payment, stop it, and repeat the command. Nothing was changed.',
  );
}
