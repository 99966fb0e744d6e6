import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Keypair } from '@solana/web3.js';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { expect } from 'chai';
import fc from 'fast-check';
import { sourceAccountOf } from '../../../src/rails/solana/transaction.js';
import { craftPayment, DEVNET, DEVNET_USDC, type Recipe } from '../../support/craft.js';
import { rightPayments } from '../../support/payment-table.js';
import {
  BLOCKHASH,
  EXPECTED,
  FEE_PAYER,
  GOOD,
  PAYER,
  PAY_TO,
  accept,
  checker,
  craft,
  memo,
  stranger,
} from '../../support/bent-transactions.js';

describe('transaction: a payment of our price is accepted', () => {
  for (const [name, bend] of rightPayments(PAYER)) {
    it(name, async () => {
      const payment = craftPayment({ ...GOOD, ...bend });
      const checked = await accept(payment.transaction);
      expect(checked.payer).to.equal(PAYER.publicKey.toBase58());
      expect(checked.feePayer).to.equal(FEE_PAYER);
      expect(checked.evidence).to.equal(payment.transaction);
    });
  }

  it('returns the token account that the money leaves', async () => {
    const source = stranger();
    expect(sourceAccountOf((await accept(craft({ source }))).evidence)).to.equal(source.toBase58());
  });
});

describe('transaction: identity', () => {
  it('does not depend on the fee payer’s signature, which is left empty in the transaction that the server passes on', async () => {
    const clean = craftPayment(GOOD);
    const dirty = Buffer.from(clean.bytes);
    dirty.fill(0xab, 1, 65);
    const [one, other] = [await accept(clean.transaction), await accept(dirty.toString('base64'))];
    expect(other).to.deep.equal(one);
    expect(other.evidence).to.equal(clean.transaction);
  });

  it('is the same for the same message, signed again', async () => {
    const recipe = { ...GOOD, memo: 'same', blockhash: BLOCKHASH };
    const [one, other] = [
      await accept(craftPayment(recipe).transaction),
      await accept(craftPayment(recipe).transaction),
    ];
    expect(other.id).to.equal(one.id);
  });

  it('depends on every part of the message', async () => {
    const base = { memo: 'same', blockhash: BLOCKHASH };
    const variants: Recipe[] = [
      base,
      { ...base, memo: 'other' },
      { ...base, memo: null },
      { ...base, blockhash: stranger().toBase58() },
      { ...base, payer: Keypair.generate() },
      { ...base, feePayer: stranger().toBase58() },
      { ...base, version: 'legacy' },
      { ...base, computePrice: 2n },
      { ...base, computeLimit: 20_001 },
      { ...base, source: stranger() },
      { ...base, extra: [memo()] },
    ];
    const checked = await Promise.all(variants.map(variant => accept(craft(variant))));
    const ids = checked.map(({ id }) => id);
    expect(new Set(ids).size).to.equal(variants.length);
    for (const id of ids) expect(id).to.match(/^[0-9a-f]{64}$/);
  });
});

describe('transaction: hostile bytes never throw', () => {
  it('random bytes and texts', async () => {
    const input = fc.oneof(
      fc.uint8Array({ maxLength: 1400 }).map(bytes => Buffer.from(bytes).toString('base64')),
      fc.string({ maxLength: 300 }),
    );
    await fc.assert(
      fc.asyncProperty(input, async text => !(await checker.check(text, EXPECTED)).ok),
      { numRuns: 400 },
    );
  });

  it('mutations of a valid payment: refused, or the very same payment', async () => {
    for (const version of [0, 'legacy'] as const) {
      const { bytes } = craftPayment({ ...GOOD, version });
      const { id } = await accept(bytes.toString('base64'));
      const mutation = fc.tuple(
        fc.nat(bytes.length - 1),
        fc.integer({ min: 1, max: 255 }),
        fc.constantFrom('flip', 'cut', 'insert'),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(mutation, { minLength: 1, maxLength: 3 }), async mutations => {
          let mutant = Buffer.from(bytes);
          for (const [at, value, kind] of mutations) {
            if (kind === 'flip') mutant[at % mutant.length] = (mutant[at % mutant.length] ?? 0) ^ value;
            if (kind === 'cut') mutant = Buffer.concat([mutant.subarray(0, at), mutant.subarray(at + 1)]);
            if (kind === 'insert')
              mutant = Buffer.concat([mutant.subarray(0, at), Buffer.of(value), mutant.subarray(at)]);
          }
          const result = await checker.check(mutant.toString('base64'), EXPECTED);
          return !result.ok || result.checked.id === id;
        }),
        { numRuns: 300 },
      );
    }
  });
});

describe('transaction: the official client', () => {
  let server: Server;
  let rpcUrl: string;

  before(async () => {
    // A mint account of 82 bytes: decimals at 44, initialised at 45.
    const mint = Buffer.alloc(82);
    mint[44] = 6;
    mint[45] = 1;
    server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { id, method } = JSON.parse(Buffer.concat(chunks).toString()) as {
          id: unknown;
          method: string;
        };
        const value = {
          data: [mint.toString('base64'), 'base64'],
          executable: false,
          lamports: 1,
          owner: 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
          rentEpoch: 0,
          space: 82,
        };
        const known = method === 'getAccountInfo';
        const reply = known
          ? { result: { context: { slot: 1 }, value } }
          : { error: { code: -32601, message: method } };
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ jsonrpc: '2.0', id, ...reply }));
      });
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    rpcUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  after(() => {
    server.close();
    server.closeAllConnections();
  });

  it('signs a payment that the server accepts', async () => {
    const signer = await createKeyPairSignerFromBytes(PAYER.secretKey);
    const client = new ExactSvmScheme(signer, { rpcUrl });
    const { payload } = await client.createPaymentPayload(2, {
      scheme: 'exact',
      network: DEVNET,
      amount: '10000',
      asset: DEVNET_USDC,
      payTo: PAY_TO,
      maxTimeoutSeconds: 60,
      extra: { feePayer: FEE_PAYER, recentBlockhash: BLOCKHASH },
    });
    const checked = await accept((payload as { transaction: string }).transaction);
    expect(checked.payer).to.equal(PAYER.publicKey.toBase58());
    expect(checked.feePayer).to.equal(FEE_PAYER);
  });
});
