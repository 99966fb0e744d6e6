import { VersionedTransaction } from '@solana/web3.js';
import { LedgerFault } from '../../src/ledger/fault.js';
import { EXPIRED_AFTER_BLOCKS } from '../../src/rails/solana/blocks.js';
import type { Ledger } from '../../src/ledger/store.js';
import type { FacilitatorChain } from '../../src/facilitators/embedded-facilitator.js';
import type { Intervention } from './proxy.js';
import { sha256, type TestChain } from './test-chain.js';

/** What goes wrong in one call to the ledger. With `kill…`, the whole server dies there, as a killed process would. */
export type LedgerFaultKind = 'fail' | 'failAfter' | 'stall' | 'killBefore' | 'killAfter';
export type LedgerFaults = (method: string, id: string | undefined) => LedgerFaultKind | undefined;

export function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms));
}

const never = (): Promise<never> => new Promise(() => {});

/** Once its server is dead, no pending call returns and no new one begins. */
export function mortal<T extends object>(part: T, state: { dead: boolean }): T {
  return wrapped(part, (_name, run) => async () => {
    if (state.dead) return never();
    try {
      const result = await run();
      return state.dead ? never() : result;
    } catch (error) {
      if (state.dead) return never();
      throw error;
    }
  });
}

export function withFaults<T extends Ledger | FacilitatorChain>(
  part: T,
  faults: LedgerFaults,
  kill: () => void,
  state: { dead: boolean },
): T {
  return wrapped<T>(part, (name, run, [id]) => async () => {
    const fault = state.dead ? undefined : faults(name, idOf(id));
    if (fault === 'killBefore') kill();
    if (fault === 'killBefore') return never();
    if (fault === 'fail') throw new LedgerFault('failed', 'The disk said no.');
    if (fault === 'stall') await pause(300);
    const result = await run();
    if (fault === 'killAfter') kill();
    if (fault === 'failAfter') throw new LedgerFault('unknown', 'The connection was lost during COMMIT.');
    return result;
  });
}

function idOf(argument: unknown): string | undefined {
  if (typeof argument === 'string') return argument;
  return typeof argument === 'object' && argument !== null && 'id' in argument
    ? String(argument.id)
    : undefined;
}

type Wrapping = (name: string, run: () => Promise<unknown>, args: unknown[]) => () => Promise<unknown>;

function wrapped<T extends object>(part: T, wrap: Wrapping): T {
  return new Proxy(part, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      const method = member as (...args: unknown[]) => Promise<unknown>;
      return (...args: unknown[]) => wrap(String(name), () => method.apply(target, args), args)();
    },
  });
}

/** The id of the payment in the body of a /settle or /verify request. */
export function askedFor(body: Buffer): string {
  const ask = JSON.parse(body.toString()) as { paymentPayload: { payload: { transaction: string } } };
  const wire = Buffer.from(ask.paymentPayload.payload.transaction, 'base64');
  return sha256(VersionedTransaction.deserialize(wire).message.serialize());
}

export type SettleFault =
  | 'none'
  | 'slow'
  | 'dropAfter'
  | 'dropBefore'
  | 'errorAfter'
  | 'errorBefore'
  | 'twice'
  | 'duplicate'
  | 'simulationFailed'
  | 'sendThrew'
  | 'garbled'
  | 'tooMany'
  | 'tooManyAfter'
  | 'lie';

const refusal = (errorReason: string): string =>
  JSON.stringify({ success: false, errorReason, transaction: '', network: '' });

