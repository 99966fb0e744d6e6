import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Keypair } from '@solana/web3.js';
import { Agent, fetch } from 'undici';
import { craftPayment, v2Header } from '../support/craft.js';

/**
 * Runs one attack against a server for some seconds, then ends: `node attacker.js <name> <url> <seconds>`, with the key
 * pairs of funded payers in SECRETS. All requests come from one address, even if the server trusts a proxy.
 */

const [name = '', url = '', seconds = '0'] = process.argv.slice(2);
const { hostname, port } = new URL(url);
const wallets = (process.env['SECRETS'] ?? '')
  .split(' ')
  .map(secret => Keypair.fromSecretKey(Buffer.from(secret, 'base64')));
const funded = wallets[0] as Keypair;
const began = Date.now();
let end = began + Number(seconds) * 1_000;
const MOST_SOCKETS = 700;
const localAddress = '127.0.0.2';
const dispatcher = new Agent({ localAddress });
const FROM = { 'x-forwarded-for': '203.0.113.66' };
const SPEECH = { text: 'One coin buys one call, and the harbour is quiet today. '.repeat(44) };

type Offer = { amount: string; payTo: string; extra: { feePayer: string; recentBlockhash: string } };

async function offerOf(path: string, method = 'POST'): Promise<Offer> {
  const answer = await fetch(url + path, {
    method,
    body: method === 'POST' ? '{}' : null,
    headers: FROM,
    signal: AbortSignal.timeout(10_000),
    dispatcher,
  });
  return ((await answer.json()) as { accepts: Offer[] }).accepts[0] as Offer;
}

function payment(offer: Offer, payer: Keypair): string {
  const { amount, payTo, extra } = offer;
  const { feePayer, recentBlockhash: blockhash } = extra;
  return v2Header(
    offer,
    craftPayment({ payer, amount: BigInt(amount), payTo, feePayer, blockhash }).transaction,
  );
}

let bytes = 0;
/** Sends a GET if there is no body. */
async function call(path: string, signed: string, body?: object | string, ms = 30_000): Promise<number> {
  try {
    const answer = await fetch(url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json', 'payment-signature': signed, prefer: 'wait=1', ...FROM },
      body: body === undefined || typeof body === 'string' ? (body ?? null) : JSON.stringify(body),
      signal: AbortSignal.timeout(ms),
      dispatcher,
    });
    bytes += (await answer.arrayBuffer()).byteLength;
    return answer.status;
  } catch {
    return 0;
  }
}

const statuses = new Map<number, number>();
const note = (status: number): void => void statuses.set(status, (statuses.get(status) ?? 0) + 1);

const sockets = new Set<Socket>();
/** Opens a connection, sends `text` and reads nothing. */
function unread(text: string): void {
  if (sockets.size >= MOST_SOCKETS) return;
  const socket = connect({ port: Number(port), host: hostname, localAddress }, () =>
    socket.pause().write(text),
  );
  sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)));
}

function rawCall(path: string, signed: string, length: number, body: string): string {
  return (
    `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nPAYMENT-SIGNATURE: ${signed}\r\n` +
    `Content-Length: ${length}\r\n\r\n${body}`
  );
}

/** Short texts that are expensive to process. */
function hostileTexts(longest: number): string[] {
  const units = [
    'ﷺ',
    'a.',
    '...',
    'e\u0301',
    '9',
    '1e9 ',
    '\u200b',
    '🎉',
    'ß',
    '-',
    '&lt;',
    '<p',
    '((',
    '"',
    'A. ',
  ];
  return units.flatMap(unit => [
    unit.repeat(longest / [...unit].length),
    `${unit.repeat(longest / (2 * [...unit].length))} end.`,
  ]);
}

/** Keeps `count` calls of `once` running until the time is up. */
async function repeat(count: number, once: () => Promise<void>): Promise<void> {
  const worker = async (): Promise<void> => {
    while (Date.now() < end) await once().catch(() => pause(100));
  };
  await Promise.all(Array.from({ length: count }, worker));
}

async function hostile(path: string, longest: number): Promise<void> {
  const texts = hostileTexts(longest);
  let next = 0;
  await repeat(4, async () => {
    const text = texts[next++ % texts.length] as string;
    note(await call(path, payment(await offerOf(path), funded), { text }));
  });
}

/** Keeps this many connections open, and opens at most 100 a second. */
async function keepUnread(count: number, text: () => Promise<string> | string): Promise<void> {
  await repeat(1, async () => {
    const said = await text();
    for (let opened = 0; opened < 20 && sockets.size < count; opened++) unread(said);
    await pause(200);
  });
}

