import type { Json } from '../contract/json.js';

/** The fields of a text to sign, each on its own line, in this order (CAIP-122 in the form of Sign-In with Solana). */
const LINES: [name: string, title: string][] = [
  ['uri', 'URI'],
  ['version', 'Version'],
  ['chainId', 'Chain ID'],
  ['nonce', 'Nonce'],
  ['issuedAt', 'Issued At'],
  ['expirationTime', 'Expiration Time'],
  ['notBefore', 'Not Before'],
  ['requestId', 'Request ID'],
];
const NEEDED = ['domain', 'uri', 'version', 'nonce', 'issuedAt'];
const MAX_TEXT = 1_000;
const MAX_RESOURCES = 20;
// eslint-disable-next-line no-control-regex -- one of these would begin a line that was not meant
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/** A field of the text to sign is missing, or can't be written on one line. */
export class UnsignableField extends Error {
  readonly missing: boolean;

  /** @param field the name of the field */
  constructor(field: string, missing: boolean) {
    super(field);
    this.missing = missing;
  }
}

/** The signed fields. All are strings except `resources`, a list of strings. */
export type SignedFields = { readonly [name: string]: string | readonly string[] };

/** The signed fields of a statement; all others are ignored. @throws UnsignableField */
export function signedFields(info: Json): SignedFields {
  const kept: Record<string, string> = {};
  for (const name of ['domain', 'statement', ...LINES.map(([each]) => each)]) {
    const value = info[name];
    if (value === undefined || value === null) continue;
    if (!isLine(value)) throw new UnsignableField(name, false);
    kept[name] = value;
  }
  const missing = NEEDED.find(name => kept[name] === undefined);
  if (missing) throw new UnsignableField(missing, true);
  const { resources } = info;
  if (resources === undefined) return kept;
  if (!Array.isArray(resources) || resources.length > MAX_RESOURCES || !resources.every(isLine))
    throw new UnsignableField('resources', false);
  return { ...kept, resources };
}

/**
 * The text, LF between its lines and none at its end.
 * @param info the result of `signedFields`
 */
export function textToSign(info: SignedFields, address: string): string {
  const { domain, statement, resources } = info;
  const value = (name: string): string => {
    const text = String(info[name]);
    return name === 'chainId' ? text.replace(/^[^:]*:/, '') : text;
  };
  return [
    `${String(domain)} wants you to sign in with your Solana account:`,
    address,
    '',
    ...(statement === undefined || statement === '' ? [] : [String(statement), '']),
    ...LINES.filter(([name]) => info[name] !== undefined).map(([name, title]) => `${title}: ${value(name)}`),
    ...(Array.isArray(resources) && resources.length > 0
      ? ['Resources:', ...resources.map(resource => `- ${resource}`)]
      : []),
  ].join('\n');
}

function isLine(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TEXT && !CONTROL.test(value);
}
