import { messageOf } from '../../ledger/fault.js';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { commandLine } from '../../config/command-line.js';
import { ConfigFault } from '../../config/setting-reader.js';
import { ContractFault } from '../../contract/contract.js';
import { loadAnyContract } from '../../contract/parse-contract.js';
import { listen } from '../../http/listen.js';
import { Routes } from '../../contract/routes.js';
import { shopFiles } from '../../shop/load-shop.js';
import { createFront } from './front.js';
import { mockDocument, MOCK_RPC_PATH, mockSelling } from './mock-document.js';
import { findPrism, PRISM_PACKAGE, PrismFault, startPrism } from './prism-process.js';
import { writeErr, writeOut } from '../terminal.js';

const USAGE = `Usage: ${commandLine('mock')} [--port 4010]

Serves a mock of openapi.yaml in the current folder: every call is answered with an example that matches the contract. It asks for
payment like the server, but no money moves: a paid call without a payment gets 402 with its price, and any payment buys an example,
with a receipt whose transaction begins with "mock".

  Prefer: code=502        any status that the contract declares
  Prefer: dynamic=true    an answer made from the schema instead of the example
  ?x402Version=1          the challenge of x402 v1

The answers come from Prism, which is installed in the folder of the shop: npm install --save-dev ${PRISM_PACKAGE}`;

const HOST = '127.0.0.1';
const DEFAULT_PORT = 4010;

function readPort(): number | undefined {
  const { values } = parseArgs({
    options: { port: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) return undefined;
  const port = Number(values.port ?? DEFAULT_PORT);
  if (Number.isInteger(port) && port >= 0 && port < 65_536) return port;
  throw new ConfigFault(`--port ${values.port} is not a port: give a number from 0 (any free one) to 65535.`);
}

async function serve(port: number): Promise<void> {
  const folder = process.cwd();
  const prism = findPrism(folder);
  if (!prism)
    throw new PrismFault(
      `Prism is not installed: npm install --save-dev ${PRISM_PACKAGE} (in Coinslot's own repository, make mock installs it).`,
    );
  const contract = await loadAnyContract(shopFiles(folder).contract);
  const routes = await Routes.create(contract);
  const parts = { routes, ...mockSelling(contract, `http://${HOST}:${port}`), prismUrl: '' };
  const server = createFront(parts);
  await listen(server, HOST, port, '--port');
  const url = `http://${HOST}:${(server.address() as AddressInfo).port}`;
  Object.assign(parts, mockSelling(contract, url));
  const scratch = mkdtempSync(join(tmpdir(), 'coinslot-mock-'));
  const document = join(scratch, 'openapi.json');
  writeFileSync(document, JSON.stringify(mockDocument(contract, parts)));
  // The file is kept until the end, because Prism watches it, and exits if it changes while Prism is starting.
  process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
  const running = await startPrism(prism, document);
  parts.prismUrl = running.url;
  const stop = (): void => {
    running.stop();
    server.close();
    server.closeAllConnections();
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
  void running.ended.then(said => {
    if (!server.listening) return;
    writeErr(`Prism ended, so the mock ends too: ${said.slice(-2000)}\n`);
    process.exitCode = 1;
    stop();
  });
  writeOut(
    `mock of ${contract.paid.length} paid operations at ${url}; no money moves\n` +
      `buyers need no chain: give them ${url}${MOCK_RPC_PATH} as their Solana RPC server\n`,
  );
}

try {
  const port = readPort();
  if (port === undefined) writeOut(`${USAGE}\n`);
  else await serve(port);
} catch (error) {
  const known = error instanceof PrismFault || error instanceof ConfigFault || error instanceof ContractFault;
  writeErr(`${messageOf(error)}${known ? '' : `\n\n${USAGE}`}\n`);
  process.exit(1);
}
