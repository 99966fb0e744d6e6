import { changeSecret } from '../../http/answer-secrets.js';
import type { openLedgerReader } from '../../ledger/store.js';
import { OperatorFault } from '../../operator/operator-fault.js';
import { time, type Report } from './print.js';

/** Replaces the secret from which the keys of answers are made. It is never shown. */
export async function answerKeys(
  reader: Awaited<ReturnType<typeof openLedgerReader>>,
  { change, leaked = false }: { change?: boolean | undefined; leaked?: boolean | undefined },
): Promise<Report> {
  if (!change) throw new OperatorFault('Say --change. Nothing was changed.');
  const changed = await changeSecret(reader, { leaked, now: Date.now() });
  return {
    data: changed,
    lines: [
      `All servers of this ledger give keys of answers of another secret from ${time(changed.from)} on.`,
      `Keys that were given before are taken until ${time(changed.formerUntil)}. Whoever has paid gets a new one with the same payment.`,
    ],
  };
}
