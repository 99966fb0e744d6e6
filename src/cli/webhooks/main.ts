import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { readConfig } from '../../config.js';
import { commandLine } from '../../config/command-line.js';
import { EVENT_KINDS } from '../../config/event-kinds.js';
import { ConfigFault } from '../../config/setting-reader.js';
import { HttpClient, NoAnswer } from '../../net/http-client.js';
import type { Message } from '../../webhooks/event-message.js';
import { signedHeaders } from '../../webhooks/sign-message.js';
import { adminOf, NoServerFault, type Admin } from '../running-server.js';
import { writeErr, writeOut } from '../terminal.js';
import { readEvents } from './read-events.js';

const USAGE = `Usage: ${commandLine('webhooks')} listen [--forward URL] [--json]
       ${commandLine('webhooks')} trigger [EVENT …]

listen   shows events as they happen, even if WEBHOOK_URLS is not set, until you press Ctrl-C
trigger  has the server send a sample of each event, or of those named, to all its targets and listeners

  --forward URL  sends each event to a webhook that you write, such as http://127.0.0.1:3000/hook, signed with the first WEBHOOK_SECRET,
                 or with a key that this command prints
  --json         prints each event as one line of JSON
  --help         print this text

The command connects to the admin listener of the running server, which it finds through the server's settings: STATE_DIR, or ADMIN_URL
and ADMIN_TOKEN. Events: ${Object.keys(EVENT_KINDS).join(', ')}.`;

class CommandFault extends Error {}

const FORWARD_MS = 15_000;
const MAX_ANSWER_BYTES = 64 * 1024;
const ASK_MS = 10_000;

async function trigger(admin: Admin, kinds: readonly string[]): Promise<void> {
  const query = kinds.map(kind => `kind=${encodeURIComponent(kind)}`).join('&');
  const client = new HttpClient(admin.url, { connections: 1, maxAnswerBytes: MAX_ANSWER_BYTES });
  try {
    const answer = await client.request({
      method: 'POST',
      path: `/webhooks/samples${query ? `?${query}` : ''}`,
      headers: { authorization: `Bearer ${admin.token}` },
      ms: ASK_MS,
    });
    const said = JSON.parse(answer.text) as { error?: string; samples?: number; targets?: string[] };
    if (answer.status !== 200) throw new CommandFault(said.error ?? `The server answered ${answer.status}.`);
    const { samples = 0, targets = [] } = said;
    const whom =
      targets.length === 0
        ? 'WEBHOOK_URLS has no targets; only listening terminals get events'
        : targets.join(', ');
    writeOut(`${samples} ${samples === 1 ? 'sample' : 'samples'}: ${whom}\n`);
  } finally {
    await client.close();
  }
}

async function listen(
  admin: Admin,
  { forward, json, secrets }: { forward: string | undefined; json: boolean; secrets: readonly Buffer[] },
): Promise<void> {
  const client = forward === undefined ? undefined : forwarder(forward);
  const own = secrets[0] ?? randomBytes(24);
  if (client && secrets.length === 0) writeErr(`Signed with whsec_${own.toString('base64')}\n`);
  writeErr(`Listening to ${admin.url}. Ctrl-C ends it.\n`);
  for await (const message of readEvents(`${admin.url}/webhooks/events`, admin.token)) {
    const took = client ? ` -> ${await forwarded(client, message, own)}` : '';
    const { text, ...event } = message;
    if (json) writeOut(`${JSON.stringify({ ...event, body: JSON.parse(message.body) as unknown })}\n`);
    else writeOut(`${message.kind.padEnd(20)} ${text.replaceAll('\n', ' ')}${took}\n`);
  }
}

function forwarder(url: string): HttpClient {
  if (!/^https?:/.test(url) || !URL.canParse(url))
    throw new CommandFault(`--forward ${url} is not an http(s) URL.`);
  return new HttpClient(url, { connections: 1, maxAnswerBytes: MAX_ANSWER_BYTES });
}

async function forwarded(client: HttpClient, message: Message, secret: Buffer): Promise<string> {
  try {
    const headers = signedHeaders(message, [secret], Date.now());
    const request = { method: 'POST', path: '', headers, body: message.body, ms: FORWARD_MS } as const;
    return String((await client.request(request)).status);
  } catch (error) {
    return error instanceof NoAnswer ? error.message : String(error);
  }
}

function parsed() {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  try {
    return parseArgs({
      options: { forward: text, json: flag, help: { ...flag, short: 'h' } },
      allowPositionals: true,
    });
  } catch (error) {
    throw new CommandFault(`${(error as Error).message}\n\n${USAGE}`);
  }
}

async function run(): Promise<void> {
  const { values, positionals } = parsed();
  const [command, ...rest] = positionals;
  if (values.help) return writeOut(`${USAGE}\n`);
  if (command === 'listen' && rest.length === 0) {
    const config = readConfig();
    const { forward, json = false } = values;
    return listen(adminOf(config), { forward, json, secrets: config.webhooks.secrets });
  }
  if (command === 'trigger') return trigger(adminOf(readConfig()), rest);
  throw new CommandFault(USAGE);
}

process.once('SIGINT', () => process.exit(0));
try {
  await run();
} catch (error) {
  const known = [CommandFault, NoServerFault, ConfigFault, NoAnswer].some(each => error instanceof each);
  if (!known || !(error instanceof Error)) throw error;
  writeErr(
    `${error instanceof NoAnswer ? `The server can't be reached: ${error.message}` : error.message}\n`,
  );
  process.exitCode = error instanceof CommandFault && error.message === USAGE ? 2 : 1;
}
