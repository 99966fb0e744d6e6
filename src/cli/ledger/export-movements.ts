import { exported, FORMATS, type Format } from '../../books/export-formats.js';
import { FiatRates } from '../../books/fiat-rates.js';
import { movements, type BookSource } from '../../books/movements.js';
import { OperatorFault } from '../../operator/operator-fault.js';
import { daysOf } from './csv.js';

type Wanted = { from?: string; to?: string; format: string; rates: string | undefined };

/** The movements of money as text, in pieces. `rates`: a file or URL. @throws OperatorFault */
export async function* exportedMovements(
  reader: BookSource,
  { format, rates, ...range }: Wanted,
): AsyncGenerator<string> {
  if (!Object.hasOwn(FORMATS, format))
    throw new OperatorFault(`--format must be one of ${Object.keys(FORMATS).join(', ')}, not '${format}'.`);
  const { from = 0, to = Number.MAX_SAFE_INTEGER } = daysOf(range);
  const read = rates === undefined ? undefined : await FiatRates.from(rates);
  yield* exported(format as Format, movements(reader, { from, to }), read);
}
