import { isUtf8 } from 'node:buffer';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { AnswerForm } from '../../contract/contract.js';
import { hasMoreMembers } from '../../contract/json-members.js';
import type { AnyReply } from '../../contract/operation.js';
import { kindOf } from '../../contract/read-answers.js';
import { isHeaderValue, type AnswerCheck } from '../../contract/read-upstream.js';
import type { SoldStatus } from '../../contract/sold-status.js';
import { failureKind, UpstreamFailure } from '../../net/failure.js';
import type { HttpAnswer, NoAnswer } from '../../net/http-client.js';
import type { Secrets } from '../../net/secrets.js';
import { errorMessageOf } from './error-message.js';
import { backoffOf } from './upstream-host.js';

/** How the answers of an operation are read. */
export type Reading = {
  /** The operation, for the log. */
  name: string;
  /** The method and the target of its requests, as in the contract, for the log. */
  requests: string;
  /** The declared forms of the sold answer. */
  answers: readonly AnswerForm[];
  /** The headers that the contract declares for an answer sold with this status. */
  headersOf: (status: SoldStatus) => readonly string[];
  maxBytes: number;
  /** Of JSON. */
  maxMembers: number;
  /** The checks for the answers. A schema is checked later, as for a handler's answer. */
  check: AnswerCheck;
  /** The secrets sent to its host, which must not be sold. */
  secrets: Secrets;
  /** Removes all secrets and the name of the host. */
  conceal: (text: string) => string;
};

const SERVICE = 'The service behind this operation';
const gunzipped = promisify(gunzip);
/** Statuses that are treated like 200 if the contract declares only 200. */
const SOLD_AS_200 = new Set([201, 203]);
/** Statuses that concern the request: the caller can correct it, and another attempt would fail in the same way. */
const OF_THE_CALLER = new Set([400, 404, 409, 422]);
const RETRY_SECONDS = 5;
const MAX_TYPE_LENGTH = 200;
/** JSON that was not parsed is searched for secrets in pieces of this size. */
const PIECE_CHARACTERS = 512 * 1024;
/** The length of the longest secret when all its characters are escaped. */
const LONGEST_SECRET = 64 * 1024;

/**
 * Converts an upstream's answer into the form of a handler's answer, which is checked against the contract before the call is charged.
 * @throws UpstreamFailure for every answer that can't be sold
 */
export async function readAnswer(answer: HttpAnswer, reading: Reading): Promise<AnyReply> {
  const status = soldStatus(answer, reading);
  if (status === undefined) throw await refusal(answer, reading);
  const { type, body, value } = await soldContent(answer, status, reading);
  const headers = reading.headersOf(status).flatMap(name => {
    const value = answer.header(name.toLowerCase());
    return value === undefined ? [] : [[name, value] as const];
  });
  if (await hasSecret(reading, { type, body, value }, [type, ...headers.map(([, text]) => text)]))
    throw unusable(reading, 'it repeats the value of an environment variable that x-upstream names');
  return {
    status,
    headers: { ...Object.fromEntries(headers), ...(type === '' ? {} : { 'Content-Type': type }) },
    body,
    ...(value === undefined ? {} : { value }),
  };
}

/** The status with which an answer is sold; undefined if it is not. */
function soldStatus({ status }: HttpAnswer, { answers }: Reading): SoldStatus | undefined {
  const declared = answers.map(form => form.status);
  const only200 = declared.every(each => each === 200);
  return only200 && SOLD_AS_200.has(status) ? 200 : declared.find(each => each === status);
}

/** The content of an answer that is sold. For JSON, also its value, so that it is parsed only once. */
type Content = { body: string | Buffer; value?: unknown };

/** `type`: empty if there is no content. */
async function soldContent(
  answer: HttpAnswer,
  status: SoldStatus,
  reading: Reading,
): Promise<Content & { type: string }> {
  const type = answer.header('content-type');
  const forms = reading.answers.filter(each => each.status === status);
  if (forms.some(({ kind }) => kind === 'none')) {
    if ((await plain(answer, reading)).length === 0) return { type: '', body: '' };
    throw unusable(reading, `it has a body, and the contract declares ${status} without content`);
  }
  if (reading.check === 'none') return { type: asNamed(type), body: await plain(answer, reading) };
  const form = forms.find(({ mimeType }) => bare(mimeType) === bare(type ?? ''));
  if (!form)
    throw unusable(reading, `its content type is ${shownType(type)}, which the contract does not declare`);
  const content = await contentOf(await plain(answer, reading), form, type, reading);
  const utf8 = form.kind === 'text' && !form.mimeType.includes(';') ? '; charset=utf-8' : '';
  return { type: form.mimeType + utf8, ...content };
}

