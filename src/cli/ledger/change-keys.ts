import { changeSecret } from '../../http/answer-secrets.js';
import type { openLedgerReader } from '../../ledger/store.js';
import { OperatorFault } from '../../operator/operator-fault.js';
import { time, type Report } from './print.js';

/** Replaces the secret from which answer keys are made. The secret is never shown. */
export async function answerKeys(
  reader: Awaited<ReturnType<typeof openLedgerReader>>,
  { change, leaked = false }: { change?: boolean | undefined; leaked?: boolean | undefined },
): Promise<Report> {
  if (!change) throw new OperatorFault('Add --change to replace the secret. Nothing was changed.');
  const changed = await changeSecret(reader, { leaked, now: Date.now() });
  return {
    data: changed,
    lines: [
      `From ${time(changed.from)} on, all servers of this ledger create answer keys with the new secret.`,
      `Earlier keys are accepted until ${time(changed.formerUntil)}. Buyers who send the same payment again get a new key.`,
    ],
  };
}
