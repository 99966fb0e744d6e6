import type { PricedOperation } from '../contract/contract.js';
import { exampleArguments } from '../mcp/tool-arguments.js';
import { queryPairs } from '../contract/query-styles.js';
import { MCP_PATH } from '../contract/reserved-names.js';
import { writtenExample } from '../contract/sent-body.js';
import type { Terms } from '../methods/x402/requirements.js';

/** Code that buys one call, in one language. */
export type Snippet = { id: string; label: string; note: string; code: string };

/** Code to copy that buys the operation with its example. It reads KEYPAIR (64 numbers) and RPC_URL. */
export function snippetsFor(operation: PricedOperation, terms: Terms): Snippet[] {
  const call: Call = {
    price: operation.price,
    url: terms.publicUrl + examplePath(operation),
    method: operation.method,
    headers: exampleHeaders(operation),
    ...bodyOf(operation),
    isJson: operation.answers[0].kind === 'json',
  };
  return [
    {
      id: 'curl',
      label: 'curl',
      note: 'curl cannot sign, so step 2 needs an x402 client.',
      code: curl(call),
    },
    {
      id: 'typescript',
      label: 'TypeScript',
      note: 'npm install @x402/fetch @x402/svm @solana/kit',
      code: typescript(call),
    },
    { id: 'python', label: 'Python', note: 'pip install "x402[svm,requests]"', code: python(call) },
    {
      id: 'mcp',
      label: 'MCP',
      note: 'npm install @modelcontextprotocol/client @x402/core @x402/svm @solana/kit',
      code: mcp(operation, terms),
    },
  ];
}

/** A prompt that makes an agent with a wallet buy a call. */
export function agentPrompt(operation: PricedOperation, { publicUrl }: Terms, shop: string): string {
  const { method, summary, price } = operation;
  return `Use ${shop} at ${publicUrl}: it sells API calls for USDC on Solana over x402, without an account.
Read ${publicUrl}/llms.txt first: it lists all operations with their prices, and what each answer means for the money.
Begin with this one: ${method} ${publicUrl}${examplePath(operation)} (${summary}, ${price.shown} a call).
Pay from your own wallet, at most ${price.amount} USDC for this call. After a 503, send the same payment again; never sign a second one.
Show me the answer and the receipt.`;
}

/** The settings with which an MCP host connects to the shop. */
export function mcpSettings({ publicUrl }: Terms, shop: string): string {
  const name = shop.toLowerCase().replace(/[^a-z0-9]+/g, '-') || 'shop';
  return JSON.stringify({ mcpServers: { [name]: { type: 'http', url: publicUrl + MCP_PATH } } }, null, 2);
}

/** The hosts that `coinslot mcp install` supports. */
const HOSTS = ['claude-code', 'claude-desktop', 'codex', 'cursor', 'goose', 'vscode'];

/** For each MCP host that has no wallet, a command that adds a wallet with limits to its settings. */
export function walletCommands({ publicUrl }: Terms): string {
  const wallet = `--url ${publicUrl} --keypair payer.json --budget 1.00`;
  return HOSTS.map(host => `coinslot mcp install --host ${host} ${wallet}`).join('\n');
}

/** Path and query of a call, with the examples of the contract. */
export function examplePath({ examplePath: path, parameters }: PricedOperation): string {
  const query = new URLSearchParams();
  for (const parameter of parameters.filter(each => each.in === 'query'))
    for (const [name, text] of queryPairs(parameter, parameter.example)) query.append(name, text);
  return query.size > 0 ? `${path}?${query.toString()}` : path;
}

/** The header parameters of a call, with the examples of the contract. */
export function exampleHeaders({ parameters }: PricedOperation): Record<string, string> {
  const shown = parameters.filter(each => each.in === 'header' && each.example !== undefined);
  return Object.fromEntries(shown.map(({ name, example }) => [name, [example].flat().join(', ')]));
}

type Call = {
  price: Price;
  url: string;
  method: string;
  headers: Record<string, string>;
  /** The body as it is sent. */
  body?: string | Buffer;
  type: Record<string, string>;
  /** Whether the body and the answer are JSON. */
  sendsJson: boolean;
  isJson: boolean;
};

/** The body of the example as it is sent, and its type. */
export function bodyOf({ request }: PricedOperation): Pick<Call, 'body' | 'type' | 'sendsJson'> {
  if (!request) return { type: {}, sendsJson: false };
  const { type, body } = writtenExample(request);
  return { body, type: { 'Content-Type': type }, sendsJson: request.kind === 'json' };
}

