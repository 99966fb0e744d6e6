import { existsSync } from 'node:fs';
import { relative } from 'node:path';
import { parseArgs } from 'node:util';
import { CALLED_METHODS, type CalledMethod } from '../../contract/called-methods.js';
import type { Json } from '../../contract/json.js';
import { OperationFault } from './contract-text.js';
import { pathParameters, schemaName, wordsOf, type NewOperation } from './describe-operation.js';
import { addOperation, removeOperation } from './edit-shop.js';
import { readPriceBy, risingFrom, type PriceBy } from '../../price/price-by.js';
import { writeErr, writeOut } from '../terminal.js';

const USAGE = `Usage: coinslot operation add <operationId> --price USD [options]
       coinslot operation remove <operationId>
Or, with make: make operation NAME=… PRICE=… [PRICE_BY=…] [FLOW=…] [UPSTREAM=…] [METHOD=…] [ROUTE=…] [REQUEST=…]
               [ANSWER=…] [SUMMARY=…] [TAG=…]
               make operation-remove NAME=…

add puts an operation into openapi.yaml, with schemas that are inferred from one example of a call and its answer. Without
--upstream it also writes a handler that sells nothing until you complete it, and a test that fails until then.
remove deletes an operation and everything that only it needs.

  --price USD        what a call costs, for example 0.01
  --price-by RULE    what makes the price rise; --price is then the lowest: 'length of /body/text, 0.001 per 1000, at most 0.50' (or
                     value, items or bytes), or 'handler, at most 0.50' for a function of the handler
  --flow FLOW        authorization (default): charged only for an answer; upfront: paid before the work, for slow work
  --upstream URL     the HTTP API that answers the calls; {name} stands for a path parameter
  --method METHOD    POST (default), GET, PUT, PATCH or DELETE
  --route PATH       its path (default /v1/<operation-id>); {name} is a parameter
  --request JSON     an example of a call: its body or, for GET and DELETE, its parameters (default {"text":"One coin, one call."})
  --answer JSON      an example of its answer (default {"result":"…"})
  --summary TEXT     a short description for readers (default: the words of the operationId)
  --tag TAG          the tag of the operation (default Operations)
  --help             print this text

The folder is the current one; it must have an openapi.yaml.`;

const TEXT = { type: 'string' } as const;
const OPTIONS = {
  price: TEXT,
  'price-by': TEXT,
  flow: TEXT,
  upstream: TEXT,
  method: TEXT,
  route: TEXT,
  // The name of --route in version 1.0.0.
  path: TEXT,
  request: TEXT,
  answer: TEXT,
  summary: TEXT,
  tag: TEXT,
  help: { type: 'boolean', short: 'h' },
} as const;
type Values = ReturnType<typeof parsed>['values'];

const ID = /^[a-z][A-Za-z0-9]{0,59}$/;
/** Words that can't be the name of a constant. */
const RESERVED =
  /^(await|break|case|catch|class|const|continue|debugger|default|delete|do|else|enum|export|extends|false|finally|for|function|if|implements|import|in|instanceof|interface|let|new|null|package|private|protected|public|return|static|super|switch|this|throw|true|try|typeof|var|void|while|with|yield)$/;
const folder = process.cwd();

function parsed() {
  try {
    return parseArgs({ options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw new OperationFault(`${(error as Error).message}\n\n${USAGE}`);
  }
}

function jsonOption(name: string, text: string | undefined, fallback: Json): Json {
  if (text === undefined) return fallback;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Json;
  } catch {
    // The sentence below explains what is needed.
  }
  throw new OperationFault(`--${name} must be a JSON object in quotes, for example '{"text":"Any text."}'.`);
}

function oneOf<T extends string>(name: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find(each => each === value);
  if (found === undefined)
    throw new OperationFault(`--${name} must be ${allowed.join(' or ')}, not ${value}.`);
  return found;
}

function readPrice(least: string, { 'price-by': rule, upstream }: Values): Json {
  if (rule === undefined) return { mode: 'fixed', amount: least };
  const price = priceByOf(rule);
  if (price.mode === 'handler' && upstream !== undefined)
    throw new OperationFault(
      '--price-by handler needs a function of the handler, but --upstream replaces the handler.',
    );
  return risingFrom(least, price);
}

function priceByOf(rule: string): PriceBy {
  try {
    return readPriceBy(rule);
  } catch (error) {
    throw new OperationFault(`--price-by ${(error as Error).message}`);
  }
}

function readNew(id: string, values: Values): NewOperation {
  if (!ID.test(id) || RESERVED.test(id))
    throw new OperationFault(`The name of an operation must be a word like textStats, not '${id}'.`);
  if (values.price === undefined) throw new OperationFault(`--price is missing.\n\n${USAGE}`);
  const method = oneOf(
    'method',
    (values.method ?? 'POST').toUpperCase(),
    CALLED_METHODS,
  ).toLowerCase() as Lowercase<CalledMethod>;
  const path = values.route ?? values.path ?? `/v1/${wordsOf(id, '-')}`;
  const request = jsonOption('request', values.request, { text: 'One coin, one call.' });
  for (const name of pathParameters(path))
    if (!(name in request))
      throw new OperationFault(`--request must have an example of ${name}, which is in the path.`);
  return {
    id,
    method,
    path,
    price: readPrice(values.price, values),
    request,
    answer: jsonOption('answer', values.answer, { result: 'What you sell.' }),
    summary: values.summary ?? schemaName(wordsOf(id, ' ')),
    flow: oneOf('flow', values.flow ?? 'authorization', ['authorization', 'upfront']),
    ...(values.tag === undefined ? {} : { tag: values.tag }),
    ...(values.upstream === undefined ? {} : { upstream: values.upstream }),
  };
}

async function add(id: string, values: Values): Promise<string[]> {
  const operation = readNew(id, values);
  const files = changed(await addOperation(folder, operation));
  return [
    ...files,
    operation.upstream === undefined
      ? `Next: build, complete handlers/${id}.ts, and make its test pass. Until then the server answers 503 and charges nothing.`
      : 'Next: compare its schemas in openapi.yaml with what the API accepts and returns, and build.',
  ];
}

function changed(files: string[]): string[] {
  return files.map(each => `${existsSync(each) ? 'changed' : 'removed'} ${relative(folder, each)}`);
}

try {
  const { values, positionals } = parsed();
  const [command, id, ...rest] = positionals;
  if (values.help) writeOut(`${USAGE}\n`);
  else if (!id || rest.length || (command !== 'add' && command !== 'remove')) throw new OperationFault(USAGE);
  else
    writeOut(
      `${(command === 'add' ? await add(id, values) : changed(await removeOperation(folder, id))).join('\n')}\n`,
    );
} catch (error) {
  if (!(error instanceof OperationFault)) throw error;
  writeErr(`${error.message}\n`);
  process.exitCode = 1;
}
