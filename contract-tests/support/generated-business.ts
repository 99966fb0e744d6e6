import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { randomBytes } from 'node:crypto';
import { base58 } from '@scure/base';
import Database from 'libsql';
import { buildTransfer } from '../../src/rails/solana/build-transfer.js';
import { DEVNET_GENESIS, NETWORKS } from '../../src/rails/solana/networks.js';
import { openLedger } from '../../src/ledger/store.js';
import { accountOf, MINT, newKeyPair } from './refund-chain.js';
import { SeededRandom } from './seeded-random.js';

const { caip2: NETWORK } = NETWORKS.devnet;
/** The network fee of the transfers that `buildTransfer` builds: two signatures, and 60 000 compute units at 0.02 lamports. */
const FEE_LAMPORTS = 11_200n;
const CHUNK = 20_000;

export type Landed = {
  signature: string;
  slot: number;
  /** Seconds since 1970. */
  blockTime: number;
  failed: boolean;
  change: bigint;
  counterparty: string;
};

/**
 * A receiver's transfers on the chain. The chain's totals are computed from these one by one; the ledger has only what
 * a server would have written.
 */
export type Business = {
  payTo: string;
  account: string;
  feePayer: string;
  /** Oldest first. */
  chain: Landed[];
  sales: number;
  refunds: number;
  sold: bigint;
  refunded: bigint;
  withdrawn: bigint;
  given: bigint;
  fees: bigint;
  /** The receiver's balances at the beginning and the end of the month. */
  opening: bigint;
  closing: bigint;
};

type Made = Business & { payments: unknown[][]; repayments: unknown[][] };

/**
 * A month of business: sales at several prices to returning payers; refunds, in full or in part, sent with a
 * key or from a wallet; failed transactions; money that the operator withdraws or deposits; sales before and
 * after the month; and two sales that the ledger dates inside the month and the chain outside, or vice versa.
 */