function curl({ url, method, headers, body, type }: Call): string {
  const all = Object.entries({ ...headers, ...type });
  const named = all.map(([name, value]) => ` \\\n  -H ${quoted(`${name}: ${value}`)}`).join('');
  const piped = typeof body === 'object' ? `echo ${body.toString('base64')} | base64 -d | ` : '';
  const data = typeof body === 'string' ? `-d ${quoted(body)}` : '--data-binary @-';
  const sent = body === undefined ? named : `${named} \\\n  ${data}`;
  const call = `${piped}curl -i -X ${method} ${quoted(url)}`;
  return `# 1. Ask for the price: 402, with the challenge in the body and in PAYMENT-REQUIRED.
${call}${sent}

# 2. Sign one of the offered payments with an x402 client, and keep the header.
# 3. Send the same call again, with the payment.
${call} \\
  -H "PAYMENT-SIGNATURE: $PAYMENT"${sent}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** x402's clients pay at most one dollar a call, unless they are told otherwise. */
const CLIENTS_LIMIT = 1_000_000n;

type Price = PricedOperation['price'];

/** A line that raises the client's limit to the price of the call, if that is necessary. */
function raised({ atomic, amount }: Price, line: (limit: string) => string): string {
  return atomic > CLIENTS_LIMIT ? `\n${line(`$${amount}`)}` : '';
}

function raisedInScript(price: Price): string {
  return raised(price, limit => `wallet.setSpendControls({ maxAmountPerPayment: '${limit}' });`);
}

const SIGNER = `const key = Uint8Array.from(JSON.parse(readFileSync(process.env.KEYPAIR!, 'utf8')));
const signer = await createKeyPairSignerFromBytes(key);
const rpcUrl = process.env.RPC_URL!;
const wallet = new x402Client().register('solana:*', new ExactSvmScheme(signer, { rpcUrl }));`;

function typescript({ price, url, method, headers, body, type, sendsJson, isJson }: Call): string {
  const all = Object.entries({ ...headers, ...type });
  const named = all.map(([name, value]) => `'${name}': ${scriptText(value)}`).join(', ');
  const json =
    (named ? `\n  headers: { ${named} },` : '') +
    (body === undefined ? '' : `\n  body: ${scriptBody(body, sendsJson)},`);
  return `import { readFileSync } from 'node:fs';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';

${SIGNER}${raisedInScript(price)}

// fetch that pays a 402, at most ${price.atomic > CLIENTS_LIMIT ? `${price.amount} dollars` : 'one dollar'}, and repeats the call.
const pay = wrapFetchWithPayment(fetch, wallet);
const answer = await pay(${JSON.stringify(url)}, {
  method: '${method}',${json}
});
console.log(answer.status, ${isJson ? 'await answer.json()' : '(await answer.arrayBuffer()).byteLength'});`;
}

function scriptBody(body: string | Buffer, sendsJson: boolean): string {
  if (typeof body === 'object') return `Buffer.from('${body.toString('base64')}', 'base64')`;
  return sendsJson ? `JSON.stringify(${body})` : scriptText(body);
}

/** A string literal, in single quotes if that needs no escapes. */
function scriptText(text: string): string {
  return /['\\\p{Cc}]/u.test(text) ? JSON.stringify(text) : `'${text}'`;
}

function python({ price, url, method, headers, body, type, sendsJson, isJson }: Call): string {
  const all = { ...headers, ...(sendsJson ? {} : type) };
  const named = Object.keys(all).length > 0 ? `, headers=${JSON.stringify(all)}` : '';
  const json = named + (body === undefined ? '' : `, ${pythonBody(body, sendsJson)}`);
  const limit = raised(price, most => `wallet.set_spend_controls({"max_amount_per_payment": "${most}"})`);
  return `${typeof body === 'object' ? 'import base64\n' : ''}import json
import os

from x402 import x402ClientSync
from x402.http.clients.requests import x402_requests
from x402.mechanisms.svm import KeypairSigner
from x402.mechanisms.svm.exact.register import register_exact_svm_client

with open(os.environ["KEYPAIR"]) as file:
    signer = KeypairSigner.from_bytes(bytes(json.load(file)))
wallet = register_exact_svm_client(x402ClientSync(), signer, rpc_url=os.environ["RPC_URL"])${limit}
with x402_requests(wallet) as session:
    answer = session.request("${method}", ${JSON.stringify(url)}${json}, timeout=60)
print(answer.status_code, ${isJson ? 'answer.json()' : 'len(answer.content)'})`;
}

function pythonBody(body: string | Buffer, sendsJson: boolean): string {
  if (typeof body === 'object') return `data=base64.b64decode("${body.toString('base64')}")`;
  return sendsJson ? `json=json.loads(${pythonText(body)})` : `data=${pythonText(body)}.encode()`;
}

/** A Python literal. JSON's escapes have the same meaning in Python. */
function pythonText(text: string): string {
  return JSON.stringify(text);
}

function mcp(operation: PricedOperation, { publicUrl }: Terms): string {
  return `import { readFileSync } from 'node:fs';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { x402Client } from '@x402/core/client';
import { ExactSvmScheme } from '@x402/svm/exact/client';

${SIGNER}${raisedInScript(operation.price)}

const client = new Client({ name: 'buyer', version: '1.0.0' });
await client.connect(new StreamableHTTPClientTransport(new URL(${JSON.stringify(publicUrl + MCP_PATH)})));
const call = { name: ${JSON.stringify(operation.id)}, arguments: ${JSON.stringify(exampleArguments(operation))} };
const unpaid = await client.callTool(call);
const payment = await wallet.createPaymentPayload(unpaid.structuredContent as never);
const answer = await client.callTool({ ...call, _meta: { 'x402/payment': payment } });
console.log(answer.isError ? 'failed' : 'paid', answer.content);
await client.close();`;
}
