import '../../rails/solana/silence-bigint-warning.js';
import { parseArgs } from 'node:util';
import { startShop } from '../../testing/start-shop.js';
import { writeErr, writeOut } from '../terminal.js';
import { serveControl } from './control-server.js';

const USAGE = `Usage: coinslot testing [--port 0] [--setting NAME=VALUE …] [--log]

Starts the shop in the current folder in a sandbox of its own, on free ports, for tests in any language. Prints one line of JSON when it
can be paid: url, rpcUrl, buyer { address, keypairFile }, network, usdcMint, payTo and control. SIGTERM or Ctrl-C ends everything.

  --port PORT           the port of control (default 0: any free one)
  --setting NAME=VALUE  a setting of the shop, such as one that its upstreams need; repeat it for more
  --log                 print the log of the shop to stderr

control takes JSON over HTTP and answers JSON:
  POST /buy     {"operationId":"…","input":{…}}   buys a call; without input, with the examples of the contract
  POST /sign    the same, but only signs the payment: {"call":"1","price":"0.01"}
  POST /send    {"call":"1"}   sends the payment of a call, first or again
  POST /inject  {"fault":"settle-unknown"}   or settle-answer-lost, rpc-dead, facilitator-lies, upstream-502, price-change,
                respondents-absent
  POST /clear   ends every fault
  GET /spent    what the buyer has paid so far
  GET /         the printed line of JSON
docs/how-to/testing.md describes what a buyer sees under each fault.`;

type Options = { port: number; settings: Record<string, string>; log: boolean };

/** @returns undefined for --help */
function readOptions(): Options | undefined {
  const { values } = parseArgs({
    options: {
      port: { type: 'string' },
      setting: { type: 'string', multiple: true },
      log: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) return undefined;
  const port = Number(values.port ?? 0);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new Error(`--port ${values.port} is not a port: give a number from 0 (any free one) to 65535.`);
  const settings = (values.setting ?? []).map((each): [string, string] => {
    const [, name, value] = /^(\w+)=(.*)$/s.exec(each) ?? [];
    if (name === undefined || value === undefined) throw new Error(`--setting ${each} is not NAME=VALUE.`);
    return [name, value];
  });
  return { port, settings: Object.fromEntries(settings), log: values.log ?? false };
}

async function serve({ port, settings, log }: Options): Promise<void> {
  const shop = await startShop({ settings, log: line => log && writeErr(`${line}\n`) });
  const { url, rpcUrl, buyer, network, usdcMint, payTo } = shop;
  const facts: Record<string, unknown> = { url, rpcUrl, buyer, network, usdcMint, payTo };
  const control = await serveControl(shop, facts, port).catch(async (error: unknown) => {
    await shop.stop();
    throw error;
  });
  facts['control'] = control.url;
  const stop = (): void => {
    control.server.close();
    control.server.closeAllConnections();
    void shop.stop();
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
  writeOut(`${JSON.stringify(facts)}\n`);
}

try {
  const options = readOptions();
  if (options) await serve(options);
  else writeOut(`${USAGE}\n`);
} catch (error) {
  writeErr(`${(error as Error).message}\n`);
  process.exitCode = 1;
}
