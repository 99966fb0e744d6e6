import { changeReceiver } from '../../ledger/change-receiver.js';
import { readAddress } from '../../rails/solana/address.js';
import { table, time } from './print.js';
import type { Report } from './print.js';
import { owed } from './reports.js';
import { OperatorFault } from '../../operator/operator-fault.js';
import type { ReportSource } from '../../operator/find-payment.js';

/** The receiver of the ledger, and those that it had before. */
export async function showReceiver(reader: ReportSource): Promise<Report> {
  const { payTo, formerReceivers } = await reader.identity();
  const former = formerReceivers.map(({ payTo: address, until }) => ({ payTo: address, until: time(until) }));
  const lines = [
    payTo === undefined
      ? 'The ledger has sold nothing yet. It will belong to the PAY_TO of the server that sells first.'
      : `The ledger belongs to PAY_TO ${payTo}.`,
  ];
  if (former.length > 0)
    lines.push(
      '',
      ...table(
        ['former receiver', 'until'],
        former.map(each => [each.payTo, each.until]),
      ),
    );
  return { data: { payTo: payTo ?? null, former }, lines };
}

/**
 * Changes the receiver of a ledger that no server uses, and lists what is owed.
 * @param withReader opens the ledger for reading, after the change
 * @throws OperatorFault, LedgerFault: nothing was changed
 */
export async function setReceiver(
  url: string,
  payTo: string,
  withReader: (report: (reader: ReportSource) => Promise<Report>) => Promise<Report>,
): Promise<Report> {
  if (readAddress(payTo) === undefined)
    throw new OperatorFault(`'${payTo}' is not a Solana address. Nothing was changed.`);
  const { former } = await changeReceiver({ url, payTo });
  const debts = await withReader(reader => owed(reader, Date.now()));
  return {
    data: { payTo, former, owed: debts.data },
    lines: [
      `The receiver of this ledger was ${former} and is now ${payTo}.`,
      'These payments are owed. The server delivers them as before, and a refund may come from either address:',
      '',
      ...debts.lines,
      '',
      `Now set PAY_TO=${payTo}, run npm run check, and start the servers.`,
      `Keep the key of ${former} for as long as you may have to refund from it.`,
    ],
  };
}
