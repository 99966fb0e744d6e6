import { isIP } from 'node:net';
import { publicUrlFault } from '../../checks/public-url-check.js';
import type { Json } from '../../contract/json.js';
import { bareHost } from '../../net/public-addresses.js';
import type { Catalogue, Sold } from './catalogue.js';
import { checkBazaar, type Asked, type Challenge } from './challenge-checks.js';
import { Broken, must, type Findings } from './findings.js';
import { headBytes, isObject, textOf } from './http-call.js';

/** The severity of a directory's rule: `must` if the user asked whether directories list the shop. */
export type Weight = 'must' | 'should';

/** nginx accepts no more than this before the body of an answer (`proxy_buffer_size`, by default a page of memory). */
const MAX_HEAD_BYTES = 4096;
/** The lowest price that Coinbase's facilitator accepts, in atomic units of a coin with six decimals. */
const LEAST_AMOUNT = 1_000n;
const MAX_NAMED = 3;
/** Hosts of tunnels, which lead to a developer's own machine while a program is running there. */
const TUNNEL =
  /(^|\.)(ngrok(-free)?\.(io|app|dev)|trycloudflare\.com|loca\.lt|localtunnel\.me|localhost\.run|lhr\.life|serveo\.net|serveousercontent\.com|bore\.pub|pinggy\.(link|io|online)|a\.pinggy\.online|devtunnels\.ms|share\.zrok\.io|sharedwithexpose\.com|telebit\.io|pagekite\.me|playit\.gg)$/;
const EMAIL = /^[^@\s]+@[^@\s.]+(\.[^@\s.]+)+$/;
const DECIMAL = /^\d+(\.\d+)?$/;
/** The form of `routeTemplate` that x402 allows. */
const TEMPLATE = /^\/[a-zA-Z0-9_/:.\-~%]+$/;

/** Checks whether directories would list a shop at this address. */
export async function checkAddress(url: string, findings: Findings, weight: Weight): Promise<void> {
  await findings[weight]('directories list this address: public, https, no tunnel', () => {
    const fault = publicUrlFault(new URL(url));
    must(!fault, `${url} ${fault}: put the server behind a public host with https, and set PUBLIC_URL to it`);
    const { hostname } = new URL(url);
    must(
      !TUNNEL.test(hostname),
      `${hostname} is a tunnel: directories need a permanent host; set PUBLIC_URL`,
    );
  });
}

/** The directories' rules that can be checked from the shop's own answers. */
export async function checkListing(
  { document, sold }: Catalogue,
  asked: readonly Asked[],
  findings: Findings,
  weight: Weight,
): Promise<void> {
  if (document) await checkDescription(document, sold, findings, weight);
  const answered = asked.filter(({ challenge }) => challenge);
  if (answered.length === 0) return;
  const each = (look: (asked: Asked, challenge: Challenge) => void) => () =>
    allOf(answered, one => look(one, one.challenge as Challenge));
  await findings[weight](
    'every 402 has what directories copy from it: extensions.bazaar',
    each(({ operation }, challenge) => lookAtBazaar(operation, challenge)),
  );
  await findings[weight](
    'the icon that every 402 names is one that directories show',
    each((_asked, { resource }) => lookAtIcon(resource ?? {})),
  );
  await findings.should(
    'every 402 fits the default limits of proxies: 4096 bytes before its body',
    each(({ reply }) => lookAtHead(reply ? headBytes(reply) : 0)),
  );
  await findings.should(
    'every price is accepted by facilitators with directories: 0.001 USD or more',
    each((_asked, challenge) => lookAtAmounts(challenge)),
  );
  await findings.should(
    'everything is paid to one receiver, which identifies the shop in directories',
    () => {
      const receivers = receiversOf(asked);
      for (const [network, all] of receivers)
        must(all.size === 1, `on ${network} the money goes to ${[...all].join(' and ')}`);
    },
  );
}

/** The receivers, by network. */
export function receiversOf(asked: readonly Asked[]): Map<string, Set<string>> {
  const receivers = new Map<string, Set<string>>();
  for (const { network, payTo } of asked.flatMap(({ challenge }) => challenge?.accepts ?? []))
    receivers.set(network, (receivers.get(network) ?? new Set()).add(payTo));
  return receivers;
}

