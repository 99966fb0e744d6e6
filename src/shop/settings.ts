import type { SettingReader } from '../config/setting-reader.js';
import { shownUrl } from '../net/endpoint.js';
import type { NetworkName } from '../rails/solana/networks.js';
import type { HandlerContext } from './handler-context.js';

/** An environment variable that an operation reads. Once declared, it appears in errors, in `npm run check` and in `context.settings`. */
export type Setting<T> = {
  readonly name: string;
  /** The description for the operator. */
  readonly what: string;
  /** Whether the value is secret and never shown. */
  readonly secret: boolean;
  /** Whether the value is a token with which people other than the operator sign in. */
  readonly isToken?: true;
  /** Reads the value. Reports an invalid value to the reader, which names the variable. */
  readonly read: (reader: SettingReader) => T;
};

export type Settings = Readonly<Record<string, Setting<unknown>>>;
/** The values of settings, under the names that their operation gave them. */
export type ValuesOf<S extends Settings> = { readonly [K in keyof S]: ReturnType<S[K]['read']> };

/** Conflicts between values, each as a sentence that begins with the names of the variables; empty if there are none. */
export type FaultsOf<Values> = (values: Values, network: NetworkName) => string[];

/** How an entry of the table declares its settings. */
export type Declared = { readonly settings?: Settings; readonly faults?: FaultsOf<never> };

type Text = { secret?: boolean; pattern?: RegExp; form?: string };

const MIN_TOKEN_CHARACTERS = 16;

/** Kinds of settings. Without a `default`, the value of a variable that is not set is undefined. */
export const setting = {
  /** `pattern`: must match the whole value; `form` describes it, for example `an amount in dollars such as 0.40`. */
  text<D extends string | undefined = undefined>(
    name: string,
    what: string,
    { default: fallback, secret = false, pattern, form = 'valid' }: Text & { default?: D } = {},
  ): Setting<string | D> {
    const read = (reader: SettingReader): string | D => {
      const text = reader.text(name);
      if (text === undefined) return fallback as D;
      if (pattern && !pattern.test(text))
        reader.fault(`${name}: ${secret ? 'its value' : `'${text}'`} is not ${form}`);
      return text;
    };
    return { name, what, secret, read };
  },
  /** A secret of at least 16 characters that signs people in to a page. It can't be the operator's own. */
  token(name: string, what: string): Setting<string | undefined> {
    const read = (reader: SettingReader): string | undefined => {
      const token = reader.secret(name, MIN_TOKEN_CHARACTERS);
      if (token !== undefined && token === reader.text('ADMIN_TOKEN'))
        reader.fault(`ADMIN_TOKEN: must differ from ${name}, which people other than the operator know`);
      return token;
    };
    return { name, what, secret: true, isToken: true, read };
  },
  /** An http(s) URL, without a trailing slash. A user name, password or query is never shown. */
  url(name: string, what: string): Setting<string | undefined> {
    return { name, what, secret: false, read: reader => reader.url(name) };
  },
  /** One of several words. */
  oneOf<T extends string, D extends T | undefined = undefined>(
    name: string,
    what: string,
    { values, default: fallback }: { values: readonly T[]; default?: D },
  ): Setting<T | D> {
    const [first] = values as readonly [T, ...T[]];
    const read = (reader: SettingReader): T | D =>
      reader.text(name) === undefined ? (fallback as D) : reader.oneOf(name, values, first);
    return { name, what, secret: false, read };
  },
  /** A whole number, from `min` to `max`. */
  integer(
    name: string,
    what: string,
    { min, max, default: fallback }: { min: number; max: number; default: number },
  ): Setting<number> {
    return { name, what, secret: false, read: reader => reader.integer(name, fallback, min, max) };
  },
};

/**
 * An entry of the handler table that reads settings: `open` finds their values in `context.settings`. `faults` reports conflicts between
 * values. Faults prevent startup before anything is opened.
 */
export function withSettings<S extends Settings, R>(
  settings: S,
  open: (context: HandlerContext<ValuesOf<S>>) => R,
  faults: FaultsOf<ValuesOf<S>> = () => [],
): ((context: HandlerContext) => R) & Declared {
  // The server gives each entry the values of the settings that it declares.
  return Object.assign(open as (context: HandlerContext) => R, {
    settings,
    faults: faults,
  });
}

/** The values of the settings of each operation. Faults are reported to the reader, which throws in `finish`. */
export function readSettings(
  handlers: Readonly<Record<string, Declared>>,
  reader: SettingReader,
  network: NetworkName,
): Record<string, object> {
  const known = new Map<Setting<unknown>, unknown>();
  const valueOf = (one: Setting<unknown>): unknown => {
    if (!known.has(one)) known.set(one, one.read(reader));
    return known.get(one);
  };
  const all: Record<string, object> = {};
  for (const [id, { settings = {}, faults }] of Object.entries(handlers)) {
    const values = Object.fromEntries(Object.entries(settings).map(([key, one]) => [key, valueOf(one)]));
    for (const fault of (faults as FaultsOf<object> | undefined)?.(values, network) ?? [])
      reader.fault(fault);
    all[id] = values;
  }
  return all;
}

/** The names of the variables that are set and hold the token of a page. */
export function tokensSet(
  handlers: Readonly<Record<string, Declared>>,
  reader: Pick<SettingReader, 'text'>,
): string[] {
  const all = Object.values(handlers).flatMap(({ settings = {} }) => Object.values(settings));
  return all
    .filter(({ isToken, name }) => isToken && reader.text(name) !== undefined)
    .map(({ name }) => name);
}

/** One line for each operation that reads settings, which lists its settings and their values; secrets appear without their values. */
export function settingsInWords(
  handlers: Readonly<Record<string, Declared>>,
  reader: SettingReader,
): { id: string; found: string }[] {
  return Object.entries(handlers).flatMap(([id, { settings = {} }]) => {
    const all = Object.values(settings);
    if (all.length === 0) return [];
    const found = all.map(({ name, secret }) => {
      const text = reader.text(name);
      return text === undefined
        ? `${name} is not set`
        : secret
          ? `${name} is set`
          : `${name}=${shownUrl(text)}`;
    });
    return [{ id, found: found.join(', ') }];
  });
}
