import { join } from 'node:path';
import { readConfig, type Config } from '../../src/config.js';
import { openLedgerReader, type LedgerReports, type LedgerReader } from '../../src/ledger/store.js';
import { compose } from '../../src/compose.js';
import { BRAND_PATH, PANEL_TOKEN, signBrand, type BrandPayment } from './respondent.js';
import { openWorld, post, type Answer, type World } from './world.js';

export type Body = { brand: string; question: string; n?: number };
export type Feedback = {
  brand: string;
  question: string;
  n: number;
  responses: { text: string; sentiment: string }[];
  aggregate: { positive: number; neutral: number; negative: number; summary: string };
  mock?: boolean;
};
/** Another server on the same chain, with a ledger of its own. */
export type BrandServer = { url: string; reader: LedgerReader & LedgerReports; stop(): Promise<void> };
export const SAME_PAYMENT = /paid.*in progress.*send the same payment again/i;

let asked = 0;
/** Every question is different, because a new payment for the same call would redeem an earlier one that has no answer yet. */
export const aBody = (n?: number): Body => ({
  brand: 'Harbour Coffee',
  question: `What do you think of cup number ${++asked}?`,
  ...(n === undefined ? {} : { n }),
});

export const feedbackOf = (answer: Answer): Feedback => answer.json() as Feedback;
export const errorOf = (answer: Answer): string => String(answer.json()['error']);
export const fileUrl = (path: string): string => `file:${path}`;

export let world: World;

const testServers: BrandServer[] = [];

export async function openServer(
  name: string,
  env: Record<string, string>,
  config: Partial<Config> = {},
): Promise<BrandServer> {
  const stateDir = join(world.stateDir, name);
  const environment = { ...world.env, PEOPLE: 'panel', PANEL_TOKEN, STATE_DIR: stateDir, ...env };
  const running = await compose({ ...readConfig(environment), ...config });
  const reader = await openLedgerReader({ url: fileUrl(join(stateDir, 'ledger.db')) });
  const testServer: BrandServer = {
    url: running.url,
    reader,
    stop: async () => {
      await reader.close();
      await running.stop();
    },
  };
  testServers.push(testServer);
  return testServer;
}

export const sign = (testServer: { url: string }, extensions?: object): Promise<BrandPayment> =>
  signBrand(testServer.url, world.buyer, extensions);

export const send = (
  testServer: { url: string },
  payment: BrandPayment,
  body: unknown,
  wait?: number,
): Promise<Answer> =>
  post(testServer.url + BRAND_PATH, body, {
    ...payment.headers,
    ...(wait === undefined ? {} : { Prefer: `wait=${wait}` }),
  });

/** Gives the tests of a suite a chain and a server to share, and stops the other servers that the tests started. */
export function allInOneWorld(chain: { slotMs?: number } = {}): void {
  before(async () => {
    world = await openWorld({}, chain);
  });
  after(async () => {
    for (const testServer of testServers.splice(0)) await testServer.stop();
    await world.close();
  });
}
