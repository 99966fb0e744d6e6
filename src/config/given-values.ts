import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The largest file in bytes. */
const MAX_BYTES = 64 * 1024;
const SUFFIX = '_FILE';

/** A setting is set twice, or its file can't be read. `message` begins with the name. */
export class GivenFault extends Error {}

/**
 * The values of settings, from the three places where an operator may put them: the variable `NAME`; a file that `NAME_FILE` names, as
 * containers mount secrets; the file `NAME` in `$CREDENTIALS_DIRECTORY`, as systemd passes credentials (systemd.exec(5), "Credentials").
 * A secret in a file is neither in the process's environment, which its children inherit, nor in `/proc`. Each file is read once.
 */
export class GivenValues {
  readonly #env: NodeJS.ProcessEnv;
  readonly #read = new Map<string, string | undefined>();

  constructor(env: NodeJS.ProcessEnv) {
    this.#env = env;
  }

  /** The names of the settings that have a variable `NAME` or `NAME_FILE`, even an empty one. */
  names(): string[] {
    return Object.keys(this.#env).map(name => (name.endsWith(SUFFIX) ? name.slice(0, -SUFFIX.length) : name));
  }

  /** The trimmed value; undefined if it is empty or not set. @throws GivenFault */
  of(name: string): string | undefined {
    if (!this.#read.has(name)) this.#read.set(name, this.#find(name));
    return this.#read.get(name);
  }

  #find(name: string): string | undefined {
    const variable = this.#variable(name);
    const file = this.#variable(name + SUFFIX);
    const folder = this.#variable('CREDENTIALS_DIRECTORY');
    const credential = folder && isFile(join(folder, name)) ? join(folder, name) : undefined;
    const places = [
      variable !== undefined && name,
      file !== undefined && name + SUFFIX,
      credential !== undefined && `the credential ${name}`,
    ].filter(place => place !== false);
    if (places.length > 1)
      throw new GivenFault(`${name}: set by ${places.join(' and by ')}; keep one of them`);
    return variable ?? (file && readText(name, file)) ?? (credential && readText(name, credential));
  }

  #variable(name: string): string | undefined {
    return this.#env[name]?.trim() || undefined;
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

/** The error never contains the file's contents. */
function readText(name: string, path: string): string | undefined {
  let text: string;
  try {
    if (statSync(path).size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES / 1024} KB`);
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new GivenFault(`${name}: the file ${path} can't be read: ${(error as Error).message}`);
  }
  if (text === '') throw new GivenFault(`${name}: the file ${path} is empty`);
  return text;
}