function make(sales: number, from: number, to: number): Made {
  const random = new SeededRandom(20_261_101);
  let rolls = 0;
  const below = (most: number): number => Math.floor(random.roll((rolls += 1)) * most);
  const [receiver, feePayer] = [newKeyPair(), newKeyPair()];
  const payTo = receiver.address;
  const account = accountOf(payTo);
  const payers = Array.from({ length: 50 }, () => newKeyPair().address);
  const templates = payers.map(payer => evidenceOf(payer, feePayer.address, account));
  const made: Made = {
    ...{ payTo, account, feePayer: feePayer.address, chain: [], sales: 0, refunds: 0, sold: 0n },
    ...{
      refunded: 0n,
      withdrawn: 0n,
      given: 0n,
      fees: 0n,
      opening: 0n,
      closing: 0n,
      payments: [],
      repayments: [],
    },
  };
  let [slot, balance] = [1_000, 0n];
  const land = (at: number, change: bigint, counterparty: string, failed = false): string => {
    const signature = base58.encode(Buffer.concat([Buffer.of(255), randomBytes(63)]));
    if (!failed) balance += change;
    slot += 1;
    made.chain.push({
      ...{ signature, slot, blockTime: Math.floor(at / 1_000), failed, change: failed ? 0n : change },
      counterparty,
    });
    return signature;
  };
  const sell = (
    landedAt: number,
    bookedAt: number,
  ): { id: Buffer; amount: bigint; payer: number; signature: string } => {
    const payer = below(payers.length);
    const amount = [10_000n, 50_000n, 123_457n, 500_000n][below(4)] ?? 0n;
    const [id, signature] = [randomBytes(32), land(landedAt, amount, payers[payer] ?? '')];
    const operation = amount === 500_000n ? 'brandFeedback' : 'summarize';
    // One sale in ten was settled by an external facilitator, which pays its own network fees.
    const isOwn = below(10) > 0;
    const [signed = '', unsigned = ''] = templates[payer] ?? [];
    made.payments.push([
      id,
      operation,
      payers[payer],
      String(amount),
      isOwn ? signed : unsigned,
      signature,
      bookedAt,
    ]);
    if (bookedAt >= from && bookedAt < to) {
      made.sales += 1;
      made.sold += amount;
      if (isOwn) made.fees += FEE_LAMPORTS;
    }
    return { id, amount, payer, signature };
  };
  const refund = (at: number, sale: ReturnType<typeof sell>): void => {
    const amount = below(2) === 0 ? sale.amount : sale.amount / 3n;
    const payer = payers[sale.payer] ?? '';
    const isKey = below(2) === 0;
    const signature = land(at, -amount, payer);
    const evidence = isKey ? signedAs(refundEvidence(payTo, feePayer.address, account), signature) : null;
    const landedAt = Math.floor(at / 1_000) * 1_000;
    made.repayments.push([
      randomBytes(12).toString('hex'),
      sale.id,
      String(amount),
      payer,
      evidence,
      signature,
      landedAt,
      payTo,
    ]);
    made.refunds += 1;
    made.refunded += amount;
    if (isKey) made.fees += FEE_LAMPORTS;
  };
  // Before the month: earlier sales, and transfers that the ledger does not have.
  land(from - 40 * 86_400_000, 7_000_001n, 'somebody');
  for (let n = 0; n < 5; n += 1) sell(from - 20 * 86_400_000 + n, from - 20 * 86_400_000 + n);
  sell(from - 2_000, from + 1_500);
  made.opening = balance;
  const step = (to - from - 3_600_000) / sales;
  for (let n = 0; n < sales; n += 1) {
    const at = from + 1_800_000 + Math.floor(n * step);
    const sale = sell(at, at + 900);
    if (n % 50 === 7) refund(at + 1, sale);
    if (n % 97 === 3) land(at + 1, 1n, 'a stranger', true);
    if (n % 5_000 === 499) {
      made.withdrawn += balance / 2n;
      land(at + 1, -(balance / 2n), 'an exchange');
    }
  }
  made.given += 5n;
  land(to - 60_000, 5n, 'a giver');
  sell(to - 1_000, to + 800);
  made.closing = balance;
  for (let n = 0; n < 5; n += 1) sell(to + 3_600_000 + n, to + 3_600_000 + n);
  return made;
}

/** A payment's evidence as in the ledger: the transaction with the fee payer's signature, and without that signature. */
function evidenceOf(payer: string, feePayer: string, destination: string): [string, string] {
  const unsigned = transferOf({ feePayer, owner: payer, source: accountOf(payer), destination });
  return [signedAs(unsigned, base58.encode(Buffer.alloc(64, 7))), unsigned];
}

function refundEvidence(payTo: string, feePayer: string, source: string): string {
  return transferOf({ feePayer, owner: payTo, source, destination: accountOf(newPayer) });
}

const newPayer = newKeyPair().address;
const someKey = newKeyPair().address;

function transferOf(of: { feePayer: string; owner: string; source: string; destination: string }): string {
  return buildTransfer({
    ...of,
    mint: MINT,
    amount: 1n,
    memo: 'memo',
    reference: someKey,
    blockhash: someKey,
  });
}

function signedAs(transaction: string, signature: string): string {
  const bytes = Buffer.from(transaction, 'base64');
  bytes.set(base58.decode(signature), 1);
  return bytes.toString('base64');
}

