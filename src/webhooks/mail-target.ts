import type { Socket } from 'node:net';
import { createTransport } from 'nodemailer';
import type { WebhookTarget } from '../config/webhook-settings.js';
import { bareHost, publicConnector } from '../net/public-addresses.js';
import { NotTold, SEND_MS, type Target } from './target.js';

const CONNECT_MS = 5_000;
const PORTS: Record<string, number> = { 'smtp:': 587, 'smtps:': 465 };
const MAX_SUBJECT = 120;

/** A mailbox: `smtps://user:password@host?to=you@example.com&from=shop@example.com`. With `smtp:`, TLS is used if the server offers it. */
export function mailTarget({ name, url }: WebhookTarget, allowPrivate: boolean): Target {
  const { protocol, hostname, port, username, password, searchParams } = new URL(url);
  const to = searchParams.get('to') ?? '';
  const user = decodeURIComponent(username);
  const from = searchParams.get('from') ?? (user.includes('@') ? user : to);
  const host = bareHost(hostname);
  const at = { host, port: Number(port) || (PORTS[protocol] ?? 587) };
  const transport = createTransport({
    ...at,
    secure: protocol === 'smtps:',
    ...(user ? { auth: { user, pass: decodeURIComponent(password) } } : {}),
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: SEND_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(allowPrivate
      ? {}
      : {
          getSocket: (
            _options: unknown,
            done: (error: Error | null, found?: { connection: Socket } | false) => void,
          ) => connectPublic(at, done),
        }),
  });
  return {
    name,
    send: async ({ id, text, body }) => {
      const [subject = ''] = text.split('\n', 1);
      try {
        const sent = transport.sendMail({
          from,
          to,
          subject: subject.slice(0, MAX_SUBJECT),
          text: `${text}\n\n${JSON.stringify(JSON.parse(body), null, 2)}\n`,
          messageId: `<${id}@${host}>`,
        });
        return String((await within(sent)).response).slice(0, 100);
      } catch (error) {
        throw new NotTold(whyOf(error));
      }
    },
    close: () => Promise.resolve(transport.close()),
  };
}

/** Limits the duration of the whole exchange; nodemailer itself only limits its steps. */
async function within<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new NotTold(`not accepted within ${SEND_MS / 1_000} s`)), SEND_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function connectPublic(
  { host, port }: { host: string; port: number },
  done: (error: Error | null, found?: { connection: Socket } | false) => void,
): void {
  const options = { protocol: 'http:', host, hostname: host, port: String(port) };
  publicConnector(CONNECT_MS)(options, (error, socket) => {
    if (error) done(error);
    else done(null, socket ? { connection: socket } : false);
  });
}

/** Only the error codes, because a mail server's message may repeat the password. */
function whyOf(error: unknown): string {
  if (error instanceof NotTold) return error.message;
  const { code, responseCode } = error as { code?: unknown; responseCode?: unknown };
  const said = [code, responseCode].filter(each => each !== undefined).map(String);
  return `the mail server did not accept it${said.length === 0 ? '' : `: ${said.join(' ')}`}`;
}
