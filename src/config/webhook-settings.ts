import { createHash } from 'node:crypto';
import { isPrivateHost } from '../net/public-addresses.js';
import { EVENT_KINDS } from './event-kinds.js';
import type { SettingReader } from './setting-reader.js';

/**
 * Where events are sent. `name` identifies the target and holds nothing secret, unlike `url`. `kinds`: the events that it gets; empty:
 * all of them. `form`: `signed` is a webhook; the others are the formats of chat services and mail.
 */
export type WebhookTarget = {
  name: string;
  form: 'signed' | 'slack' | 'discord' | 'telegram' | 'mail';
  url: string;
  kinds: readonly string[];
};

/** `secrets`: the keys of the signatures, the newest first. `allowPrivate`: whether targets may have private addresses. */
export type WebhookConfig = {
  targets: readonly WebhookTarget[];
  secrets: readonly Buffer[];
  allowPrivate: boolean;
};

const MAX_TARGETS = 10;
const PROTOCOLS = ['http:', 'https:', 'smtp:', 'smtps:'];
const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/;
/** The size of a secret, as defined by Standard Webhooks. */
const SECRET_BYTES = [24, 64] as const;

/** `WEBHOOK_URLS`, `WEBHOOK_SECRET` and `ALLOW_PRIVATE_WEBHOOKS`. No message contains a URL beyond its host. */
export function readWebhooks(read: SettingReader): WebhookConfig {
  const allowPrivate = read.oneOf('ALLOW_PRIVATE_WEBHOOKS', ['true', 'false'], 'false') === 'true';
  const urls = partsOf(read.text('WEBHOOK_URLS'));
  const targets = urls.flatMap((text, n) => targetOf(read, text, n + 1, allowPrivate));
  if (targets.length > MAX_TARGETS) read.fault(`WEBHOOK_URLS: has more than ${MAX_TARGETS} targets`);
  if (new Set(targets.map(({ name }) => name)).size < targets.length)
    read.fault('WEBHOOK_URLS: lists a target twice');
  const secrets = secretsOf(read);
  if (targets.some(({ form }) => form === 'signed'))
    read.demand(
      secrets[0],
      'WEBHOOK_SECRET',
      'the key that signs the events sent to WEBHOOK_URLS; create one with: echo whsec_$(openssl rand -base64 32)',
    );
  return { targets, secrets, allowPrivate };
}

function partsOf(text = ''): string[] {
  return text
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '');
}

function targetOf(read: SettingReader, text: string, number: number, allowPrivate: boolean): WebhookTarget[] {
  const fault = (message: string): [] => {
    read.fault(`WEBHOOK_URLS: number ${number} ${message}`);
    return [];
  };
  const parsed = URL.canParse(text) ? new URL(text) : undefined;
  if (!parsed || !PROTOCOLS.includes(parsed.protocol) || parsed.hostname === '')
    return fault('is not an http(s), smtp or smtps URL');
  const { protocol, hostname, host, hash, searchParams } = parsed;
  if (!allowPrivate && isPrivateHost(hostname))
    return fault(`(${hostname}) has a private address: set ALLOW_PRIVATE_WEBHOOKS=true if that is intended`);
  const mail = protocol.startsWith('smtp');
  if (mail && !searchParams.get('to')?.includes('@'))
    return fault(`(${host}) names no receiver: add ?to=you@example.com`);
  const kinds = hash
    .slice(1)
    .split('+')
    .filter(kind => kind !== '');
  const unknown = kinds.find(kind => !Object.hasOwn(EVENT_KINDS, kind));
  if (unknown !== undefined)
    return fault(
      `(${host}) names '${unknown}', which is not an event; the events are ${Object.keys(EVENT_KINDS).join(', ')}`,
    );
  const url = text.split('#', 1)[0] ?? '';
  const name = `${host}-${createHash('sha256').update(url).digest('hex').slice(0, 8)}`;
  return [{ name, form: mail ? 'mail' : formOf(parsed), url, kinds }];
}

/** Chat services take messages in their own formats, without a signature. */
function formOf({ hostname, pathname }: URL): WebhookTarget['form'] {
  if (hostname === 'hooks.slack.com') return 'slack';
  if (/^(discord|discordapp)\.com$/.test(hostname) && pathname.startsWith('/api/webhooks/')) return 'discord';
  return hostname === 'api.telegram.org' ? 'telegram' : 'signed';
}

/** The secrets. There are two while one replaces the other: receivers then accept either. */
function secretsOf(read: SettingReader): Buffer[] {
  return partsOf(read.text('WEBHOOK_SECRET')).flatMap(text => {
    const [, base64] = SECRET.exec(text) ?? [];
    const bytes = Buffer.from(base64 ?? '', 'base64');
    if (bytes.length >= SECRET_BYTES[0] && bytes.length <= SECRET_BYTES[1]) return [bytes];
    read.fault(
      `WEBHOOK_SECRET: must be whsec_ and the base64 of ${SECRET_BYTES.join(' to ')} bytes; create one with: echo whsec_$(openssl rand -base64 32)`,
    );
    return [];
  });
}