/** Writes a month of business into a new SQLite ledger. @returns the transfers on the chain */
export async function generatedBusiness(
  file: string,
  { sales, from, to }: { sales: number; from: number; to: number },
): Promise<Business> {
  const { payments, repayments, ...business } = make(sales, from, to);
  await (await openLedger({ url: `file:${file}`, payTo: business.payTo, network: NETWORK })).close();
  const db = new Database(file);
  db.exec(
    `insert into meta (key, value) values ('pay_to', '${business.payTo}') on conflict (key) do update set value = excluded.value`,
  );
  const pay = db.prepare(`
    insert into payments (id, operation, request_hash, payer, amount, network, x402_version, signed_transaction, flow, state, claim, owner,
      lease_until, caller_until, runs, asks, claim_slot, claim_height, settlement, created_at, settling_at, settled_at, decided_at, written_at)
    values (?, ?, 'hash', ?, ?, '${NETWORK}', 2, ?, 'authorization', 'delivered', 1, 'somebody', 0, 0, 1, 1, 0, 0, ?, ?, ?, ?, ?, ?)`);
  const repay = db.prepare(`
    insert into repayments (id, payment, amount, receiver, way, state, cause, after, created_at, evidence, signature, landed_at, source)
    values (?, ?, ?, ?, 'key', 'done', 'operator', 0, 0, ?, ?, ?, ?)`);
  for (let at = 0; at < payments.length; at += CHUNK) {
    db.exec('begin');
    for (const row of payments.slice(at, at + CHUNK))
      pay.run(...row, ...Array.from({ length: 4 }, () => row.at(-1)));
    db.exec('commit');
  }
  db.exec('begin');
  for (const row of repayments) repay.run(...row);
  db.exec('commit');
  db.close();
  return business;
}

/** A Solana RPC server that has this chain and nothing else. */
export async function chainOf({
  chain,
  account,
  payTo,
}: Business): Promise<{ url: string; close: () => Promise<void> }> {
  let held = 0n;
  const newestFirst = chain.map(each => ({ ...each, after: (held += each.change) })).toReversed();
  const places = new Map(newestFirst.map(({ signature }, index) => [signature, index]));
  const transaction = transferOf({
    feePayer: someKey,
    owner: newPayer,
    source: accountOf(newPayer),
    destination: account,
  });
  const accountIndex = 3;
  type Page = { before?: string; limit?: number };
  const methods: Record<string, (first: string, second: Page) => unknown> = {
    getGenesisHash: () => DEVNET_GENESIS,
    getLatestBlockhash: () => ({
      context: { slot: newestFirst[0]?.slot },
      value: { blockhash: DEVNET_GENESIS, lastValidBlockHeight: 9_150 },
    }),
    getSignaturesForAddress: (address, { before, limit }) => {
      if (address !== account) return [];
      const start = before === undefined ? 0 : (places.get(before) ?? 0) + 1;
      return newestFirst
        .slice(start, start + Number(limit))
        .map(({ signature, slot, blockTime, failed }) => ({
          ...{ signature, slot, blockTime, memo: null, confirmationStatus: 'finalized' },
          err: failed ? { InstructionError: [2, 'Custom'] } : null,
        }));
    },
    getTransaction: signature => {
      const found = newestFirst[places.get(signature) ?? -1];
      if (!found) return null;
      const { slot, blockTime, change, after, counterparty } = found;
      const of = (index: number, owner: string, amount: bigint): object => ({
        ...{ accountIndex: index, mint: MINT, owner },
        uiTokenAmount: { amount: String(amount), decimals: 6, uiAmount: null, uiAmountString: '' },
      });
      const meta = {
        err: null,
        preTokenBalances: [of(accountIndex, payTo, after - change), of(2, counterparty, 10n ** 15n)],
        postTokenBalances: [of(accountIndex, payTo, after), of(2, counterparty, 10n ** 15n - change)],
      };
      return { slot, blockTime, meta, transaction: [transaction, 'base64'], version: 'legacy' };
    },
  };
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', chunk => (text += String(chunk)));
    request.on('end', () => {
      const { id, method, params } = JSON.parse(text) as {
        id: unknown;
        method: string;
        params: [string, object];
      };
      const [first, second = {}] = params;
      const result = methods[method]?.(first, second);
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    });
  });
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise(done => (server.closeAllConnections(), server.close(() => done()))),
  };
}
