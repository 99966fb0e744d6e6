import { ContractFault, type Contract, type GivenOperation } from '../../contract/contract.js';
import type { AnyAsked, AnyCall, AnyReply, AnyServed } from '../../contract/operation.js';
import type { Probe } from '../../contract/probe.js';
import { follow, objectOf } from '../../contract/references.js';
import { sentBodyOf, writtenBody, type WrittenBody } from '../../contract/sent-body.js';
import { isSold } from '../../contract/answer-headers.js';
import { UpstreamFailure } from '../../net/failure.js';
import { NoAnswer } from '../../net/http-client.js';
import { isPrivateHost } from '../../net/public-addresses.js';
import { Secrets } from '../../net/secrets.js';
import type { HostCircuitOptions } from './host-circuit.js';
import { failureOf, readAnswer, type Reading } from './upstream-answer.js';
import { resting, unreachable, UpstreamHost } from './upstream-host.js';
import {
  headersOf,
  resolveUpstream,
  targetOf,
  type UpstreamRequest,
  type UpstreamSettings,
} from './upstream-request.js';

/** The operations that an HTTP API serves instead of a handler, by operationId. */
export type HttpOperations = {
  served: Record<string, AnyServed>;
  /** The probes by operationId, not by host, because the host of an API is kept private. */
  probes: Record<string, Probe>;
  /** The operations that are paused because their host failed. */
  breakers(): { name: string; open: boolean }[];
  /** Warnings for the operator that do not keep the server from starting. */
  warnings: string[];
  close(): Promise<void>;
};

type Sold = GivenOperation;
/** The state shared by the operations of one host. `sent`: the secrets sent to this host. */
type Host = { host: UpstreamHost; url: URL; sent: Secrets };
/** `free`: whether the operation is free. */
type Resolved = { operation: Sold; request: UpstreamRequest; free: boolean };

const MEGABYTE = 1024 * 1024;
const DEFAULT_ANSWER_BYTES = 4 * MEGABYTE;
const MAX_ANSWER_BYTES = 16 * MEGABYTE;
const MOST_BYTES_OF_CHARACTER = 4;
const OWN_HEADERS = { 'user-agent': 'coinslot', 'accept-encoding': 'gzip' };
/**
 * Builds the operations that have an `x-upstream`. Those with the same host share its connections and its circuit; free operations have
 * separate ones, so that a flood of failing or rate-limited free calls does not block paying callers.
 * @throws ContractFault with everything that is missing in the environment
 */
export function createHttpOperations(
  contract: Contract,
  settings: UpstreamSettings,
  breaker?: HostCircuitOptions,
): HttpOperations {
  const resolved = resolveAll(contract, settings);
  const secrets = secretsOf(resolved);
  const publicOnly = !settings.allowPrivate;
  const hosts = new Map<string, Host>();
  for (const [key, [first, ...others]] of byHost(resolved)) {
    const { origin } = first.request;
    const host = new UpstreamHost(origin, { publicOnly, ...(breaker ? { breaker } : {}) });
    hosts.set(key, { host, url: new URL(origin), sent: secretsOf([first, ...others]) });
  }
  const served: HttpOperations['served'] = {};
  const probes: HttpOperations['probes'] = {};
  for (const each of resolved) {
    const { operation, request } = each;
    const at = hosts.get(keyOf(each)) as Host;
    const reading = readingOf(contract, each, at, secrets);
    const paid = hosts.get(request.origin)?.host ?? at.host;
    served[operation.id] = servedBy(at.host, each, reading, paid);
    probes[operation.id] = () => at.host.check();
  }
  const close = async (): Promise<void> => {
    await Promise.all([...hosts.values()].map(({ host }) => host.close()));
  };
  const breakers = (): { name: string; open: boolean }[] =>
    resolved.map(each => ({
      name: each.operation.id,
      open: (hosts.get(keyOf(each))?.host.restSeconds ?? 0) > 0,
    }));
  return { served, probes, breakers, warnings: resolved.flatMap(warningsOf), close };
}

function secretsOf(operations: readonly Resolved[]): Secrets {
  return new Secrets(operations.flatMap(({ request }) => request.secrets));
}

/** The key under which operations share a host: its origin, and whether they are free. */
function keyOf({ request: { origin }, free }: Resolved): string {
  return free ? `${origin} free` : origin;
}

function byHost(resolved: readonly Resolved[]): Map<string, [Resolved, ...Resolved[]]> {
  const all = new Map<string, [Resolved, ...Resolved[]]>();
  for (const each of resolved) {
    const known = all.get(keyOf(each));
    if (known) known.push(each);
    else all.set(keyOf(each), [each]);
  }
  return all;
}

function warningsOf({ operation: { id }, request: { origin, secrets } }: Resolved): string[] {
  const readable =
    origin.startsWith('http:') && secrets.length > 0 && !isPrivateHost(new URL(origin).hostname);
  return readable
    ? [`${id} sends values from environment variables unencrypted: use https in its x-upstream`]
    : [];
}

