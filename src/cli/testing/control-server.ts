import { messageOf } from '../../ledger/fault.js';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Json } from '../../contract/json.js';
import { objectOf } from '../../contract/references.js';
import type { Answer, Fault, SignedCall, TestShop } from '../../testing/start-shop.js';

const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** The maximum number of signed calls to keep. Older ones are dropped. */
const MAX_SIGNED_CALLS = 1_000;

/** An invalid request; `message` says why. */
class RequestFault extends Error {}

/**
 * Lets a test in any language control a shop over HTTP, with JSON requests and answers. @param shop the controlled shop
 */
export async function serveControl(
  shop: TestShop,
  facts: Json,
  port: number,
): Promise<{ url: string; server: Server }> {
  const commands = commandsFor(shop, facts);
  const server = createServer((request, response) => {
    void answer(commands, request).then(([status, body]) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`),
    );
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

type Command = (given: Json) => Promise<Json>;

function commandsFor(shop: TestShop, facts: Json): Record<string, Command> {
  const signed = new Map<string, SignedCall>();
  let count = 0;
  const sign: Command = async ({ operationId, input }) => {
    if (typeof operationId !== 'string') throw new RequestFault('operationId is missing: which call is it?');
    const call = await shop.sign(operationId, input === undefined ? undefined : objectOf(input));
    count += 1;
    const id = String(count);
    signed.set(id, call);
    signed.delete(String(count - MAX_SIGNED_CALLS));
    return { call: id, price: call.price };
  };
  const send: Command = async ({ call }) => {
    const found = signed.get(String(call));
    if (!found) throw new RequestFault(`No call ${String(call)} was signed.`);
    return describe(await found.send());
  };
  return {
    'GET /': () => Promise.resolve(facts),
    'GET /spent': async () => ({ spent: await shop.spent() }),
    'POST /sign': sign,
    'POST /send': send,
    'POST /buy': async given => {
      const { call, price } = await sign(given);
      return { call, price, ...(await send({ call })) };
    },
    'POST /inject': async ({ fault }) => {
      await shop.inject(String(fault) as Fault);
      return { injected: fault };
    },
    'POST /clear': async () => {
      await shop.clear();
      return {};
    },
  };
}

async function answer(
  commands: Record<string, Command>,
  request: IncomingMessage,
): Promise<[status: number, body: Json]> {
  try {
    // Web pages could send requests to any port of this machine, so requests from browsers are refused.
    if (request.headers.origin !== undefined) throw new RequestFault('Web pages may not send commands.');
    const name = `${request.method} ${request.url}`;
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (!command)
      return [
        404,
        { error: `There is no command ${name}. The commands are ${Object.keys(commands).join(', ')}.` },
      ];
    return [200, await command(await jsonOf(request))];
  } catch (error) {
    return [400, { error: messageOf(error) }];
  }
}

async function jsonOf(request: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_BODY_BYTES) throw new RequestFault(`The body is larger than ${MAX_BODY_BYTES} bytes.`);
    chunks.push(chunk as Buffer);
  }
  const text = Buffer.concat(chunks).toString('utf8');
  try {
    return objectOf(JSON.parse(text === '' ? '{}' : text));
  } catch {
    throw new RequestFault('The body is not JSON.');
  }
}

/** `body` is base64 if it is not JSON. */
function describe({ json, body, headers, ...rest }: Answer): Json {
  const kept = json === undefined ? { body: body.toString('base64') } : { json };
  return { ...rest, ...kept, headers: Object.fromEntries(headers) };
}
