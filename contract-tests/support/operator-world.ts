import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createAdminServer } from '../../src/admin/admin-server.js';
import { createOperatorPage } from '../../src/admin/operator-page.js';
import type { OperatorParts } from '../../src/admin/operator-sources.js';
import { orderReplies } from '../../handlers/brand-feedback/order-replies.js';
import type { ReplyStore } from '../../handlers/brand-feedback/replies.js';
import { openReplies } from './brand-replies.js';
import { askRefund, cancelRefund, linkOf } from '../../src/operator/ask-refund.js';
import { explorerOf } from '../../src/rails/solana/explorer.js';
import { NETWORKS } from '../../src/rails/solana/networks.js';
import { openLedger, type Ledger } from '../../src/ledger/store.js';
import { paymentIn, sqlitePlace, type LedgerPlace, forServer } from './ledger-places.js';
import { OWNER } from './ledgers.js';

export const OPERATOR_TOKEN = 'a-token-that-nobody-guesses';
const DAY_MS = 86_400_000;
const PAYER = '7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU';

/** The admin listener and its operator page over a real ledger whose clock the test sets. */
export type OperatorWorld = {
  url: string;
  ledger: Ledger;
  replies: ReplyStore;
  clock: { now: number };
  /** The actions that the page requested. */
  asked: { refunds: [string, string][]; retries: string[] };
  /** Whether the page is told that its retry of an order started an attempt. */
  startsAttempts: boolean;
  logged: string[];
  close(): Promise<void>;
};

export async function openOperatorWorld(overrides: Partial<OperatorParts> = {}): Promise<OperatorWorld> {
  const clock = { now: Date.UTC(2026, 5, 30, 15, 20) };
  const place: LedgerPlace = await sqlitePlace();
  const ledger = await openLedger({
    ...{ ...forServer(place.url), ...OWNER, network: NETWORKS.devnet.caip2 },
    now: () => clock.now,
  });
  const replies = await openReplies(ledger);
  const asked: OperatorWorld['asked'] = { refunds: [], retries: [] };
  const logged: string[] = [];
  const say = (_: object, message: string): void => void logged.push(message);
  const log = { info: say, warn: say, error: say };
  const ending = new AbortController();
  const { server, serve } = createAdminServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const page = createOperatorPage({
    ledger,
    shop: 'Coinslot',
    sections: { brandFeedback: orderReplies(replies) },
    network: 'sandbox',
    payTo: '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM',
    publicUrl: 'https://pay.example',
    health: () => ({
      status: 'degraded',
      version: '1.4.0',
      uptimeSeconds: 93_600,
      upstreams: {
        summarizer: {
          status: 'degraded',
          latencyMs: 31,
          detail: 'the last 2 calls failed: no answer within 20 s',
        },
        solana: { status: 'ok', latencyMs: 12, detail: '2 of 2 RPC servers' },
        speech: { status: 'ok', latencyMs: 4 },
        ledger: { status: 'ok', latencyMs: 1 },
      },
    }),
    facilitators: () => [
      {
        name: 'facilitator.payai.network',
        status: 'ok',
        latencyMs: 84,
        restSeconds: undefined,
        detail: 'ok',
      },
      {
        name: 'backup.facilitator.example',
        status: 'down',
        latencyMs: undefined,
        restSeconds: 4,
        detail: 'down since 2026-06-30T15:18:02.000Z: the connection was refused',
      },
    ],
    listings: async () => [
      {
        facilitator: 'facilitator.payai.network',
        operation: 'summarize',
        transport: 'http',
        status: 'rejected',
        why: 'info failed schema validation',
        at: clock.now - 120_000,
      },
    ],
    counted: () => ({
      since: clock.now - 3_600_000,
      operations: [
        { operation: 'summarize', unpaid: 200, sold: 12, own: 2, refusals: [['funds', 3]] },
        { operation: 'textToSpeech', unpaid: 0, sold: 0, own: 0, refusals: [] },
      ],
    }),
    canary: async () => [],
    ownWallets: new Set<string>(),
    breakers: () => [{ name: 'summarizer', open: true }],
    refund: async (id, tx) => void asked.refunds.push([id, tx]),
    askRefund: (id, asked) => askRefund(ledger, id, asked),
    cancelRefund: id => cancelRefund(ledger, id),
    refundLink: async refund => linkOf(refund, await ledger.identity()),
    explorer: explorerOf('solscan', 'devnet'),
    retry: async ({ id }) => asked.retries.push(id) > 0 && world.startsAttempts,
    signal: ending.signal,
    now: () => clock.now,
    log,
    token: OPERATOR_TOKEN,
    url,
    ...overrides,
  });
  serve({ routes: [], page, opens: token => token === OPERATOR_TOKEN, host: '127.0.0.1', log });
  const world: OperatorWorld = {
    url,
    ledger,
    replies,
    clock,
    asked,
    startsAttempts: true,
    logged,
    close: async () => {
      ending.abort();
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
      await ledger.close();
      await place.remove();
    },
  };
  return world;
}

/** Sells `sales` answers of an operation, `daysAgo` days ago, for `price` atomic units each. @returns their ids */
export async function sell(
  { ledger, clock }: OperatorWorld,
  { daysAgo = 0, sales = 1, operation = 'summarize', price = 10_000n },
): Promise<string[]> {
  const { now } = clock;
  clock.now -= daysAgo * DAY_MS;
  const ids: string[] = [];
  for (let n = 0; n < sales; n += 1) {
    clock.now += 7;
    ids.push(await paymentIn(ledger, 'delivered', { operation, amount: price, payer: PAYER }));
  }
  clock.now = now;
  return ids;
}

/** A settled payment for replies from respondents. `failed`: its last attempt ended without an answer. */
export async function owe({ ledger, clock }: OperatorWorld, failed: boolean): Promise<string> {
  const payment = await paymentIn(ledger, 'owed', { payer: PAYER, settlement: '5'.repeat(88) });
  const order = {
    payment,
    request: '{"brand":"Acme","question":"Any good?"}',
    wanted: 5,
    deadline: clock.now + 20 * 60_000,
  };
  await ledger.openOrder(order);
  if (failed) await ledger.finishOrder(payment);
  return payment;
}

export async function leaveUnresolved({ ledger }: OperatorWorld): Promise<string> {
  return paymentIn(ledger, 'settling', { operation: 'summarize', payer: PAYER, amount: 10_000n });
}

/** A month of sales, with an example of everything that the page shows. */
export async function fillMonth(
  world: OperatorWorld,
): Promise<{ failed: string; open: string; unresolved: string }> {
  for (let daysAgo = 29; daysAgo >= 0; daysAgo -= 1) {
    const sales = daysAgo % 7 === 3 ? 0 : 2 + ((daysAgo * 5) % 9);
    await sell(world, { daysAgo, sales });
    await sell(world, { daysAgo, sales: daysAgo % 3, operation: 'textToSpeech', price: 50_000n });
    if (daysAgo % 4 === 0) await sell(world, { daysAgo, operation: 'brandFeedback', price: 500_000n });
  }
  const failed = await owe(world, true);
  const open = await owe(world, false);
  const unresolved = await leaveUnresolved(world);
  world.clock.now += 3 * 60_000;
  return { failed, open, unresolved };
}
