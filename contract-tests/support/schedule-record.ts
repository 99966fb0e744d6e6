import type { Keypair } from '@solana/web3.js';
import type { PricedOperation } from '../../src/contract/contract.js';
import type { Payment as Row } from '../../src/ledger/store.js';
import type { Sent, TestServer } from './test-server.js';

/** One signature of a purchase. `amount` is in atomic units; `pending`: the buyer was told that it is not settled yet. */
export type Attempt = { id: string; header: string; landedHeader: string; amount: bigint; pending: boolean };

/** A link to an answer, and whether its response had a receipt: for a payment that was made, or for one that may have been. */
type GivenLink = { link: string; receipt: boolean };

/** One purchase that a buyer wants to make, and what happened. */
export type Record = {
  n: number;
  payer: Keypair;
  text: string;
  operation: PricedOperation;
  /** The payment-identifier that the buyer sends with each signature of this purchase, if any. */
  identifier: string | undefined;
  /** Whether the purchase's calls go over HTTP and MCP rather than directly to the charge. */
  overDoors: boolean;
  links: GivenLink[];
  attempts: Attempt[];
  sends: number;
  bodies: Set<string>;
  refusals: string[];
  /** How many runs were lost because the ledger failed, the buyer hung up or the server sent it away; each allows one more run. */
  failures: number;
  last?: Sent | typeof GIVEN_UP;
  /** What the buyer did, in order, for the error message. */
  trace: string[];
};

/** The buyer hung up without an answer. */
export const GIVEN_UP = { kind: 'given up' } as const;

/** The row of a payment, or of the payment whose answer it redeems. */
export async function targetOf(reader: TestServer['reader'], id: string): Promise<Row | undefined> {
  const row = await reader.find(id).catch(() => undefined);
  return row?.aliasOf ? reader.find(row.aliasOf).catch(() => undefined) : row;
}

/** Describes a purchase by its rows and by what its buyer did. */
export async function storyOf(reader: TestServer['reader'], { attempts, trace }: Record): Promise<string> {
  const rows = await Promise.all(attempts.map(({ id }) => reader.find(id)));
  const told = rows.map((row, n) => [
    attempts[n]!.id.slice(0, 8),
    attempts[n]!.pending ? 'pending' : '',
    row && [
      row.state,
      row.aliasOf?.slice(0, 8),
      `asks ${row.asks}`,
      `callers ${row.callers} until ${row.callerUntil}`,
      `created ${row.createdAt}`,
      `settling ${row.settlingAt}`,
      `settled ${row.settledAt}`,
      `written to ${row.writtenTo} at ${row.writtenAt}`,
    ],
  ]);
  return `${JSON.stringify(told)}\n    ${trace.join('\n    ')}`;
}
