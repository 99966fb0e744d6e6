import '../../rails/solana/silence-bigint-warning.js';
import { parseArgs } from 'node:util';
import { readConfig, type Config } from '../../config.js';
import { commandLine } from '../../config/command-line.js';
import type { FacilitatorConfig } from '../../config/facilitator-settings.js';
import { ConfigFault } from '../../config/setting-reader.js';
import type { Contract } from '../../contract/contract.js';
import { durabilityOf } from '../../ledger/durability.js';
import { messageOf } from '../../ledger/fault.js';
import { inspectLedger, type LedgerState } from '../../ledger/inspect-ledger.js';
import { HttpClient } from '../../net/http-client.js';
import type { Log } from '../../net/log.js';
import { createFacilitators } from '../../facilitators/create-facilitators.js';
import { facilitatorName } from '../../facilitators/http-facilitator.js';
import { verdictsIn, verdictsKey } from '../../facilitators/listing-verdicts.js';
import { directoryFindings } from '../../checks/directory-findings.js';
import { runChecks, sentenceOf, type Check, type Finding } from '../../checks/preflight.js';
import { databaseCheck, headerCheck, startupChecks } from '../../checks/startup-checks.js';
import { publicUrlCheck } from '../../checks/public-url-check.js';
import { MPP_HEADER_BYTES, shopMethods } from '../../methods/shop-methods.js';
import type { Terms } from '../../methods/x402/requirements.js';
import { serviceOf } from '../../methods/x402/service.js';
import { feePayerOf } from '../../endpoints/endpoints.js';
import { isAlive, readInfo } from '../../config/sandbox-file.js';
import { loadShop, type HandlerTable } from '../../shop/load-shop.js';
import { nameWarning } from '../../shop/shop-name.js';
import { readSettings, settingsInWords } from '../../shop/settings.js';
import { createChain } from '../../rails/solana/rpc.js';
import { plain, toJson } from '../ledger/print.js';
import { lookAtUpstreams } from './upstream-checks.js';
import { writeErr, writeOut } from '../terminal.js';

const USAGE = `Usage: ${commandLine('check')} [--json]

Runs all checks that a server runs at startup, without starting one or changing anything, even while one is running: the configuration,
the contract, its handlers and the APIs of x-upstream, the RPC servers, the receiver's account, the facilitators and their fee payers,
this machine's clock, the ledger and its database, the shop's entries in directories, and PUBLIC_URL. It uses the same settings as the server.

Prints a line per finding: ok, warning or error, what was found, and what to do. Exit status 1: there is an error.`;

const CHAIN_TRY_MS = 3_000;
const REACH_MS = 5_000;
const SILENT: Log = { info: () => {}, warn: () => {}, error: () => {} };

type Endpoints = { rpcUrls: string[]; facilitators: readonly FacilitatorConfig[]; payTo: string | undefined };

/** The configured endpoints, or those of the sandbox that is running on the state folder; undefined if none is. */
async function endpointsOf({
  rpcUrls,
  facilitators,
  payTo,
  stateDir,
}: Config): Promise<Endpoints | undefined> {
  if (rpcUrls.length > 0 && facilitators.length > 0) return { rpcUrls: [...rpcUrls], facilitators, payTo };
  const info = readInfo(stateDir);
  if (!info || !(await isAlive(info))) return undefined;
  const own = { kind: 'http', url: info.facilitatorUrl } as const;
  return {
    rpcUrls: [info.rpcUrl],
    facilitators: facilitators.length > 0 ? facilitators : [own],
    payTo: payTo ?? info.payTo,
  };
}

async function readContract(
  config: Config,
): Promise<{ contract: Contract | undefined; findings: Finding[] }> {
  const subject = 'openapi.yaml';
  try {
    const { contract, handlers } = await loadShop(config.shopDir);
    const found = `sells ${contract.paid.length} operations, each of which is served`;
    const named = lookAtName(contract, config.shopDir);
    return {
      contract,
      findings: [{ level: 'ok', subject, found }, ...named, ...lookAtSettings(handlers, config)],
    };
  } catch (error) {
    return { contract: undefined, findings: [{ level: 'error', subject, found: messageOf(error) }] };
  }
}

function lookAtName(contract: Contract, folder: string): Finding[] {
  const found = nameWarning({ contract }, folder);
  return found === undefined ? [] : [{ level: 'warning', subject: 'openapi.yaml', found }];
}

/** The environment variables of the shop's operations, and whether each is set. */
function lookAtSettings(handlers: HandlerTable, config: Config): Finding[] {
  const reader = config.reader();
  readSettings(handlers, reader, config.network.name);
  try {
    reader.finish();
  } catch (error) {
    return [{ level: 'error', subject: 'settings', found: messageOf(error) }];
  }
  return settingsInWords(handlers, reader).map(({ id, found }) => ({
    level: 'ok',
    subject: `settings of ${id}`,
    found,
  }));
}

