import { join } from 'node:path';
import { parseDocument } from 'yaml';
import { isObject } from '../../contract/references.js';
import { OptionFault } from './wallet-options.js';

/** The program that a host starts. */
export type Started = { command: string; args: string[] };

/** The data that determines where a host keeps its settings. `folder`: the current one. */
export type Place = { home: string; folder: string; platform: NodeJS.Platform; env: NodeJS.ProcessEnv };

type Host = {
  /** The name that messages show. */
  title: string;
  file(place: Place): string;
  /** The settings with the server added. @throws OptionFault if the present settings can't be edited safely */
  added(settings: string, name: string, started: Started): string;
  /** The next step for the user, once the settings are written. */
  next(name: string): string;
};

const homeOf = ({ platform, home, env }: Place): string =>
  platform === 'win32' ? (env['APPDATA'] ?? join(home, 'AppData', 'Roaming')) : join(home, '.config');

/** Hosts that read servers from a file, by the names that `--host` takes. */
export const HOSTS: Record<string, Host> = {
  'claude-code': {
    title: 'Claude Code',
    file: ({ folder }) => join(folder, '.mcp.json'),
    added: inJson('mcpServers', started => ({ type: 'stdio', ...started })),
    next: () => 'Start claude in this folder and allow the server.',
  },
  'claude-desktop': {
    title: 'Claude Desktop',
    file: place => join(claudeFolder(place), 'claude_desktop_config.json'),
    added: inJson('mcpServers', started => started),
    next: () => 'Restart Claude Desktop.',
  },
  codex: {
    title: 'Codex',
    file: ({ home, env }) => join(env['CODEX_HOME'] ?? join(home, '.codex'), 'config.toml'),
    added: inToml,
    next: name => `codex mcp get ${name} shows it.`,
  },
  cursor: {
    title: 'Cursor',
    file: ({ home }) => join(home, '.cursor', 'mcp.json'),
    added: inJson('mcpServers', started => started),
    next: () => 'Cursor shows it in its settings, under MCP.',
  },
  goose: {
    title: 'goose',
    file: place =>
      place.platform === 'win32'
        ? join(homeOf(place), 'Block', 'goose', 'config', 'config.yaml')
        : join(homeOf(place), 'goose', 'config.yaml'),
    added: inYaml,
    next: () => 'goose info -v shows it.',
  },
  vscode: {
    title: 'VS Code',
    file: ({ folder }) => join(folder, '.vscode', 'mcp.json'),
    added: inJson('servers', started => ({ type: 'stdio', ...started })),
    next: () => 'Open this folder in VS Code and start the server: MCP: List Servers.',
  },
};

function claudeFolder(place: Place): string {
  const above =
    place.platform === 'darwin' ? join(place.home, 'Library', 'Application Support') : homeOf(place);
  return join(above, 'Claude');
}

/** A JSON file that has the servers in one of its members. */
function inJson(member: string, entry: (started: Started) => object): Host['added'] {
  return (settings, name, started) => {
    const all = settings.trim() === '' ? {} : objectIn(settings);
    const servers = all[member] ?? {};
    if (!isObject(servers)) throw new OptionFault(`its member ${member} is not an object.`);
    const indent = /^[ \t]+/m.exec(settings)?.[0] ?? 2;
    const changed = { ...all, [member]: { ...servers, [name]: entry(started) } };
    return `${JSON.stringify(changed, null, indent)}\n`;
  };
}

function objectIn(settings: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(settings);
  } catch {
    throw new OptionFault('it is not plain JSON (it may contain comments).');
  }
  if (!isObject(value)) throw new OptionFault('it is not a JSON object.');
  return value;
}

/** The entry is appended, so that everything else stays unchanged. Its strings have the same syntax in TOML and JSON. */
function inToml(settings: string, name: string, { command, args }: Started): string {
  const table = `[mcp_servers.${name}]`;
  const block = `${table}\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n`;
  if (settings.includes(block)) return settings;
  if (settings.split('\n').some(line => line.replace(/[\s"']/g, '').startsWith(table)))
    throw new OptionFault(`it already has ${table}: remove that with codex mcp remove ${name}.`);
  const end = settings === '' || settings.endsWith('\n') ? '' : '\n';
  return `${settings}${end}${settings.trim() === '' ? '' : '\n'}${block}`;
}

/** In seconds; longer than the wallet takes to answer. */
const GOOSE_TIMEOUT = 300;

function inYaml(settings: string, name: string, { command, args }: Started): string {
  const document = parseDocument(settings);
  if (document.errors.length > 0) throw new OptionFault('it is not valid YAML.');
  const entry = { enabled: true, type: 'stdio', name, cmd: command, args, envs: {}, timeout: GOOSE_TIMEOUT };
  document.setIn(['extensions', name], document.createNode(entry));
  return document.toString({ lineWidth: 0 });
}
