import type { Mutant } from './mutants.js';

type Change = Omit<Mutant, 'test' | 'file'>;

function of(module: string, test: string, changes: readonly Change[]): Mutant[] {
  return changes.map(change => ({ ...change, file: `src/${module}.js`, test }));
}

const OF_UPSTREAMS = 'upstreams/http-operations/*';
const IN = 'upstreams/http-operations';

/** APIs that the contract sells: what the server connects to, what it sends, which answers it sells, and what it reveals. */
export const upstreamMutants: readonly Mutant[] = [
  ...of('net/public-addresses', 'net/public-addresses', [
    {
      name: 'the server connects to a private address in a URL',
      find: 'if (isIP(host) !== 0 && !isPublicAddress(host))',
      replace: 'if (false)',
      grep: 'never connects to 127.0.0.1',
    },
    {
      name: 'the server connects to a name with a private address',
      find: 'if (!addresses.every(({ address }) => isPublicAddress(address)))',
      replace: 'if (false)',
      grep: 'never connects to localhost',
    },
    {
      name: 'one public address of a name is enough',
      find: 'addresses.every(',
      replace: 'addresses.some(',
      grep: 'refuses a name if one of its addresses is private',
    },
    {
      name: 'mapped addresses count as public',
      find: 'family === 6 && GLOBAL_V6.check(address, ',
      replace: 'family === 6 && !SPECIAL_V4.check(address, ',
      grep: 'tells private and reserved addresses from public ones',
    },
  ]),
  ...of('net/failure', 'upstreams/failures.slow', [
    {
      name: 'a 429 counts as a failure',
      find: 'what === 429 || ',
      replace: '',
      grep: 'that answers 429',
    },
    {
      name: 'any 5xx counts as an outage',
      find: 'what === 503',
      replace: '(typeof what === "number" && what >= 500)',
      grep: 'that answers 500',
    },
  ]),
  ...of('net/failure', OF_UPSTREAMS, [
    {
      name: 'a service may ask for any wait',
      find: 'const MAX_BACKOFF_SECONDS = 120;',
      replace: 'const MAX_BACKOFF_SECONDS = 1e9;',
      grep: 'costs the buyer nothing: 429 for a week',
    },
  ]),
  ...of('net/secrets', 'net/secrets', [
    {
      name: 'only whole secrets are concealed',
      find: 'const RUN = 6;',
      replace: 'const RUN = 16;',
      grep: 'are concealed when a service shows only the first and last',
    },
    {
      name: 'base64 is recognized only if it begins with the secret',
      find: '[0, 1, 2].flatMap(',
      replace: '[0].flatMap(',
      grep: 'are found in base64',
    },
  ]),
  ...of('contract/read-upstream', 'contract/read-upstream', [
    {
      name: 'a parameter may be in the host',
      find: '    checkHost(pieces, fault);\n',
      replace: '',
      grep: 'refuses the url',
    },
    {
      name: 'an upstream may have more time than the work of a call',
      find: 'authorization: 19_000',
      replace: 'authorization: 60_000',
      grep: 'refuses more time than the work of a call has',
    },
    {
      name: 'the contract may set headers of the connection',
      find: 'if (OF_THE_CONNECTION.test(name))',
      replace: 'if (false)',
      grep: 'refuses the host',
    },
  ]),
  ...of(`${IN}/upstream-request`, OF_UPSTREAMS, [
    {
      name: 'a private address does not stop the start',
      find: 'if (!allowPrivate && isPrivateHost(',
      replace: 'if (false && isPrivateHost(',
      grep: 'with a private address, unless that is allowed: 127.0.0.1',
    },
    {
      name: 'a variable that is not set does not stop the start',
      find: 'if (value === undefined)\n',
      replace: 'if (false)\n',
      grep: 'without the environment variables that they refer to',
    },
    {
      name: 'dots lead to another path',
      find: 'const sound = !/\\p{Cc}/u.test(text) && !text.split(/[/\\\\]/).some(part => /^\\.\\.?$/.test(part));',
      replace: 'const sound = !/\\p{Cc}/u.test(text);',
      grep: 'no request if a parameter would change the path',
    },
    {
      name: 'control characters are sent',
      find: '!/\\p{Cc}/u.test(text) && ',
      replace: '',
      grep: 'no request if a parameter would change the path',
    },
    {
      name: 'slashes and question marks are sent as they are',
      find: 'return encodeURIComponent(String(value));',
      replace: 'return encodeURI(String(value));',
      grep: 'a parameter as a single segment of the path',
    },
    {
      name: 'a variable in a query is not encoded',
      find: ': encodeURIComponent(valueOf(piece.variable));',
      replace: ': valueOf(piece.variable);',
      grep: 'path, query and headers, and nothing about the caller or the payment',
    },
  ]),
  ...of(`${IN}/upstream-answer`, OF_UPSTREAMS, [
    {
      name: 'a redirect is sold',
      find: 'const SOLD_AS_200 = new Set([201, ',
      replace: 'const SOLD_AS_200 = new Set([302, 201, ',
      grep: 'a redirect (302) to a private address is not followed',
    },
    {
      name: 'an answer without content is sold',
      find: 'const SOLD_AS_200 = new Set([201, ',
      replace: 'const SOLD_AS_200 = new Set([202, 201, ',
      grep: 'costs the buyer nothing: 202',
    },
    {
      name: 'any content type is sold',
      find: '({ mimeType }) => bare(mimeType) === bare(type ?? ',
      replace: '({ mimeType }) => true || bare(mimeType) === bare(type ?? ',
      grep: 'costs the buyer nothing: a page instead of JSON',
    },
    {
      name: 'secrets are sold',
      find: 'if (await secrets.foundIn(bytesOf(each)))',
      replace: 'if (false)',
      grep: 'costs the buyer nothing: a secret in what is sold',
    },
    {
      name: 'secrets behind escapes are sold',
      find: 'const meaning = JSON.stringify(value);',
      replace: 'const meaning = "";',
      grep: 'costs the buyer nothing: a secret in what is sold, with escapes',
    },
    {
      name: 'secrets in headers are sold',
      find: '[body, ...headers]',
      replace: '[body]',
      grep: 'costs the buyer nothing: a secret in a header of what is sold',
    },
    {
      name: 'JSON of any number of members is parsed',
      find: 'if (hasMoreMembers(body, reading.maxMembers))',
      replace: 'if (false)',
      grep: 'costs the buyer nothing: JSON of 230 000 members',
    },
    {
      name: 'a compressed answer may have any size',
      find: '{ maxOutputLength: reading.maxBytes }',
      replace: '{}',
      grep: 'costs the buyer nothing: 100 MB in 100 KB of gzip',
    },
    {
      name: 'a seller’s error counts as the buyer’s',
      find: 'const OF_THE_CALLER = new Set([400, ',
      replace: 'const OF_THE_CALLER = new Set([400, 401, ',
      grep: 'costs the buyer nothing: 401',
    },
  ]),
  ...of(`${IN}/error-message`, OF_UPSTREAMS, [
    {
      name: 'secrets are repeated to the buyer',
      find: 'const [...characters] = conceal(line);',
      replace: 'const [...characters] = line;',
      grep: 'costs the buyer nothing: a secret in its error',
    },
    {
      name: 'a message may be of any length',
      find: 'const MAX_SHOWN_CHARACTERS = 300;',
      replace: 'const MAX_SHOWN_CHARACTERS = 30_000;',
      grep: 'costs the buyer nothing: an error of many lines',
    },
  ]),
  ...of(`${IN}/upstream-host`, OF_UPSTREAMS, [
    {
      name: 'one caller can open the circuit with 500',
      find: 'const OUTAGES = new Set([429, ',
      replace: 'const OUTAGES = new Set([429, 500, ',
      grep: 'that does not open because of answers that concern only one',
    },
    {
      name: 'a host that was reached stays paused',
      find: 'this.#circuit.reached();',
      replace: '',
      grep: 'an upstream that fails for all buyers is paused',
    },
    {
      name: 'one caller can open the circuit with a large answer',
      find: "new Set(['private', 'too large'])",
      replace: "new Set(['private'])",
      grep: 'that does not open because of answers that concern only one',
    },
  ]),
  ...of(`${IN}/host-circuit`, OF_UPSTREAMS, [
    {
      name: 'one buyer’s failures close the API for all',
      find: ' && streak.payers.size >= PAYERS',
      replace: '',
      grep: 'the failures of two buyers pause no other buyer',
    },
    {
      name: 'failures count however short they have lasted',
      find: ' && Date.now() - streak.since >= quietMs',
      replace: '',
      grep: 'have lasted less than ten seconds',
    },
    {
      name: 'a payer that fails is never paused',
      find: 'own.run(signal, () => work(seconds => own.trip(seconds)))',
      replace: 'work(() => {})',
      grep: 'one buyer’s failures pause that buyer only',
    },
    {
      name: 'a payer that failed probes the host',
      find: '!this.#rest.asked && this.#failed.has(payer)',
      replace: 'false',
      grep: 'the failures of two buyers pause no other buyer',
    },
  ]),
  ...of(`${IN}/http-operations`, OF_UPSTREAMS, [
    {
      name: 'an answer may have any size',
      find: 'maxAnswerBytes: reading.maxBytes,',
      replace: '',
      grep: 'costs the buyer nothing: 10 MB',
    },
    {
      name: 'a POST is sent twice',
      find: "resend: method === 'GET',",
      replace: 'resend: true,',
      grep: 'a GET again if its connection had just ended',
    },
    {
      name: 'orders are sold while the host is paused',
      find: 'if (seconds > 0)',
      replace: 'if (false)',
      grep: 'that opens after several failures in a row',
    },
    {
      name: 'headers of the payment are taken from the upstream',
      find: 'filter(name => isSold(name) && ',
      replace: 'filter(name => ',
      grep: 'files up to the size in the contract',
    },
    {
      name: 'the buyer sees the host’s name',
      find: "secrets.conceal(text.replaceAll(host, '…').replaceAll(hostname, '…'))",
      replace: 'secrets.conceal(text)',
      grep: 'costs the buyer nothing: its own address in its error',
    },
  ]),
  // The queue must refuse jobs that can't end in time, instead of queueing and then dropping them.
  ...of('upstreams/fair-queue', 'upstreams/fair-queue', [
    {
      name: 'a job that can’t end in time gets a place',
      find: 'this.#requireTime(share, expected);',
      replace: '',
      grep: 'is refused immediately and takes no place in the queue',
    },
    {
      name: 'jobs run in the order of their requests',
      find: 'share.waiting.findIndex(({ ms }) => ms > waiter.ms)',
      replace: '-1',
      grep: 'a short job comes before longer ones',
    },
    {
      name: 'a job that would begin too late is begun',
      find: 'if (this.#now() + waiter.ms > waiter.until)',
      replace: 'if (false)',
      grep: 'a job that would begin too late is refused',
    },
  ]),
  ...of('documents/discovery', OF_UPSTREAMS, [
    {
      name: 'the served contract names the upstream',
      find: "delete described['x-upstream'];\n        delete described['x-listed'];",
      replace: '',
      grep: 'costs the buyer nothing: 401',
    },
  ]),
];
