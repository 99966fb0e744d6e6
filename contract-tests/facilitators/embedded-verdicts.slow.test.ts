import { createKeyPairSignerFromBytes } from '@solana/kit';
import { Keypair, PublicKey } from '@solana/web3.js';
import { x402Facilitator } from '@x402/core/facilitator';
import { SettlementCache, toFacilitatorSvmSigner } from '@x402/svm';
import { ExactSvmScheme } from '@x402/svm/exact/facilitator';
import type { PaymentRequirements } from '@x402/core/types';
import { expect } from 'chai';
import type { FacilitatorRequest } from '../../src/facilitators/facilitator.js';
import { DEVNET_USDC, type Recipe } from '../support/craft.js';
import { ownFacilitator, type OwnFacilitator } from '../support/own-facilitator.js';
import { rightPayments, wrongTransactions, type GoodPayment } from '../support/payment-table.js';
import { TestChain } from '../support/test-chain.js';

/** Payments that the reference implementation, as the sandbox's facilitator runs it, would sign and the embedded facilitator refuses. */
const STRICTER = new Map<string, RegExp>([
  ['needs three signers', /excessive_signers/],
  ['has the fee payer sign a memo', /fee_payer_in_instruction/],
  ['sets a limit that no transfer needs', /compute_limit_instruction_too_high/],
  ['costs the fee payer a lamport more than 20 000 for its priority', /compute_price_instruction_too_high/],
]);

/** Payments as MPP clients build them. For x402, the shop's own check refuses them before any facilitator is asked. */
const OWN_ORDER = 'swaps limit and price';

describe('the embedded facilitator decides like the reference implementation, and is stricter only in the listed cases:', function () {
  this.timeout(30_000);
  let testChain: TestChain;
  let own: OwnFacilitator;
  let reference: x402Facilitator;
  const payer = Keypair.generate();
  /** Filled in once the chain is running. */
  const good = { payer, asset: DEVNET_USDC, payTo: '', feePayer: '' } as GoodPayment;
  const output: { error: (...parts: unknown[]) => void } = globalThis.console;
  const print = output.error.bind(output);

  before(async () => {
    // The reference implementation prints what it can't decode.
    output.error = () => {};
    testChain = await TestChain.open();
    await testChain.fund(payer, 1_000_000_000n);
    own = await ownFacilitator(testChain);
    const signer = toFacilitatorSvmSigner(await createKeyPairSignerFromBytes(own.feePayer.secretKey), {
      defaultRpcUrl: testChain.sandbox.rpc.url,
    });
    const network = testChain.terms.network as PaymentRequirements['network'];
    reference = new x402Facilitator().register(network, new ExactSvmScheme(signer, new SettlementCache()));
    good.payTo = testChain.terms.payTo;
    good.feePayer = own.keyPair.address;
  });
  after(async () => {
    output.error = print;
    await own.close();
    await testChain.close();
  });

  const fresh = (): GoodPayment => ({
    ...good,
    blockhash: testChain.sandbox.chain.latestBlockhash('processed').blockhash,
  });

  async function verdicts(request: FacilitatorRequest): Promise<{ theirs: string; ours: string }> {
    const { transaction, requirements } = request;
    const payload = { x402Version: 2, payload: { transaction }, accepted: requirements };
    const found = await reference.verify(payload, requirements);
    const judged = await own.facilitator.verify(request);
    return {
      theirs: found.isValid ? 'valid' : `refused: ${found.invalidReason}`,
      ours: judged.kind === 'refused' ? `refused: ${judged.reason}` : judged.kind,
    };
  }

  /** @param name the name of a row in the tables */
  async function compare(name: string, transaction: string): Promise<void> {
    const { theirs, ours } = await verdicts({ transaction, requirements: own.requirements });
    const stricter = STRICTER.get(name);
    if (name === OWN_ORDER) {
      expect(theirs).to.match(/^refused: .*compute_limit_instruction/);
      expect(ours).to.equal('valid');
    } else if (stricter) {
      expect(theirs, 'the reference').to.equal('valid');
      expect(ours).to.match(stricter);
    } else {
      expect(ours.split(':')[0], `${ours} | ${theirs}`).to.equal(theirs.split(':')[0]);
    }
  }

  it('all stricter cases are in the tables', () => {
    expect(names.map(([name]) => name)).to.include.members([...STRICTER.keys()]);
  });

  const names = wrongTransactions({
    ...good,
    payTo: PublicKey.default.toBase58(),
    feePayer: payer.publicKey.toBase58(),
  });
  names.forEach(([name], index) => {
    it(`on a transaction that ${name}`, () => compare(name, wrongTransactions(fresh())[index]![2]()));
  });

  for (const [name, bend] of rightPayments(payer)) {
    it(`on a payment ${name}`, async () => compare(name, own.payment({ payer, ...bend }).transaction));
  }

  const poor = Keypair.generate();
  const REMOTE: [string, Recipe][] = [
    ['with an unknown blockhash', { payer, blockhash: Keypair.generate().publicKey.toBase58() }],
    ['from an empty wallet', { payer: Keypair.generate() }],
    ['from a wallet with too little USDC', { payer: poor }],
    ['for another network', { payer, asset: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v' }],
    ['from a source that is not the payer’s', { payer, source: Keypair.generate().publicKey }],
  ];
  for (const [name, bend] of REMOTE) {
    it(`on a payment ${name}`, async () => {
      if (bend.payer === poor) await testChain.fund(poor, 9_999n);
      await compare(name, own.payment(bend).transaction);
    });
  }

  const OFFERS: [string, Partial<PaymentRequirements>][] = [
    ['another amount', { amount: '10001' }],
    ['another receiver', { payTo: Keypair.generate().publicKey.toBase58() }],
    ['another mint', { asset: Keypair.generate().publicKey.toBase58() }],
    ['another scheme', { scheme: 'upto' }],
    ['no fee payer', { extra: {} }],
    ['another fee payer', { extra: { feePayer: Keypair.generate().publicKey.toBase58() } }],
  ];
  for (const [name, change] of OFFERS) {
    it(`on an offer of ${name}`, async () => {
      const { transaction, requirements } = own.payment({ payer });
      const judged = await own.facilitator.verify({
        transaction,
        requirements: { ...requirements, ...change },
      });
      const payload = { x402Version: 2, payload: { transaction }, accepted: { ...requirements, ...change } };
      const found = await new ExactSvmScheme(
        toFacilitatorSvmSigner(await createKeyPairSignerFromBytes(own.feePayer.secretKey), {
          defaultRpcUrl: testChain.sandbox.rpc.url,
        }),
      ).verify(payload, { ...requirements, ...change });
      expect(found.isValid).to.equal(false);
      expect(judged).to.deep.equal({ kind: 'refused', reason: found.invalidReason });
    });
  }
});
