import type { DescribedValue } from './price.js';

/** A number without rounding: `units` / `scale`. */
export type Exact = { readonly units: bigint; readonly scale: bigint };

const ZERO: Exact = { units: 0n, scale: 1n };

/** How a value is converted to a number; undefined for a value that can't be. */
export type Measure = {
  /** The JSON types that can be measured this way. */
  readonly types: readonly string[];
  /** The unit that it counts, for human readers. */
  readonly unit: string;
  of(value: unknown, bytes: boolean): Exact | undefined;
};

export const MEASURES = {
  value: {
    types: ['integer', 'number'],
    unit: '',
    of: value => (typeof value === 'number' ? exact(value) : undefined),
  },
  length: {
    types: ['string'],
    unit: ' characters',
    of: value => (typeof value === 'string' ? whole(charactersIn(value)) : undefined),
  },
  items: {
    types: ['array'],
    unit: ' items',
    of: value => (Array.isArray(value) ? whole(value.length) : undefined),
  },
  bytes: {
    types: ['string', 'array', 'object'],
    unit: ' bytes',
    of: (value, bytes) => {
      if (value === undefined || value === null) return undefined;
      if (typeof value !== 'string') return whole(Buffer.byteLength(JSON.stringify(value)));
      return whole(bytes ? bytesIn(value) : Buffer.byteLength(value));
    },
  },
} satisfies Record<string, Measure>;

export type MeasureName = keyof typeof MEASURES;

export function isMeasure(name: unknown): name is MeasureName {
  return typeof name === 'string' && Object.hasOwn(MEASURES, name);
}

/**
 * The number of bytes in base64 or a data URL. Only a short prefix counts as the beginning of a data URL, because many decoders skip
 * commas.
 */
function bytesIn(text: string): number {
  const [beginning = ''] = /^data:[^,]{0,100};base64,/i.exec(text) ?? [];
  return Buffer.byteLength(text.slice(beginning.length), 'base64');
}

/** The number of characters, counted like `maxLength`. */
function charactersIn(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const next = text.charCodeAt(at + 1);
    if (code >= 0xd800 && code < 0xdc00 && next >= 0xdc00 && next < 0xe000) at += 1;
    count += 1;
  }
  return count;
}

const whole = (count: number): Exact => ({ units: BigInt(count), scale: 1n });

/** A number in JSON notation; negative numbers count as zero. Undefined if it is not a number. */
export function exact(value: number): Exact | undefined {
  if (!Number.isFinite(value)) return undefined;
  if (value <= 0) return ZERO;
  const [mantissa = '', exponent = '0'] = String(value).split('e');
  const [integer = '', fraction = ''] = mantissa.split('.');
  const shift = Number(exponent) - fraction.length;
  const digits = BigInt(integer + fraction);
  return shift < 0
    ? { units: digits, scale: 10n ** BigInt(-shift) }
    : { units: digits * 10n ** BigInt(shift), scale: 1n };
}

export function isAtMost(a: Exact, b: Exact): boolean {
  return a.units * b.scale <= b.units * a.scale;
}

/** Why this measure can't be applied to a value; undefined if it can. */
export function unmeasured(name: MeasureName, { types, always }: DescribedValue): string | undefined {
  const fit: readonly string[] = MEASURES[name].types;
  const found = types.length > 0 ? `of type ${types.join(' or ')}` : 'whose type the contract does not state';
  if (types.length === 0 || !types.every(each => fit.includes(each)))
    return `measure ${name} needs a value of type ${fit.join(' or ')}, but by points to a value ${found}`;
  return always
    ? undefined
    : 'by points to a value that a call may leave out: make it required, or give it a default';
}