/** Calls `path` as often as possible, each time with a new payment from the next wallet: a GET unless there is a body. */
async function unsold(path: string, from: readonly Keypair[], body?: () => object): Promise<void> {
  const method = body ? 'POST' : 'GET';
  let offer = await offerOf(path, method);
  const renew = (): void =>
    void offerOf(path, method).then(
      now => (offer = now),
      () => {},
    );
  const refresh = setInterval(renew, 5_000);
  let next = 0;
  await repeat(20, async () => {
    const payer = from[next++ % from.length] as Keypair;
    note(await call(path, payment(offer, payer), body?.()));
  });
  clearInterval(refresh);
}

const ATTACKS: Record<string, () => Promise<void>> = {
  nothing: async () => void (await pause(Number(seconds) * 1_000)),
  'hostile texts, speech': () => hostile('/v1/tts', 2_500),
  'hostile texts, summaries': () => hostile('/v1/summarize', 100_000),
  'held bodies': async () => {
    const signed = payment(await offerOf('/v1/summarize'), Keypair.generate());
    await keepUnread(600, () => rawCall('/v1/summarize', signed, 1_000, '{'));
  },
  'stalled readers of an answer': async () => {
    const signed = payment(await offerOf('/v1/tts'), funded);
    const body = JSON.stringify(SPEECH);
    note(await call('/v1/tts', signed, body));
    await keepUnread(200, () => rawCall('/v1/tts', signed, body.length, body));
  },
  'stalled readers of documents': () =>
    keepUnread(200, () => 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(200)),
  'late-signed work': async () => {
    const offer = await offerOf('/v1/tts');
    const signed = Array.from({ length: 8 }, () => payment(offer, Keypair.generate()));
    signed[0] = payment(offer, funded);
    await pause(Math.max(0, Math.min(57_000, end - Date.now() - 2_000)));
    for (const each of await Promise.all(signed.map(one => call('/v1/tts', one, SPEECH)))) note(each);
  },
  'abandoned work': () =>
    repeat(40, async () => {
      const signed = payment(await offerOf('/v1/tts'), funded);
      note(await call('/v1/tts', signed, { text: `${Math.random()} ${SPEECH.text.slice(0, 2_400)}` }, 700));
    }),
  'unfunded flood': async () => {
    let offer = await offerOf('/v1/summarize');
    const refresh = setInterval(
      () =>
        void offerOf('/v1/summarize').then(
          now => (offer = now),
          () => {},
        ),
      5_000,
    );
    await repeat(32, async () =>
      note(
        await call('/v1/summarize', payment(offer, Keypair.generate()), { text: `Flood ${Math.random()}.` }),
      ),
    );
    clearInterval(refresh);
  },
  'unsold calls of an API': () => unsold('/items/404', [funded]),
  'failing calls of ten wallets': () => unsold('/items/502', wallets.slice(0, 10)),
  'unsold reads of the chain': () =>
    unsold('/v1/sol-mint-info', [funded], () => ({ mint: Keypair.generate().publicKey.toBase58() })),
  'resends of a failed order': async () => {
    const signed = payment(await offerOf('/orders/1', 'GET'), funded);
    await repeat(16, async () => note(await call('/orders/1', signed)));
  },
  'garbage over MCP': () => repeat(32, async () => note(await call('/mcp', '', 'x'.repeat(16_000)))),
  'resends of a large answer': async () => {
    const body = { text: SPEECH.text.slice(0, 800) };
    const signed = payment(await offerOf('/v1/tts'), funded);
    note(await call('/v1/tts', signed, body));
    end = Date.now() + Number(seconds) * 1_000;
    await repeat(8, async () => note(await call('/v1/tts', signed, body)));
  },
  'lone refused payments': () =>
    repeat(1, async () => {
      const signed = payment(await offerOf('/v1/summarize'), Keypair.generate());
      note(await call('/v1/summarize', signed, { text: `Alone ${Math.random()}.` }));
      await pause(50);
    }),
  'big unfunded bodies': async () => {
    const offer = await offerOf('/brand-feedback');
    const sizes = [2_000_000, 50_000];
    let next = 0;
    await repeat(16, async () => {
      const padding = 'x'.repeat(sizes[next++ % sizes.length] as number);
      const body = { brand: 'Harbour', question: `Good? ${Math.random()}`, padding };
      note(await call('/brand-feedback', payment(offer, Keypair.generate()), body));
    });
  },
};

const attack = ATTACKS[name];
if (!attack) throw new Error(`unknown attack: ${name}. There are: ${Object.keys(ATTACKS).join(', ')}`);
await attack();
const answers = [...statuses.values()].reduce((sum, count) => sum + count, 0);
const perSecond = Math.round((10 * answers) / ((Date.now() - began) / 1_000)) / 10;
process.stdout.write(JSON.stringify({ statuses: Object.fromEntries(statuses), perSecond, bytes }));
process.exit(0);