async function checkDescription(
  { info }: Json,
  sold: readonly Sold[],
  findings: Findings,
  weight: Weight,
): Promise<void> {
  await findings.should('info.contact.email says who sells here', () => {
    const { contact } = isObject(info) ? info : {};
    const email = isObject(contact) ? contact['email'] : undefined;
    must(
      typeof email === 'string' && EMAIL.test(email),
      `it is ${textOf(email)}: add it to openapi.yaml, because x402scan and AgentCash use it to verify that a shop is yours`,
    );
  });
  const described = sold.flatMap(operation => (operation.described ? [{ operation }] : []));
  await findings[weight]('every paid operation has x-payment-info, which directories read', () =>
    allOf(described, ({ operation }) => lookAtPaymentInfo(operation.described?.['x-payment-info'])),
  );
  await findings[weight]('every paid operation declares its 402', () =>
    allOf(described, ({ operation }) => {
      const responses = operation.described?.['responses'];
      must(isObject(responses) && '402' in responses, 'add 402 to its responses');
    }),
  );
}

/** Checks every item, and reports how the first few faulty ones break the rule. @throws Broken */
function allOf<T extends { operation: Sold }>(all: readonly T[], look: (one: T) => void): void {
  const faults = all.flatMap(one => {
    try {
      look(one);
      return [];
    } catch (error) {
      if (!(error instanceof Broken)) throw error;
      return [`${one.operation.method} ${one.operation.path}: ${error.message}`];
    }
  });
  const more = faults.length > MAX_NAMED ? `; and ${faults.length - MAX_NAMED} more` : '';
  must(faults.length === 0, `${faults.slice(0, MAX_NAMED).join('; ')}${more}`);
}

function lookAtPaymentInfo(info: unknown): void {
  const mend = 'write price: { mode: fixed, currency: USD, amount: "0.01" } and protocols: [{ x402: {} }]';
  must(isObject(info), `it is missing: ${mend}`);
  const { price, protocols } = info;
  must(isObject(price), `its price is ${textOf(price)}: ${mend}`);
  const { mode, currency, amount, min, max } = price;
  must(typeof currency === 'string', `its price has no currency: ${mend}`);
  if (mode === 'dynamic') must(isDecimal(min) && isDecimal(max), 'its dynamic price needs min and max');
  else must(mode === 'fixed' && isDecimal(amount), `its price is not a fixed amount: ${mend}`);
  must(
    Array.isArray(protocols) && protocols.length > 0 && protocols.every(isObject),
    `its protocols are ${textOf(protocols)}: ${mend}`,
  );
}

const isDecimal = (value: unknown): boolean => typeof value === 'string' && DECIMAL.test(value);

function lookAtBazaar(operation: Sold, { x402Version, extensions }: Challenge): void {
  must(x402Version === 2, 'its challenge is x402 v1: directories list only v2');
  const bazaar = extensions?.['bazaar'];
  must(
    isObject(bazaar),
    'it has no extensions.bazaar: declare this x402 extension; without it, facilitators list nothing',
  );
  checkBazaar(bazaar, operation);
  const { routeTemplate } = bazaar;
  if (routeTemplate === undefined) {
    must(
      !operation.path.includes('{'),
      'it has no routeTemplate: each value in its path would become a separate entry',
    );
    return;
  }
  const template = textOf(routeTemplate);
  const plain = decoded(template);
  must(
    TEMPLATE.test(template) && !plain.includes('..') && !plain.includes('://'),
    `its routeTemplate is ${template}, which x402 does not allow`,
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Checks only the icon, because every challenge was checked against x402's schema, which limits name and tags. */
function lookAtIcon({ url, iconUrl }: Json): void {
  if (iconUrl === undefined) return;
  const text = textOf(iconUrl);
  const parsed = URL.canParse(text) ? new URL(text) : undefined;
  // Another check covers the shop's own address.
  if (parsed && typeof url === 'string' && URL.canParse(url) && new URL(url).origin === parsed.origin) return;
  must(
    parsed && /^https?:$/.test(parsed.protocol) && !parsed.username && !isIP(bareHost(parsed.hostname)),
    `iconUrl is ${text.slice(0, 100)}: directories need an http(s) URL with a host name and without a user name`,
  );
}

function lookAtHead(bytes: number): void {
  must(
    bytes <= MAX_HEAD_BYTES,
    `${bytes} bytes from its status line to its last header, but nginx passes on only ${MAX_HEAD_BYTES}: shorten its summary, its examples or PUBLIC_URL`,
  );
}

function lookAtAmounts({ accepts }: Challenge): void {
  for (const option of accepts) {
    const amount = textOf(option['amount'] ?? option['maxAmountRequired']);
    if (!/^\d+$/.test(amount)) continue;
    must(
      BigInt(amount) >= LEAST_AMOUNT,
      `it costs ${amount} units: Coinbase's facilitator refuses less than ${LEAST_AMOUNT} (0.001 USDC)`,
    );
  }
}
