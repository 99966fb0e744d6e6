import './rails/solana/silence-bigint-warning.js';
import { compose, type Running } from './compose.js';
import { readConfig } from './config.js';
import { ConfigFault } from './config/setting-reader.js';
import { ContractFault } from './contract/contract.js';
import { LedgerFault } from './ledger/fault.js';
import { FacilitatorFault } from './facilitators/facilitator.js';

/** Errors that the operator can correct; only their message is printed. */
const FAULTS = [ConfigFault, ContractFault, FacilitatorFault, LedgerFault];

let running: Running | undefined;
let stopping = false;

/** During startup there is nothing to finish: the sandbox ends with this process, and the kernel releases the ledger's lock. */
function stop(status: number): void {
  if (stopping) return;
  stopping = true;
  void (running?.stop() ?? Promise.resolve()).finally(() => process.exit(status));
}

process.once('SIGINT', () => stop(0));
process.once('SIGTERM', () => stop(0));
try {
  running = await compose(readConfig(), () => {
    process.stderr.write('The sandbox has ended, so no payment can be settled. The server is stopping.\n');
    stop(1);
  });
  greet(running);
} catch (error) {
  if (!stopping) fail(error);
}

/** Sends the banner to the process that forked this one, which decides what to show. */
function greet({ banner }: Running): void {
  if (process.send) process.send({ type: 'ready', banner });
  else if (process.stdout.isTTY) process.stdout.write(banner);
}

function fail(error: unknown): void {
  const known = FAULTS.some(fault => error instanceof fault);
  process.stderr.write(`${known ? (error as Error).message : String((error as Error)?.stack ?? error)}\n`);
  process.exit(1);
}
