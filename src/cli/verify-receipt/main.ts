import { createPublicKey } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Json } from '../../contract/json.js';
import { isObject } from '../../contract/references.js';
import { receiptsIn } from '../../receipts/find-receipts.js';
import { ReceiptFault } from '../../receipts/receipt-fault.js';
import { publishedKey } from '../../receipts/resolve-did.js';
import { contradictions, verifyReceipt, type Known, type Verified } from '../../receipts/verify-receipt.js';
import { writeErr, writeOut } from '../terminal.js';

const USAGE = `Usage: coinslot verify-receipt [FILE] [options]

Verifies the signatures of a shop: receipts of x402 (extension offer-receipt), answer receipts of Coinslot, and offers. FILE (default: standard
input) contains them in any form: the JWS itself, a PAYMENT-RESPONSE header, all headers of an answer (curl -i), or the result of an MCP
tool. The shop's keys are read from https://<host>/.well-known/did.json; the host must be that of the paid URL.

  --answer FILE    the body of the answer: an answer receipt must match it
  --request FILE   the request, as JSON: the body, or [path parameters, query, body]; with the defaults of the contract
  --key FILE       the shop's public key, as PEM, JWK or did.json, instead of the one that its host publishes
  --allow-private  allows private addresses, such as those of a sandbox
  --json           one JSON object per receipt
  --help           print this text

Exit status 0: all are genuine; 1: one is not, or there is none; 2: the options are wrong.`;

const MAX_BYTES = 64 << 20;

class UsageFault extends Error {}

type Task = { text: string; known: Known; key: Keys | undefined; allowPrivate: boolean; json: boolean };
type Keys = (kid: string) => Json;

function readTask(): Task | undefined {
  const { values, positionals } = parsed();
  if (values.help) return undefined;
  const [file = '-', ...rest] = positionals;
  if (rest.length > 0) throw new UsageFault(USAGE);
  const { answer, request, key, json = false } = values;
  return {
    text: contentOf(file).toString('utf8').trim(),
    known: {
      ...(answer === undefined ? {} : { answer: contentOf(answer) }),
      ...(request === undefined ? {} : { request: jsonOf(request) }),
    },
    key: key === undefined ? undefined : readKey(key),
    allowPrivate: values['allow-private'] ?? false,
    json,
  };
}

function parsed() {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  try {
    return parseArgs({
      options: {
        answer: text,
        request: text,
        key: text,
        'allow-private': flag,
        json: flag,
        help: { type: 'boolean', short: 'h' },
      },
      allowPositionals: true,
    });
  } catch (error) {
    throw new UsageFault(`${(error as Error).message}\n\n${USAGE}`);
  }
}

/** npm changes to the package's folder, but relative paths refer to the caller's folder. */
function contentOf(file: string): Buffer {
  if (file === '-') return readFileSync(0);
  try {
    const path = resolve(process.env.INIT_CWD ?? process.cwd(), file);
    if (statSync(path).size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES >> 20} MB`);
    return readFileSync(path);
  } catch (error) {
    throw new UsageFault(`${file} cannot be read: ${(error as Error).message}`);
  }
}

function jsonOf(file: string): unknown {
  try {
    return JSON.parse(contentOf(file).toString('utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) throw new UsageFault(`${file} is not JSON: ${error.message}`);
    throw error;
  }
}

/** From a did.json, the key that the receipt names; other formats contain only one key. */
function readKey(file: string): Keys {
  const text = contentOf(file).toString('utf8').trim();
  if (!text.startsWith('{')) {
    const jwk = jwkOf(file, text);
    return () => jwk;
  }
  const value = jsonOf(file) as Json;
  const { verificationMethod } = value;
  if (!Array.isArray(verificationMethod)) return () => value;
  return kid => {
    const method = verificationMethod.filter(isObject).find(({ id }) => id === kid);
    if (isObject(method?.publicKeyJwk)) return method.publicKeyJwk;
    throw new ReceiptFault(`${file} has no key ${kid}`);
  };
}

function jwkOf(file: string, pem: string): Json {
  try {
    return createPublicKey(pem).export({ format: 'jwk' });
  } catch (error) {
    throw new UsageFault(`--key ${file}: neither PEM nor JSON: ${(error as Error).message}`);
  }
}

function linesOf({ kind, kid, payload }: Verified): string {
  const { issuedAt, validUntil } = payload;
  const at = (seconds: unknown): string =>
    typeof seconds === 'number' ? new Date(seconds * 1000).toISOString() : '';
  const shown: Json = {
    ...payload,
    ...(issuedAt === undefined ? {} : { issuedAt: at(issuedAt) }),
    ...(validUntil === undefined ? {} : { validUntil: at(validUntil) }),
  };
  delete shown.version;
  const members = Object.entries(shown).map(
    ([name, value]) => `        ${name.padEnd(14)} ${String(value)}\n`,
  );
  return `ok      ${kind}, signed with ${kid}\n${members.join('')}`;
}

type Result = { verified?: Verified; fault?: string };

async function resultOf(text: string, { key, known, allowPrivate }: Task): Promise<Result> {
  try {
    const keyOf = async (kid: string): Promise<Json> => key?.(kid) ?? publishedKey(kid, allowPrivate);
    const verified = await verifyReceipt(text, keyOf, key !== undefined);
    const [fault] = contradictions(verified, known);
    return fault === undefined ? { verified } : { fault };
  } catch (error) {
    if (error instanceof ReceiptFault) return { fault: error.message };
    throw error;
  }
}

async function run(task: Task): Promise<void> {
  const found = receiptsIn(task.text);
  const results: Result[] = [];
  for (const text of found) results.push(await resultOf(text, task));
  if (found.length === 0)
    results.push({
      fault: 'the input contains no receipt; a receipt is a JWS, alone or in JSON or a header',
    });
  const asked = task.known.answer !== undefined || task.known.request !== undefined;
  if (asked && !results.some(({ verified, fault }) => fault ?? verified?.kind === 'answer receipt'))
    results.push({
      fault: 'the input contains no answer receipt, and only answer receipts cover a request and its answer',
    });
  for (const { verified, fault } of results) {
    if (task.json) writeOut(`${JSON.stringify(verified ?? { fault })}\n`);
    else writeOut(verified ? linesOf(verified) : `FAILED  ${fault}.\n`);
  }
  process.exitCode = results.some(({ fault }) => fault !== undefined) ? 1 : 0;
}

try {
  const task = readTask();
  if (task) await run(task);
  else writeOut(`${USAGE}\n`);
} catch (error) {
  if (!(error instanceof UsageFault)) throw error;
  writeErr(`${error.message}\n`);
  process.exitCode = 2;
}
