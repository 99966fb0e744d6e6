import { expect } from 'chai';
import type { Keypair } from '@solana/web3.js';
import { TestCluster, jsonAnswer, signed, type Sent, type TestServer } from './test-server.js';
import { until } from './faults.js';
import { BRAND, memoryLedgerPlace, TestChain } from './test-chain.js';
import type { LedgerPlace } from './ledger-places.js';

export let testChain: TestChain;
export let payer: Keypair;
let place: LedgerPlace;
export let cluster: TestCluster;
export let testServer: TestServer;
/** The ledger method that currently fails, if any. */
export const ledgerFault: { method: string | undefined } = { method: undefined };
let calls = 0;

export type Bought = {
  id: string;
  text: string;
  payment: ReturnType<typeof signed>['payment'];
  sent: Sent;
  transaction: string;
};

export async function buy(
  from: TestServer = testServer,
  bend: Parameters<typeof signed>[3] & { upfront?: boolean } = {},
): Promise<Bought> {
  const text = `call ${++calls}`;
  const operation = bend.upfront ? { operation: BRAND } : {};
  const made = signed(testChain, from, { payer, text, ...operation }, bend);
  return { ...made, text, sent: await from.send({ payment: made.payment, text, ...operation }) };
}

export const again = (
  bought: Pick<Bought, 'payment' | 'text'>,
  from: TestServer = testServer,
): Promise<Sent> => from.send({ payment: bought.payment, text: bought.text });
export const landed = (id: string, by = payer): number => testChain.landed([by]).get(id) ?? 0;
export const rowOf = async (id: string) => {
  const row = await testServer.reader.find(id);
  if (!row) throw new Error('no such row');
  return row;
};
export const stateBecomes = (id: string, state: string, ms?: number): Promise<void> =>
  until(`${id.slice(0, 8)} is ${state}`, async () => (await testServer.reader.find(id))?.state === state, ms);

export function expectPending(sent: Sent): void {
  expect(sent, JSON.stringify(sent)).to.include({ kind: 'unavailable' });
  expect((sent as Sent & { kind: 'unavailable' }).receipt).to.include({ errorReason: 'settlement_pending' });
}

export function answerOf(sent: Sent): string {
  if (!('answer' in sent)) throw new Error(`no answer: ${JSON.stringify(sent)}`);
  expect(sent.answer.status, sent.answer.body.toString()).to.equal(200);
  return sent.answer.body.toString();
}

/** Lands a payment without the server's knowledge, as a facilitator whose answer is lost does. */
export async function land(transaction: string): Promise<void> {
  const { facilitator } = testChain.sandbox;
  const { feePayer, network, usdcMint: asset, payTo } = testChain.sandbox.info;
  const requirements = {
    scheme: 'exact',
    network,
    amount: '10000',
    asset,
    payTo,
    maxTimeoutSeconds: 60,
    extra: { feePayer },
  };
  const paymentPayload = { x402Version: 2, payload: { transaction }, accepted: requirements };
  const response = await fetch(`${facilitator.url}/settle`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements: requirements }),
  });
  expect(await response.json()).to.include({ success: true });
}

/** Checks that a new payment for the same call gets the answer of the first one, and that only the first one lands. */
export async function expectNextAttaches(first: string, text: string): Promise<void> {
  const second = signed(testChain, testServer, { payer, text });
  await until('it is decided', async () => {
    const sent = await testServer.send({ payment: second.payment, text });
    return sent.kind === 'sold';
  });
  expect([landed(first), landed(second.id)]).to.deep.equal([1, 0]);
  expect(await rowOf(second.id)).to.include({ aliasOf: first });
}

/** Adds a server to the cluster; `buy` uses it from now on. */
export async function openServer(parts: Parameters<TestCluster['testServer']>[0] = {}): Promise<void> {
  testServer = await cluster.testServer(parts);
}

/** Gives the tests of a suite one chain to share, and each test a ledger and a server of its own. */
export function allOnOneStage(): void {
  before(async () => {
    testChain = await TestChain.open(14);
    [payer] = (await testChain.payers(1)) as [Keypair];
  });
  after(() => testChain.close());
  beforeEach(async () => {
    place = await memoryLedgerPlace();
    cluster = await TestCluster.open(testChain, place.url);
    let runs = 0;
    ledgerFault.method = undefined;
    await openServer({
      work: async () => jsonAnswer({ summary: `run ${++runs}` }),
      faults: method => (method === ledgerFault.method ? 'fail' : undefined),
    });
  });
  afterEach(async () => {
    await cluster.close();
    await place.remove();
  });
}
