import { GivenFault, GivenValues } from './given-values.js';
import { shownUrl } from '../net/endpoint.js';
import { isAddress } from '../rails/solana/address.js';

const MAX_ADDRESSES = 100;

/** Invalid configuration. `message` lists all errors, each with the name of its variable. */
export class ConfigFault extends Error {}

/** Reads variables and collects their errors, so that all are reported together. */
export class SettingReader {
  readonly #faults: string[] = [];
  readonly #given: GivenValues;

  constructor(env: NodeJS.ProcessEnv) {
    this.#given = new GivenValues(env);
  }

  /** The names of all variables, including empty ones. */
  names(): string[] {
    return this.#given.names();
  }

  fault(message: string): void {
    this.#faults.push(message);
  }

  finish(): void {
    if (this.#faults.length) {
      throw new ConfigFault(`Invalid configuration:\n  ${this.#faults.join('\n  ')}`);
    }
  }

  demand(value: unknown, name: string, what: string): void {
    if (value === undefined && this.text(name) === undefined) this.fault(`${name}: must be set: ${what}`);
  }

  /** The value of a setting, from its variable, from the file that `NAME_FILE` names, or from systemd's credentials. */
  text(name: string): string | undefined {
    try {
      return this.#given.of(name);
    } catch (error) {
      if (!(error instanceof GivenFault)) throw error;
      if (!this.#faults.includes(error.message)) this.fault(error.message);
      return undefined;
    }
  }

  integer(name: string, fallback: number, min: number, max: number): number {
    const text = this.text(name);
    if (text === undefined) return fallback;
    const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN;
    if (value >= min && value <= max) return value;
    this.fault(`${name}: '${text}' is not a whole number from ${min} to ${max}`);
    return fallback;
  }

  oneOf<T extends string>(name: string, values: readonly T[], fallback: T): T {
    const text = this.text(name);
    if (text === undefined) return fallback;
    if ((values as readonly string[]).includes(text)) return text as T;
    this.fault(`${name}: '${text}' is not one of ${values.join(', ')}`);
    return fallback;
  }

  url(name: string): string | undefined {
    const text = this.text(name);
    return text === undefined ? undefined : this.checkUrl(name, text);
  }

  urls(name: string): string[] | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const urls = text.split(',').map(part => this.checkUrl(name, part.trim()));
    return urls.filter(url => url !== undefined);
  }

  origin(name: string): string | undefined {
    const url = this.url(name);
    if (url === undefined) return undefined;
    const { origin, href } = new URL(url);
    if (href === `${origin}/`) return origin;
    this.fault(
      `${name}: '${shownUrl(url)}' must be an origin such as ${origin}, without path, query or credentials`,
    );
    return undefined;
  }

  database(name: string): string | undefined {
    const text = this.text(name);
    if (text === undefined || /^(file:.|postgres(ql)?:\/\/)/.test(text)) return text;
    this.fault(`${name}: must begin with file: or postgres://`);
    return undefined;
  }

  address(name: string): string | undefined {
    const text = this.text(name);
    if (text === undefined || isAddress(text)) return text;
    this.fault(`${name}: '${text}' is not a Solana address`);
    return undefined;
  }

  /** The addresses in a setting: at most 100, separated by commas. */
  addresses(name: string): string[] {
    const all = (this.text(name) ?? '').split(',').map(part => part.trim());
    const given = all.filter(part => part !== '');
    for (const each of given) if (!isAddress(each)) this.fault(`${name}: '${each}' is not a Solana address`);
    if (given.length > MAX_ADDRESSES) this.fault(`${name}: has more than ${MAX_ADDRESSES} addresses`);
    return given;
  }

  secret(name: string, minLength: number): string | undefined {
    const text = this.text(name);
    if (text === undefined || text.length >= minLength) return text;
    this.fault(`${name}: must have at least ${minLength} characters`);
    return undefined;
  }

  /** Reports a value that is not an http(s) URL as an error in the variable. */
  checkUrl(name: string, text: string): string | undefined {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    // A trailing slash is removed only from the path, not from a query.
    if (url && (url.protocol === 'http:' || url.protocol === 'https:'))
      return url.search ? text : text.replace(/(?<!\/)\/+$/, '');
    this.fault(`${name}: '${shownUrl(text)}' is not an http(s) URL`);
    return undefined;
  }
}