/** @param paid the host for paying callers. If it asks them to wait, free calls wait, too */
function servedBy(host: UpstreamHost, to: Resolved, reading: Reading, paid: UpstreamHost): AnyServed {
  return {
    backend: reading.name,
    host: to.request.origin,
    call: async call => {
      if (paid !== host && paid.restSeconds > 0) throw resting(paid.restSeconds);
      return ask(host, to, reading, call);
    },
    ready: async ({ caller, ...asked }) => {
      targetOf(to.request.target, asked, to.operation.parameters);
      const seconds = host.restSecondsOf(caller);
      if (seconds > 0) throw resting(seconds);
      await host.check().catch(() => {
        throw unreachable();
      });
    },
  };
}

function resolveAll({ paid, given }: Contract, settings: UpstreamSettings): Resolved[] {
  const faults: string[] = [];
  const resolved = [...paid, ...given].flatMap((operation, index) => {
    const { upstream, method, path } = operation;
    if (!upstream) return [];
    const request = resolveUpstream(upstream, settings, (place, message) => {
      faults.push(`openapi.yaml paths.${path}.${method.toLowerCase()}.x-upstream.${place}: ${message}`);
    });
    return request ? [{ operation: { ...operation, upstream }, request, free: index >= paid.length }] : [];
  });
  if (faults.length) throw new ContractFault(`The server can't start:\n  ${faults.join('\n  ')}`);
  return resolved;
}

function readingOf(
  { document }: Contract,
  { operation, request }: Resolved,
  { url: { host, hostname }, sent }: Host,
  secrets: Secrets,
): Reading {
  const { id, path, method, answers } = operation;
  const described = objectOf(objectOf(objectOf(document.paths)[path])[method.toLowerCase()]);
  return {
    name: id,
    requests: `${request.method} ${request.target}`,
    answers,
    headersOf: status => {
      const { headers } = follow(document, objectOf(described.responses)[status]);
      return Object.keys(objectOf(headers)).filter(
        name => isSold(name) && name.toLowerCase() !== 'content-type',
      );
    },
    maxBytes: answerLimit(document, operation),
    maxMembers: operation.upstream.maxMembers,
    check: operation.upstream.check,
    // Only the secrets sent to this host, because it can't repeat others, and searching large answers for all secrets would take long.
    secrets: sent,
    conceal: text => secrets.conceal(text.replaceAll(host, '…').replaceAll(hostname, '…')),
  };
}

/** The size limit of an answer: 4 MB, or the contract's limit for texts and files (`maxLength`), up to 16 MB. */
function answerLimit(document: Contract['document'], { answers }: Sold): number {
  const limits = answers.map(({ kind, schema }) => {
    const { maxLength } = kind === 'json' ? {} : follow(document, schema);
    if (typeof maxLength !== 'number') return DEFAULT_ANSWER_BYTES;
    return kind === 'text' ? maxLength * MOST_BYTES_OF_CHARACTER : maxLength;
  });
  return Math.min(Math.max(...limits), MAX_ANSWER_BYTES);
}

/** @param preferred the type that the buyer asks for, if that is not the first */
function acceptOf({ answers, check }: Reading, preferred?: string): string {
  const types = new Set(answers.flatMap(({ mimeType }) => mimeType || []));
  if (preferred !== undefined)
    return [preferred, ...[...types].filter(each => each !== preferred).map(each => `${each};q=0.5`)].join(
      ', ',
    );
  return check === 'none' || types.size === 0 ? '*/*' : [...types].join(', ');
}

/** The encoded body of a call. */
function sentBy({ request }: Sold, { body, type }: AnyAsked): WrittenBody | undefined {
  if (!request || body === undefined) return undefined;
  const sent = sentBodyOf(request, body, type);
  if ('wrong' in sent) throw new UpstreamFailure('invalid', sent.wrong);
  return writtenBody(sent);
}

/** Sends a call to its upstream: path, query, headers and body as declared, and nothing else from the caller or about the payment. */
async function ask(
  host: UpstreamHost,
  { operation, request: { target, method, headers, timeoutMs } }: Resolved,
  reading: Reading,
  { signal, caller, order: _order, ...asked }: AnyCall,
): Promise<AnyReply> {
  const sent = sentBy(operation, asked);
  const request = {
    method,
    path: targetOf(target, asked, operation.parameters),
    headers: {
      ...OWN_HEADERS,
      accept: acceptOf(reading, asked.accept),
      ...headersOf(asked),
      ...(sent ? { 'content-type': sent.type } : {}),
      ...headers,
    },
    ...(sent ? { body: sent.body } : {}),
    ms: timeoutMs,
    signal,
    caller,
    maxAnswerBytes: reading.maxBytes,
    // A GET changes nothing, so it may be repeated on another connection.
    resend: method === 'GET',
  };
  try {
    return await readAnswer(await host.request(request), reading);
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof NoAnswer ? failureOf(error, reading) : error;
  }
}