const LEDGER_STATES: Record<LedgerState['kind'], string> = {
  none: 'it does not exist yet; the server creates it when it first starts',
  older: 'it has an older schema; the server updates it when it next starts',
  unsold: 'nothing has been sold yet, so PAY_TO may still be changed',
  ours: 'it belongs to PAY_TO',
};

async function lookAtLedger(
  config: Config,
  payTo: string,
  facilitators: readonly string[],
): Promise<{ hasHints: boolean; findings: Finding[] }> {
  const subject = 'ledger';
  try {
    const identity = { payTo, network: config.network.caip2 };
    const keys = facilitators.map(verdictsKey);
    const { kind, hasHints, notes } = await inspectLedger(config.databaseDirectUrl, identity, keys);
    const heard = keys.flatMap(key => verdictsIn(notes.get(key)));
    const listings = config.listed ? directoryFindings(facilitators, heard) : [];
    return { hasHints, findings: [{ level: 'ok', subject, found: LEDGER_STATES[kind] }, ...listings] };
  } catch (error) {
    return { hasHints: false, findings: [{ level: 'error', subject, found: messageOf(error) }] };
  }
}

/** The facilitators with a directory, except the sandbox's and the embedded one. */
function namesOf({ catalogue }: Config, endpoints: Endpoints | undefined): string[] {
  return [...(endpoints?.facilitators ?? []), ...catalogue.facilitators].flatMap(each =>
    each.kind === 'http' ? [facilitatorName(each.url)] : [],
  );
}

async function reach(url: string): Promise<void> {
  const client = new HttpClient(url, { connections: 1, maxAnswerBytes: 1_000_000 });
  try {
    await client.request({ method: 'GET', path: '/.well-known/x402', ms: REACH_MS });
  } finally {
    await client.close();
  }
}

function termsOf({ network, publicUrl, host, port, mpp }: Config, payTo: string): Terms {
  return {
    network: network.caip2,
    v1Network: network.v1,
    asset: network.usdcMint,
    payTo,
    publicUrl: publicUrl ?? `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    otherMethodsBytes: mpp ? MPP_HEADER_BYTES : 0,
  };
}

async function check(config: Config): Promise<Finding[]> {
  const { contract, findings } = await readContract(config);
  const endpoints = await endpointsOf(config);
  // The receiver of a sandbox is unknown until it runs.
  const payTo = endpoints?.payTo ?? config.payTo;
  const ledger =
    payTo === undefined ? undefined : await lookAtLedger(config, payTo, namesOf(config, endpoints));
  const looked = [...findings, ...(ledger?.findings ?? [])];
  if (!contract) return looked;
  const { variable, allowPrivateUpstreams: allowPrivate } = config;
  const earlier = [...looked, ...(await lookAtUpstreams(contract, { variable, allowPrivate }))];
  const offered = termsOf(config, payTo ?? config.network.usdcMint);
  const terms = { ...offered, service: serviceOf(contract, offered.publicUrl) };
  const { name: network } = config.network;
  const methods = shopMethods(terms, { mpp: config.mpp, network });
  const durability = () => durabilityOf(config.databaseDirectUrl, config.answerBudgetBytes);
  if (!endpoints) {
    const subject = 'sandbox';
    const found = 'it is not running; the server starts it with its chain, facilitator and receiver';
    const local: Check[] = [
      databaseCheck(durability),
      publicUrlCheck(terms.publicUrl, network),
      headerCheck(contract, methods, terms),
    ];
    return [...earlier, { level: 'ok', subject, found }, ...(await runChecks(local))];
  }
  const chain = createChain({ urls: endpoints.rpcUrls, network: terms.network, timeoutMs: CHAIN_TRY_MS });
  const feePayer = await feePayerOf({ ...config, facilitators: endpoints.facilitators }, endpoints.rpcUrls);
  const own = { chain, feePayer, limits: config.feePayer.limits, log: SILENT };
  const facilitators = await createFacilitators(endpoints.facilitators, own, config.catalogue.facilitators);
  try {
    const hadFeePayer = ledger?.hasHints ?? false;
    const parts = { contract, terms, methods, network, chain, facilitators, hadFeePayer, durability, reach };
    return [...earlier, ...(await runChecks(startupChecks(parts)))];
  } finally {
    await Promise.all([facilitators.close(), chain.close()]);
  }
}

function print(findings: readonly Finding[], json: boolean): void {
  if (json) return void writeOut(`${toJson(findings)}\n`);
  for (const finding of findings) writeOut(`${finding.level.padEnd(7)}  ${plain(sentenceOf(finding))}\n`);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) return void writeOut(`${USAGE}\n`);
  const findings = await check(readConfig());
  print(findings, values.json === true);
  if (findings.some(({ level }) => level === 'error')) process.exitCode = 1;
}

try {
  await main();
} catch (error) {
  // Stacks may contain URLs with credentials.
  const lines = messageOf(error).split('\n').map(plain);
  writeErr(error instanceof ConfigFault ? `${lines.join('\n')}\n` : `The check failed: ${lines[0]}\n`);
  process.exitCode = 1;
}