/** A facilitator that misbehaves during a settlement. `tooMany` answers 429 with a wait of one second. */
export function settleFault(kind: SettleFault): Intervention {
  return async ({ forward, respond, drop }) => {
    if (kind === 'dropBefore') return drop();
    if (kind === 'errorBefore') return respond(500, '{"error":"internal"}');
    const tooMany = (): void => respond(429, '{"error":"slow down"}', { 'retry-after': '1' });
    if (kind === 'tooMany') return tooMany();
    if (kind === 'lie') {
      const transaction = '5'.repeat(88);
      return respond(200, JSON.stringify({ success: true, transaction, network: 'n', payer: 'p' }));
    }
    if (kind === 'slow') await pause(400);
    let answer = await forward();
    if (kind === 'dropAfter') return drop();
    if (kind === 'tooManyAfter') return tooMany();
    if (kind === 'errorAfter') return respond(502, '<html>Bad gateway</html>');
    if (kind === 'garbled') return respond(200, answer.body.subarray(0, 10));
    if (kind === 'duplicate') return respond(200, refusal('duplicate_settlement'));
    if (kind === 'simulationFailed')
      return respond(200, refusal('invalid_exact_svm_transaction_simulation_failed'));
    if (kind === 'sendThrew') return respond(200, refusal('invalid_exact_svm_transaction_failed'));
    if (kind === 'twice') answer = await forward();
    respond(answer.status, answer.body);
  };
}

export type RpcFault = 'none' | 'slow' | 'dropAfter' | 'error' | 'lag' | 'noRow' | 'lost';

type RpcResult = { result?: unknown; error?: unknown };
type Latest = { context: { slot: number }; value: { lastValidBlockHeight: number } };

/**
 * How many slots a lagging server is behind: enough that it does not yet show a payment whose blockhash has already
 * expired by height.
 */
const LAG = EXPIRED_AFTER_BLOCKS + 200;

/**
 * An RPC server that misbehaves in one call. `lag`: it is `LAG` slots behind; `noRow`: it has no record of a
 * transaction; `lost`: it accepts a transaction and loses it before it lands.
 */
export function rpcFault(kind: RpcFault, testChain: TestChain): Intervention {
  return async ({ method, body, forward, respond, drop }) => {
    if (kind === 'error') return respond(500, '{}');
    if (kind === 'slow') await pause(100);
    if (kind === 'lost' && method === 'sendTransaction')
      return respond(200, `{"jsonrpc":"2.0","id":1,"result":"${'1'.repeat(88)}"}`);
    const answer = await forward();
    if (kind === 'dropAfter') return drop();
    if (kind === 'noRow' && method === 'getTransaction')
      return respond(200, '{"jsonrpc":"2.0","id":"1","result":null}');
    if (kind !== 'lag') return respond(answer.status, answer.body);
    const { params } = JSON.parse(body.toString()) as { params?: unknown[] };
    const json = JSON.parse(answer.body.toString()) as RpcResult;
    lagged(method, params ?? [], json, testChain.sandbox.chain.slot('processed') - LAG);
    respond(200, JSON.stringify(json));
  };
}

function lagged(method: string | undefined, params: unknown[], json: RpcResult, newest: number): void {
  const { minContextSlot } = (params[1] ?? {}) as { minContextSlot?: number };
  if (minContextSlot !== undefined && minContextSlot > newest - 32) {
    delete json.result;
    json.error = { code: -32016, message: 'Minimum context slot has not been reached' };
  } else if (method === 'getLatestBlockhash') {
    const latest = json.result as Latest;
    latest.context.slot -= LAG;
    latest.value.lastValidBlockHeight -= LAG;
  } else if (method === 'getBlockHeight') json.result = (json.result as number) - LAG;
  else if (method === 'getSignaturesForAddress') {
    json.result = (json.result as { slot: number }[]).filter(({ slot }) => slot <= newest);
  } else if (method === 'isBlockhashValid') {
    (json.result as { value: boolean }).value = false;
  } else if (method === 'getSignatureStatuses') {
    const result = json.result as { value: ({ slot: number } | null)[] };
    result.value = result.value.map(status => (status && status.slot > newest ? null : status));
  } else if (method === 'getTransaction' && json.result && (json.result as { slot: number }).slot > newest) {
    json.result = null;
  }
}

/** Waits for a promise. After `ms`, throws an error that says what it waited for. */
export async function within<T>(ms: number, what: string, waited: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${ms} ms in vain for ${what}`)), ms);
  });
  try {
    return await Promise.race([waited, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until a condition holds. After `ms`, throws an error that says what it waited for. */
export async function until(what: string, so: () => Promise<boolean> | boolean, ms = 20_000): Promise<void> {
  for (const end = Date.now() + ms; !(await so()); await pause(50)) {
    if (Date.now() > end) throw new Error(`waited ${ms} ms in vain until ${what}`);
  }
}
