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
 * Changes the receiver of a ledger. All payments stay: delivered answers can still be fetched and owed payments stay owed. The former
 * receiver is recorded, because earlier payments are checked against the address to which they were paid.
 * @param options.payTo a Solana address
 * @returns the former receiver
 * @throws LedgerFault, without changing anything, if a server has the ledger open, a payment is unresolved, or there is nothing to change
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
      // If a server runs unnoticed, its next sale waits for this lock and then fails because the receiver has changed.
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
    throw new LedgerFault('failed', `${payTo} is already the receiver of this ledger. Nothing was changed.`);
  return former;
}

/** The server may have to request the settlement of an unresolved payment again, with the former receiver. */
async function refuseUnresolved(run: Run): Promise<void> {
  const [row] = await run(unresolved());
  if (row === undefined || row.payments === 0) return;
  throw new LedgerFault(
    'failed',
    `${row.payments === 1 ? '1 payment is' : `${row.payments} payments are`} being settled. Start the server with the former PAY_TO, wait until npm run ledger -- summary shows ` +
      'no unresolved payment, stop it, and repeat the command. Nothing was changed.',
  );
}
