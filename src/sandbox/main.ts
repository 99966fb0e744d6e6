import { messageOf } from '../ledger/fault.js';
import '../rails/solana/silence-bigint-warning.js';
import type { SandboxInfo } from '../config/sandbox-file.js';
import { startSandbox, type Sandbox, type SandboxOptions } from './start.js';

const CLOSE_WAIT_MS = 3000;

/** The one message from a sandbox to the process that started it: its URLs, or why it could not start. */
export type SandboxMessage = { type: 'ready'; sandbox: SandboxInfo } | { type: 'failed'; error: string };

function readEnvironment(env: NodeJS.ProcessEnv): SandboxOptions {
  const number = (name: string, fallback: number, least: number, most: number): number => {
    const text = env[name] ?? '';
    const value = text === '' ? fallback : Number(text);
    if (Number.isInteger(value) && value >= least && value <= most) return value;
    throw new Error(`${name} is '${text}': it must be a whole number from ${least} to ${most}.`);
  };
  return {
    stateDir: env['STATE_DIR'] || '.coinslot',
    host: env['HOST'] || '127.0.0.1',
    rpcPort: number('SANDBOX_RPC_PORT', 8899, 0, 65_535),
    facilitatorPort: number('SANDBOX_FACILITATOR_PORT', 8403, 0, 65_535),
    slotMs: number('SANDBOX_SLOT_MS', 400, 1, 60_000),
    publicUrl: env['PUBLIC_URL'] || 'http://127.0.0.1:8402',
    parent: process.send ? process.ppid : null,
    log: env['LOG_LEVEL'] === 'debug' ? line => process.stderr.write(`${line}\n`) : () => undefined,
  };
}

function report(message: SandboxMessage): void {
  if (process.send) process.send(message, () => message.type === 'failed' && process.disconnect());
  else if (message.type === 'failed') process.stderr.write(`${message.error}\n`);
  else process.stdout.write(`${describe(message.sandbox)}\n`);
}

function describe(info: SandboxInfo): string {
  const { example, classic, noAuthorities, token2022, untraded, uninitialised, doubtful, frozenForEver } =
    info.mints;
  return [
    `Solana RPC      ${info.rpcUrl}`,
    `x402 facilitator ${info.facilitatorUrl}`,
    `network         ${info.network} (${info.v1Network})`,
    `USDC mint       ${info.usdcMint}`,
    `pay to          ${info.payTo}`,
    `fee payer       ${info.feePayer}`,
    `buyer           ${info.buyer} (key in buyer.json)`,
    `sample mints    example ${example}`,
    `                classic ${classic}`,
    `                noAuthorities ${noAuthorities}`,
    `                token2022 ${token2022}`,
    `                untraded ${untraded}`,
    `                uninitialised ${uninitialised}`,
    `                doubtful ${doubtful}`,
    `                frozenForEver ${frozenForEver}`,
  ].join('\n');
}

let sandbox: Sandbox | null = null;

/** Ends the process after closing, but after three seconds at the latest. Landed transactions are never lost. */
function stop(): void {
  setTimeout(() => process.exit(), CLOSE_WAIT_MS).unref();
  void (sandbox?.close() ?? Promise.resolve()).finally(() => process.exit());
}

process.once('disconnect', stop);
process.once('SIGTERM', stop);
// A terminal sends Ctrl-C to parent and child, but the parent needs the chain while it shuts down.
process.on('SIGINT', process.send ? () => undefined : stop);

try {
  sandbox = await startSandbox(readEnvironment(process.env));
  report({ type: 'ready', sandbox: sandbox.info });
} catch (error) {
  process.exitCode = 1;
  report({ type: 'failed', error: messageOf(error) });
}