/** The content type of an answer that is passed on unchecked. */
function asNamed(type = ''): string {
  const sound =
    /^[\w.+-]+\/[\w.+-]+\s*(;|$)/.test(type) && type.length <= MAX_TYPE_LENGTH && isHeaderValue(type);
  return sound ? type : 'application/octet-stream';
}

/** A content type without its parameters. */
function bare(type: string): string {
  return (type.split(';', 1)[0] ?? '').trim().toLowerCase();
}

function shownType(type: string | undefined): string {
  return type === undefined ? 'missing' : bare(type).slice(0, 100);
}

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Text becomes UTF-8. JSON stays as it was written, because rewriting it would change numbers beyond 2⁵³. Here and below, other work can run
 * between steps that take milliseconds for large answers.
 */
async function contentOf(bytes: Buffer, { kind }: AnswerForm, type = '', reading: Reading): Promise<Content> {
  if (kind === 'binary') return { body: bytes };
  const [, charset = 'utf-8'] = kind === 'text' ? (/;\s*charset="?([\w.:-]+)/i.exec(type) ?? []) : [];
  try {
    if (kind === 'text') return { body: textOf(bytes, charset) };
    const body = withoutMark(bytes);
    if (!isUtf8(body)) throw unusable(reading, 'it is not JSON in UTF-8');
    if (hasMoreMembers(body, reading.maxMembers)) throw tooManyMembers(reading);
    await nextTurn();
    const text = body.toString('utf8');
    await nextTurn();
    const value: unknown = JSON.parse(text);
    await nextTurn();
    return { body, value };
  } catch (error) {
    if (error instanceof UpstreamFailure) throw error;
    throw unusable(reading, `it is not ${kind === 'text' ? `text in ${charset}` : 'JSON in UTF-8'}`);
  }
}

/** @throws TypeError, RangeError if the bytes are not text in this charset */
function textOf(bytes: Buffer, charset: string): string {
  if (!/^utf-?8$/i.test(charset)) return new TextDecoder(charset, { fatal: true }).decode(bytes);
  if (!isUtf8(bytes)) throw new TypeError('no UTF-8');
  return withoutMark(bytes).toString('utf8');
}

function withoutMark(bytes: Buffer): Buffer {
  return bytes.subarray(0, 3).equals(BYTE_ORDER_MARK) ? bytes.subarray(3) : bytes;
}

async function hasSecret(
  { secrets, check }: Reading,
  { type, body, value }: Content & { type: string },
  headers: readonly string[],
): Promise<boolean> {
  if (!secrets.some) return false;
  if (await repeatsSecret(secrets, body, value, headers)) return true;
  // Some APIs, PHP's by default, call their JSON text/html.
  return check === 'none' && kindOf(type) !== 'binary' && hidesSecret(secrets, body);
}

async function repeatsSecret(
  secrets: Secrets,
  body: string | Buffer,
  value: unknown,
  headers: readonly string[],
): Promise<boolean> {
  for (const each of [body, ...headers]) if (await secrets.foundIn(bytesOf(each))) return true;
  // Escapes can hide a secret, so the decoded JSON is searched, too.
  if (value === undefined || !body.includes('\\')) return false;
  const meaning = JSON.stringify(value);
  await nextTurn();
  return secrets.foundIn(Buffer.from(meaning));
}

/** Like `repeatsSecret`, for text that was not parsed and may not be JSON. */
async function hidesSecret(secrets: Secrets, body: string | Buffer): Promise<boolean> {
  if (!body.includes('\\')) return false;
  const text = body.toString('utf8');
  for (let at = 0; at < text.length; at += PIECE_CHARACTERS) {
    await nextTurn();
    // The pieces overlap, so that a secret which is cut at the end of one is complete in the next.
    const piece = text.slice(Math.max(0, at - LONGEST_SECRET), at + PIECE_CHARACTERS);
    if (await secrets.foundIn(Buffer.from(unescaped(piece)))) return true;
  }
  return false;
}

function unescaped(text: string): string {
  return text
    .replace(/\\u([\da-f]{4})/gi, (_escape, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .replaceAll('\\/', '/');
}

function bytesOf(content: string | Buffer): Buffer {
  return typeof content === 'string' ? Buffer.from(content) : content;
}

/** Decompresses the body. Only gzip is requested. Its size is bounded while it grows. */
async function plain(answer: HttpAnswer, reading: Reading): Promise<Buffer> {
  const encoding = (answer.header('content-encoding') ?? 'identity').trim().toLowerCase();
  if (encoding === 'identity' || encoding === '') return answer.body;
  if (encoding !== 'gzip' && encoding !== 'x-gzip')
    throw unusable(reading, `it has the encoding ${encoding.slice(0, 40)}, which was not requested`);
  try {
    return await gunzipped(answer.body, { maxOutputLength: reading.maxBytes });
  } catch (error) {
    const large = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    throw large ? tooLarge(reading) : unusable(reading, 'it is not valid gzip');
  }
}

async function refusal(answer: HttpAnswer, reading: Reading): Promise<UpstreamFailure> {
  const { status } = answer;
  const body = await plain(answer, reading).catch(() => Buffer.alloc(0));
  const message = errorMessageOf(answer, body, reading.conceal);
  const says = message === '' ? '' : `: “${message}”`;
  const undeclared = status < 300 ? ', which the contract does not declare' : '';
  const options = { cause: logged(reading, `the upstream answered ${status}${undeclared}${says}`) };
  if (failureKind(status) === 'unavailable') {
    const retryAfterSeconds = backoffOf(answer) ?? RETRY_SECONDS;
    const text = `${SERVICE} is busy or unavailable; try again later.`;
    return new UpstreamFailure('unavailable', text, { ...options, retryAfterSeconds });
  }
  if (OF_THE_CALLER.has(status))
    return new UpstreamFailure('invalid', `${SERVICE} rejected the call (${status})${says}.`, options);
  return new UpstreamFailure('failed', `${SERVICE} ${failed(status)}.`, options);
}

/** 401 and 403 concern the seller's key, so what the upstream says about it is for the operator. */
function failed(status: number): string {
  if (status < 400) return `gave no usable answer (${status})`;
  return status < 500 && status !== 408
    ? `refused its seller (${status}); the seller must fix this`
    : `failed (${status}); try again later`;
}

/** Converts the reason why there is no answer into a failure. */
export function failureOf({ kind, message }: NoAnswer, reading: Reading): UpstreamFailure {
  if (kind === 'too large') return tooLarge(reading);
  const cause = logged(reading, `no answer from the upstream (${kind}): ${message}`);
  const what = {
    unreachable: 'cannot be reached; try again later',
    late: 'did not answer in time; try again',
    private: 'has an address that is not allowed; the seller must fix this',
    aborted: 'did not receive the whole request; try again',
    cut: 'closed the connection without an answer; try again',
    broken: 'gave an incomplete answer; try again',
  }[kind];
  const failure = failureKind(kind);
  const wait = failure === 'unavailable' ? { retryAfterSeconds: RETRY_SECONDS } : {};
  return new UpstreamFailure(failure, `${SERVICE} ${what}.`, { cause, ...wait });
}

function tooLarge(reading: Reading): UpstreamFailure {
  const cause = logged(reading, `the answer of the upstream is larger than ${reading.maxBytes} bytes`);
  // The size of the answer depends on the caller's input.
  return new UpstreamFailure('failed', `${SERVICE} gave too large an answer.`, { cause, fault: 'caller' });
}

function tooManyMembers(reading: Reading): UpstreamFailure {
  const most = reading.maxMembers;
  const cause = logged(
    reading,
    `the answer of the upstream has more than ${most} members: set maxMembers in its x-upstream if that is intended`,
  );
  return new UpstreamFailure('failed', `${SERVICE} gave too large an answer.`, { cause });
}

function unusable(reading: Reading, why: string): UpstreamFailure {
  const cause = logged(reading, `the answer of the upstream can't be sold: ${why}`);
  return new UpstreamFailure('failed', `${SERVICE} gave an unusable answer; try again later.`, { cause });
}

/** Takes only messages meant for the operator's log: a library's exception may contain part of the answer. */
function logged({ name, requests, conceal }: Reading, message: string): Error {
  return new Error(`${name} (${conceal(requests)}): ${conceal(message)}`);
}
