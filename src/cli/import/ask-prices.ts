import type { Row } from '../../contract/import/import-contract.js';
import { readPriceRule } from '../../contract/import/price-rules.js';
import { ImportFault } from '../../contract/import/source-document.js';

/** Asks the user one question. Rejects if the input has ended. */
export type Ask = (question: string) => Promise<string>;

const MAX_TRIES = 5;
const PRICE = '0.01';

/**
 * Lets the user choose which operations to sell, and their prices.
 * @returns rules for --price
 * @throws ImportFault if nothing is chosen
 */
export async function askPrices(
  rows: readonly Row[],
  ask: Ask,
  say: (text: string) => void,
): Promise<string[]> {
  const sellable = rows.filter(({ leftOut }) => leftOut === undefined);
  if (sellable.length === 0)
    throw new ImportFault('Nothing in the document can be sold, so nothing was written.');
  say(`${sellable.map(lineOf).join('\n')}\n`);
  const all = await asked(
    ask,
    say,
    'Which ones do you want to sell? (such as 1,3-5; Enter for all) ',
    text => (text === '' ? [...sellable.keys()] : numbersOf(text, sellable.length)),
  );
  const usual = await asked(ask, say, `Price of a call in USD? (Enter for ${PRICE}) `, text =>
    amountOf(text || PRICE),
  );
  const amounts = new Map(all.map(index => [index, usual]));
  const others = 'A different price for some of them? (such as 3=0.50 or 4-6=0.02; Enter for none) ';
  for (let more = true; more;)
    more = await asked(ask, say, others, text => {
      if (text === '') return false;
      const [numbers = '', amount = ''] = text.split('=', 2);
      const own = amountOf(amount);
      for (const index of numbersOf(numbers, sellable.length)) amounts.set(index, own);
      return true;
    });
  return [...amounts].map(([index, amount]) => {
    const { method = '', path = '' } = sellable[index] ?? {};
    return `${method} ${path}=${amount}`;
  });
}

function lineOf({ method, path, notes }: Row, index: number): string {
  return [`${String(index + 1).padStart(4)}  ${method} ${path}`, ...notes].join('; ');
}

/** Asks again if an answer can't be read. */
async function asked<T>(
  ask: Ask,
  say: (text: string) => void,
  question: string,
  read: (text: string) => T,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return read((await ask(question)).trim());
    } catch (error) {
      if (!(error instanceof ImportFault) || tries >= MAX_TRIES) throw error;
      say(`${error.message}\n`);
    }
  }
}

/** `1,3-5` → 0, 2, 3, 4. @throws ImportFault */
function numbersOf(text: string, most: number): number[] {
  const found = text.split(',').flatMap(part => {
    const [, from = '', to = from] = /^\s*(\d{1,5})\s*(?:-\s*(\d{1,5})\s*)?$/.exec(part) ?? [];
    const [first, last] = [Number(from), Number(to)];
    if (from === '' || first < 1 || last > most || first > last)
      throw new ImportFault(
        `'${part.trim().slice(0, 40)}' is neither a number from 1 to ${most} nor a range such as 1-${most}.`,
      );
    return Array.from({ length: last - first + 1 }, (_each, index) => first - 1 + index);
  });
  return [...new Set(found)];
}

function amountOf(text: string): string {
  return readPriceRule(`*=${text}`).amount;
}
