import { Replica } from '../../ledger/replica.js';
import type { ReportSource } from '../../operator/find-payment.js';
import { replicaSentence } from '../../operator/replica-sentence.js';
import { writeErr } from '../terminal.js';

/** Runs a report that reads many rows, on the replica at `url` if it is usable. */
export async function throughReplica<T>(
  reader: ReportSource,
  url: string | undefined,
  work: (reader: ReportSource) => Promise<T>,
): Promise<T> {
  if (url === undefined) return work(reader);
  const replica = new Replica({ url, primary: reader });
  try {
    writeErr(`${replicaSentence(await replica.state())}\n`);
    return await work({ ...reader, ...replica.reports });
  } finally {
    await replica.close();
  }
}
