import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { HOSTS, type Place, type Started } from './hosts.js';
import { OptionFault, walletSettings, type WalletValues } from './wallet-options.js';

export type InstallValues = WalletValues & {
  host?: string | undefined;
  name?: string | undefined;
  yes: boolean;
};

export type Surroundings = Place & {
  /** The path of the program `coinslot`. */
  program: string;
  print: (text: string) => void;
  /** Asks the user, who has seen the changes, for consent. */
  allowed: () => Promise<boolean>;
};

/**
 * Adds the wallet to the settings of a host, after showing the changes. @returns whether the settings have it now
 */
export async function install(values: InstallValues, around: Surroundings): Promise<boolean> {
  const { print } = around;
  const { endpoint } = walletSettings(values);
  const host = HOSTS[values.host ?? ''];
  if (!host) throw new OptionFault(`--host must be one of ${Object.keys(HOSTS).join(', ')}.`);
  const name = nameOf(values.name, endpoint);
  const file = host.file(around);
  const started = startedWith(values, around.program);
  const before = contentOf(file);
  const after = changed(() => host.added(before, name, started), file, started);
  if (after === before) {
    print(`${file} already has this server.\n`);
    return true;
  }
  print(`${host.title}, ${file}:\n\n${changeOf(before, after)}\n`);
  if (!values.yes && !(await around.allowed())) {
    print('Nothing was written. To write without being asked, add --yes.\n');
    return false;
  }
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, after);
  print(`Written. ${host.next(name)}\n`);
  return true;
}

/** Hosts accept letters, digits, `-` and `_` in a server's name, and prefix the names of its tools with it. */
function nameOf(given: string | undefined, endpoint: string): string {
  const { hostname } = new URL(endpoint);
  const name = given ?? (hostname.replace(/[^A-Za-z0-9]+/g, '-').replace(/^-|-$/g, '') || 'shop');
  if (/^[A-Za-z0-9_-]{1,40}$/.test(name)) return name;
  throw new OptionFault('--name may have up to 40 letters, digits, hyphens and underscores.');
}

/** The command of this wallet, for a host that starts it in any folder and with any PATH. */
function startedWith(values: WalletValues, program: string): Started {
  const { url = '', keypair = '', rpc, state, timeout } = values;
  const given = [
    ...['--url', url, '--keypair', resolve(keypair)],
    ...['--max-price', values['max-price'], '--budget', values.budget],
    ...(rpc === undefined ? [] : ['--rpc', rpc]),
    ...(state === undefined ? [] : ['--state', resolve(state)]),
    ...(timeout === '50' ? [] : ['--timeout', timeout]),
    ...(values['allow-http'] ? ['--allow-http'] : []),
  ];
  return { command: process.execPath, args: [program, 'mcp', ...given] };
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}

function changed(added: () => string, file: string, { command, args }: Started): string {
  try {
    return added();
  } catch (error) {
    if (!(error instanceof OptionFault)) throw error;
    const entry = JSON.stringify({ command, args }, null, 2);
    throw new OptionFault(`${file} is left unchanged: ${error.message} To add by hand:\n\n${entry}`);
  }
}

/** The removed and the added lines. */
function changeOf(before: string, after: string): string {
  const [from, to] = [before, after].map(text => text.replace(/\n$/, '').split('\n'));
  const [old, now] = [from ?? [], to ?? []];
  let start = 0;
  while (start < old.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < Math.min(old.length, now.length) - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const removed = before === '' ? [] : old.slice(start, old.length - end);
  return [
    ...removed.map(line => `- ${line}\n`),
    ...now.slice(start, now.length - end).map(line => `+ ${line}\n`),
  ].join('');
}
