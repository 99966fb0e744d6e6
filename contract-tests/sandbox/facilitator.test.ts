import { createHash } from 'node:crypto';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { AddressLookupTableAccount, Keypair, PublicKey, VersionedTransaction } from '@solana/web3.js';
import type { PaymentRequirements } from '@x402/core/types';
import { ExactSvmSchemeV1 } from '@x402/svm/exact/v1/client';
import { expect } from 'chai';
import { craftPayment, type Recipe } from '../support/craft.js';
import {
  buyer,
  connection,
  facilitate,
  offer,
  pay,
  sandbox,
  type Json,
  usdcOf,
  allInOneSandbox,
} from '../support/one-sandbox.js';

describe('the local Solana', () => {
  allInOneSandbox();

  it('lets the official v2 client pay through the official facilitator, exact to the atomic unit', async () => {
    const before = [await usdcOf(sandbox.info.buyer), await usdcOf(sandbox.info.payTo)] as const;
    const payment = await pay(offer());
    expect((await facilitate('/verify', payment)).answer).to.include({
      isValid: true,
      payer: sandbox.info.buyer,
    });
    const { status, answer } = await facilitate('/settle', payment);
    expect(status).to.equal(200);
    expect(answer).to.include({ success: true, payer: sandbox.info.buyer, network: sandbox.info.network });
    expect(await usdcOf(sandbox.info.buyer)).to.equal(before[0] - 10000n);
    expect(await usdcOf(sandbox.info.payTo)).to.equal(before[1] + 10000n);
    const landed = await connection.getTransaction(answer['transaction'], {
      maxSupportedTransactionVersion: 0,
    });
    const sent = VersionedTransaction.deserialize(
      Buffer.from(payment['paymentPayload'].payload.transaction, 'base64'),
    );
    const hash = (message: { serialize(): Uint8Array }): string =>
      createHash('sha256').update(message.serialize()).digest('hex');
    expect(hash(landed!.transaction.message)).to.equal(hash(sent.message));
    // The reported fee equals the charged fee.
    expect(landed!.meta!.preBalances[0]! - landed!.meta!.postBalances[0]!).to.equal(landed!.meta!.fee);
  });

  it('lets the official v1 client pay', async () => {
    const before = await usdcOf(sandbox.info.payTo);
    const { amount, ...rest } = offer();
    const requirements = {
      ...rest,
      network: sandbox.info.v1Network,
      maxAmountRequired: amount,
      resource: 'http://127.0.0.1:8402/x',
      description: 'a test',
      mimeType: 'application/json',
    } as unknown as PaymentRequirements;
    const signer = await createKeyPairSignerFromBytes(buyer.secretKey);
    const scheme = new ExactSvmSchemeV1(signer, { rpcUrl: sandbox.rpc.url });
    const paymentPayload = await scheme.createPaymentPayload(1, requirements);
    const payment = { x402Version: 1, paymentPayload, paymentRequirements: requirements };
    expect((await facilitate('/verify', payment)).answer).to.include({ isValid: true });
    expect((await facilitate('/settle', payment)).answer).to.include({ success: true });
    expect(await usdcOf(sandbox.info.payTo)).to.equal(before + 10000n);
  });

  it('advertises both versions with the fee payer', async () => {
    const supported = (await (await fetch(`${sandbox.facilitator.url}/supported`)).json()) as Json;
    const { network, v1Network, feePayer } = sandbox.info;
    expect(supported['kinds']).to.deep.include.members([
      { x402Version: 2, scheme: 'exact', network, extra: { feePayer } },
      { x402Version: 1, scheme: 'exact', network: v1Network, extra: { feePayer } },
    ]);
  });

  it('moves the money once when one payment is settled many times at once', async () => {
    const before = await usdcOf(sandbox.info.payTo);
    const payment = await pay(offer());
    const answers = await Promise.all(Array.from({ length: 8 }, () => facilitate('/settle', payment)));
    expect(answers.filter(({ answer }) => answer['success'])).to.have.length(1);
    expect(await usdcOf(sandbox.info.payTo)).to.equal(before + 10000n);
  });

  it('refuses a blockhash that it never gave out, already at verify', async () => {
    const unknown = Keypair.generate().publicKey.toBase58();
    const { answer } = await facilitate('/verify', await pay(offer({ recentBlockhash: unknown })));
    expect(answer['isValid']).to.equal(false);
    expect(answer['invalidMessage']).to.contain('BlockhashNotFound');
  });

  it('pays only small fees: verify and settle refuse transactions that need more, in both versions, without paying for them', async () => {
    const { v1Network, feePayer, payTo, usdcMint } = sandbox.info;
    const { blockhash } = await connection.getLatestBlockhash();
    const lamports = () => connection.getBalance(new PublicKey(feePayer), 'confirmed');
    const table = new AddressLookupTableAccount({
      key: Keypair.generate().publicKey,
      state: { deactivationSlot: 0n, lastExtendedSlot: 0, lastExtendedSlotStartIndex: 0, addresses: [] },
    });
    table.state.addresses.push(new PublicKey(usdcMint));
    const before = await lamports();
    const recipes: [string, Recipe][] = [
      ['compute_limit_instruction_too_high', { computeLimit: 1_400_000, computePrice: 5_000_000n }],
      ['compute_limit_instruction_too_high', { computeLimit: 200_001 }],
      ['compute_price_instruction_too_high', { computeLimit: 200_000, computePrice: 100_001n }],
      ['excessive_signers', { cosigners: [Keypair.generate()] }],
      ['payload_transaction', { lookupTables: [table] }],
    ];
    for (const [reason, recipe] of recipes) {
      const { transaction } = craftPayment({ payer: buyer, feePayer, payTo, blockhash, ...recipe });
      const payload = { transaction };
      const { amount, ...rest } = offer();
      const v1 = { ...rest, network: v1Network, maxAmountRequired: amount, resource: 'http://x/' };
      const calls = [
        {
          x402Version: 2,
          paymentPayload: { x402Version: 2, payload, accepted: offer() },
          requirements: offer(),
        },
        {
          x402Version: 1,
          paymentPayload: { x402Version: 1, scheme: 'exact', network: v1Network, payload },
          requirements: v1,
        },
      ];
      for (const { requirements: paymentRequirements, ...rest } of calls) {
        const verified = await facilitate('/verify', { ...rest, paymentRequirements });
        expect(verified.answer, JSON.stringify(verified)).to.include({ isValid: false });
        expect(verified.answer['invalidReason']).to.match(new RegExp(`^invalid_exact_svm_.*${reason}$`));
        const settled = await facilitate('/settle', { ...rest, paymentRequirements });
        expect(settled.answer).to.include({ success: false, transaction: '' });
      }
    }
    const most = craftPayment({
      payer: buyer,
      feePayer,
      payTo,
      blockhash,
      computeLimit: 200_000,
      computePrice: 100_000n,
    });
    const paymentPayload = { x402Version: 2, payload: { transaction: most.transaction }, accepted: offer() };
    const { answer } = await facilitate('/settle', {
      x402Version: 2,
      paymentPayload,
      paymentRequirements: offer(),
    });
    expect(answer, JSON.stringify(answer)).to.include({ success: true });
    // Two signatures and the priority fee.
    expect(before - (await lamports())).to.equal(10_000 + 20_000);
  });

  it('answers a malformed facilitator call with 400', async () => {
    const payment = await pay(offer());
    const paymentPayload = { ...payment['paymentPayload'], accepted: { scheme: 'exact' } };
    const elsewhere = { ...offer(), network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' };
    for (const body of [
      null,
      [],
      {},
      { ...payment, paymentPayload },
      { ...payment, paymentPayload: { ...payment['paymentPayload'], x402Version: 3 } },
      { ...payment, paymentRequirements: { ...offer(), amount: 'all' } },
      { ...payment, paymentRequirements: elsewhere },
    ]) {
      for (const path of ['/verify', '/settle']) {
        const { status, answer } = await facilitate(path, body);
        expect(status).to.equal(400);
        expect(answer['error']).to.be.a('string');
      }
    }
    const junk = {
      ...payment,
      paymentPayload: { ...payment['paymentPayload'], payload: { transaction: 'AAAA' } },
    };
    expect((await facilitate('/verify', junk)).answer['isValid']).to.equal(false);
    expect((await facilitate('/settle', junk)).answer['success']).to.equal(false);
  });
});
