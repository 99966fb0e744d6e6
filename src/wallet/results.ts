import type { Json } from '../contract/json.js';
import { objectOf } from '../contract/references.js';
import { toDecimal } from '../price/amount.js';
import type { ToolResult } from './tool-result.js';

/** The report to the host about the money. Amounts in atomic units of USDC. `reserved`: signed for this call, without an answer yet. */
export type Note = {
  paid?: bigint | undefined;
  reserved?: bigint;
  left?: bigint;
  budget?: bigint;
  transaction?: string | undefined;
};

const NOTE_KEY = 'coinslot/wallet';

/** The shop's result, with the note about the money as a sentence and, for programs, in `_meta`. */
export function withNote(result: ToolResult, note: Note): ToolResult {
  const text = sentenceOf(note);
  return {
    ...result,
    content: [...result.content, ...(text === '' ? [] : [{ type: 'text', text }])],
    _meta: { ...result._meta, [NOTE_KEY]: jsonOf(note) },
  };
}

/** An error that the model can act on. @param from the shop's result, whose `_meta` and structured content are passed on */
export function errorResult(error: string, note: Note = {}, from?: ToolResult): ToolResult {
  const left = sentenceOf({ ...note, paid: undefined });
  return {
    isError: true,
    content: [{ type: 'text', text: left === '' ? error : `${error} ${left}` }],
    structuredContent: { ...objectOf(from?.structuredContent), error },
    _meta: { ...from?._meta, [NOTE_KEY]: jsonOf(note) },
  };
}

function sentenceOf({ paid, left, budget, transaction }: Note): string {
  const receipt = transaction ? ` (transaction ${transaction})` : '';
  const price = paid === undefined ? '' : `Paid ${toDecimal(paid)} USDC${receipt}.`;
  const rest =
    left === undefined || budget === undefined
      ? ''
      : `${toDecimal(left)} of ${toDecimal(budget)} USDC are left today.`;
  return [price, rest].filter(text => text !== '').join(' ');
}

function jsonOf({ paid, reserved, left, budget, transaction }: Note): Json {
  const amounts = Object.entries({ paid, reserved, left, budget }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, toDecimal(value)]],
  );
  return {
    ...(Object.fromEntries(amounts) as Json),
    currency: 'USDC',
    ...(transaction ? { transaction } : {}),
  };
}
