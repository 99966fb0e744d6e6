const EXAMPLES =
  "'length of /body/text, 0.001 per 1000, at most 0.50' (or value, items, bytes), or 'handler, at most 0.50'";
const UNITS = /^(value|length|items|bytes) of (\/\S+), (\S+) per (\d{1,15}), at most (\S+)$/;
const HANDLER = /^handler, at most (\S+)$/;

/** A price that depends on the call, as read from the value of a command's option. */
export type PriceBy = { mode: 'tiered' | 'handler'; max: string; [key: string]: unknown };

/**
 * Reads the `x-price` members, except `min`, currency and flow, from the value of an option such as the
 * examples above.
 * @throws Error whose message follows the name of the option
 */
export function readPriceBy(text: string): PriceBy {
  const words = text.trim().replace(/\s+/g, ' ');
  const [, asked] = HANDLER.exec(words) ?? [];
  if (asked !== undefined) return { mode: 'handler', max: asked };
  const [, measure, by, amount, units, max] = UNITS.exec(words) ?? [];
  if (measure === undefined || max === undefined) throw new Error(`must be like ${EXAMPLES}, not '${text}'.`);
  return { mode: 'tiered', by, measure, per: { amount, units: Number(units) }, max };
}

/** @param least the lowest price of a call, in USDC */
export function risingFrom(least: string, { max, ...rule }: PriceBy): Record<string, unknown> {
  return { ...rule, min: least, max };
}
