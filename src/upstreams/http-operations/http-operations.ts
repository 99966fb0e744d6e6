import { ContractFault, type Contract, type PricedOperation } from '../../contract/contract.js';
import type { AnyCall, AnyReply, AnyServed } from '../../contract/operation.js';
import type { Upstream } from '../../contract/read-upstream.js';
import { follow, objectOf } from '../../contract/references.js';
import type { CircuitOptions } from '../../net/circuit.js';
import { NoAnswer } from '../../net/http-client.js';
import { Secrets } from '../../net/secrets.js';
import type { Probe } from '../probe.js';
import { failureOf, readAnswer, type Reading } from './upstream-answer.js';
import { resting, UpstreamHost } from './upstream-host.js';
import {
  resolveUpstream,
  targetOf,
  type UpstreamRequest,
  type UpstreamSettings,
} from './upstream-request.js';

/** The operations that an HTTP API serves instead of a handler, by operationId. */
export type HttpOperations = {
  served: Record<string, AnyServed>;
  /** By operationId too: the host of an API is nobody's business. */
  probes: Record<string, Probe>;
  close(): Promise<void>;
};

type Sold = PricedOperation & { upstream: Upstream };
type Resolved = { operation: Sold; request: UpstreamRequest };

const MEGABYTE = 1024 * 1024;
const DEFAULT_ANSWER_BYTES = 4 * MEGABYTE;
const MAX_ANSWER_BYTES = 16 * MEGABYTE;
const MOST_BYTES_OF_CHARACTER = 4;
const OWN_HEADERS = { 'user-agent': 'coinslot', 'accept-encoding': 'gzip' };
/** Headers of an answer that concern the connection, the encoding, the payment or a browser. */
const NOT_SOLD =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-(type|length|encoding)|date|set-cookie|payment-.*|x-payment.*|retry-after|www-authenticate|access-control-.*)$/;

/**
 * Builds the operations that have an `x-upstream`. Those with the same host share its connections and its circuit.
 * @throws ContractFault with everything that is missing in the environment
 */
export function createHttpOperations(
  contract: Contract,
  settings: UpstreamSettings,
  breaker?: CircuitOptions,
): HttpOperations {
  const resolved = resolveAll(contract, settings);
  const secrets = new Secrets(resolved.flatMap(({ request }) => request.secrets));
  const hosts = new Map<string, UpstreamHost>();
  const publicOnly = !settings.allowPrivate;
  for (const { origin } of resolved.map(({ request }) => request))
    if (!hosts.has(origin))
      hosts.set(origin, new UpstreamHost(origin, { publicOnly, ...(breaker ? { breaker } : {}) }));
  const served: HttpOperations['served'] = {};
  const probes: HttpOperations['probes'] = {};
  for (const { operation, request } of resolved) {
    const { id } = operation;
    const host = hosts.get(request.origin) as UpstreamHost;
    const reading = readingOf(contract, operation, new URL(request.origin), secrets);
    served[id] = {
      backend: id,
      call: call => ask(host, request, reading, call),
      ready: async asked => {
        targetOf(request.target, asked);
        if (host.restSeconds > 0) throw resting(host.restSeconds);
      },
    };
    probes[id] = () => host.check();
  }
  const close = async (): Promise<void> => {
    await Promise.all([...hosts.values()].map(host => host.close()));
  };
  return { served, probes, close };
}

function resolveAll({ paid }: Contract, settings: UpstreamSettings): Resolved[] {
  const faults: string[] = [];
  const resolved = paid.flatMap(operation => {
    const { upstream, method, path } = operation;
    if (!upstream) return [];
    const request = resolveUpstream(upstream, settings, (place, message) => {
      faults.push(`openapi.yaml paths.${path}.${method.toLowerCase()}.x-upstream.${place}: ${message}`);
    });
    return request ? [{ operation: { ...operation, upstream }, request }] : [];
  });
  if (faults.length) throw new ContractFault(`The server can't start:\n  ${faults.join('\n  ')}`);
  return resolved;
}

function readingOf(
  { document }: Contract,
  operation: Sold,
  { host, hostname }: URL,
  secrets: Secrets,
): Reading {
  const { id, path, method, answers } = operation;
  const described = objectOf(objectOf(objectOf(document.paths)[path])[method.toLowerCase()]);
  const { headers } = follow(document, objectOf(described.responses)['200']);
  return {
    name: id,
    answers,
    headers: Object.keys(objectOf(headers)).filter(name => !NOT_SOLD.test(name.toLowerCase())),
    maxBytes: answerLimit(document, operation),
    secrets,
    conceal: text => secrets.conceal(text.replaceAll(host, '…').replaceAll(hostname, '…')),
  };
}

/** The limit of an answer: 4 MB, or what the contract says about texts and files (`maxLength`), up to 16 MB. */
function answerLimit(document: Contract['document'], { answers }: Sold): number {
  const limits = answers.map(({ kind, schema }) => {
    const { maxLength } = kind === 'json' ? {} : follow(document, schema);
    if (typeof maxLength !== 'number') return DEFAULT_ANSWER_BYTES;
    return kind === 'text' ? maxLength * MOST_BYTES_OF_CHARACTER : maxLength;
  });
  return Math.min(Math.max(...limits), MAX_ANSWER_BYTES);
}

/** Sends a call to its upstream: path, query and body as declared, and nothing of the caller or the payment. */
async function ask(
  host: UpstreamHost,
  { target, method, headers, timeoutMs }: UpstreamRequest,
  reading: Reading,
  { signal, caller, order, ...asked }: AnyCall,
): Promise<AnyReply> {
  const request = {
    method,
    path: targetOf(target, asked),
    headers: {
      ...OWN_HEADERS,
      accept: reading.answers.map(({ mimeType }) => mimeType).join(', '),
      ...headers,
    },
    ...(asked.body === undefined ? {} : { body: JSON.stringify(asked.body) }),
    ms: timeoutMs,
    signal,
    caller,
    maxAnswerBytes: reading.maxBytes,
    // A GET changes nothing, so it may be repeated on another connection.
    resend: method === 'GET',
  };
  try {
    return await readAnswer(await host.request(request), reading, order !== undefined);
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof NoAnswer ? failureOf(error, reading) : error;
  }
}
