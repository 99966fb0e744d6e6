import { Keypair, SystemProgram } from '@solana/web3.js';
import type { PaymentRequirements } from '@x402/core/types';
import {
  embeddedFacilitator,
  type EmbeddedTiming,
  type FacilitatorChain,
} from '../../src/facilitators/embedded-facilitator.js';
import { FeePayerGuard, type FeePayerLimits } from '../../src/facilitators/fee-payer-guard.js';
import type { Facilitator, FacilitatorRequest } from '../../src/facilitators/facilitator.js';
import { loadReferenceVerdict } from '../../src/facilitators/reference-verdict.js';
import { requirementsOf } from '../../src/methods/x402/requirements.js';
import { readKeyPair, type KeyPair } from '../../src/rails/solana/key-pair.js';
import { createChain, type SolanaChain } from '../../src/rails/solana/rpc.js';
import { craftPayment, type Recipe } from './craft.js';
import { SUMMARIZE, type TestChain } from './test-chain.js';

export const WIDE: FeePayerLimits = { floor: 1_000_000n, hourlyCap: 1_000_000_000n };
const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
/** Short enough that a transaction that an RPC server lost is sent again within a test. */
const BRISK: EmbeddedTiming = {
  verifyMs: 4_000,
  signMs: 4_000,
  settleMs: 8_000,
  resendMs: 200,
  lookMs: 50,
};

type Options = {
  feePayer?: Keypair;
  /** The balance of a new fee payer. Default 1 SOL. */
  lamports?: number;
  limits?: FeePayerLimits;
  rpcUrls?: string[];
  timing?: Partial<EmbeddedTiming>;
  now?: () => number;
  /** Wraps the chain, to inject faults and kills. */
  chain?: (chain: SolanaChain) => FacilitatorChain & Pick<SolanaChain, 'balance'>;
};

/** The embedded facilitator on a test chain, wired as in production, with a funded fee payer. */
export type OwnFacilitator = {
  facilitator: Required<Facilitator>;
  guard: FeePayerGuard;
  keyPair: KeyPair;
  feePayer: Keypair;
  /** The fee payer's balance on the chain, in lamports. */
  lamports(): bigint;
  /** A payment for a summary, changed as the recipe says, as the charge passes it on. */
  payment(bend?: Recipe): FacilitatorRequest;
  requirements: PaymentRequirements;
  close(): Promise<void>;
};

export async function ownFacilitator(testChain: TestChain, options: Options = {}): Promise<OwnFacilitator> {
  const { limits = WIDE, timing = BRISK, now, rpcUrls = [testChain.sandbox.rpc.url] } = options;
  const feePayer = options.feePayer ?? (await fundedKey(testChain, options.lamports));
  const keyPair = readKeyPair(JSON.stringify([...feePayer.secretKey]));
  const { network } = testChain.terms;
  const real = createChain({ urls: rpcUrls, network, timeoutMs: 2_000 });
  const chain = options.chain?.(real) ?? real;
  const { address } = keyPair;
  const guard = new FeePayerGuard({
    address,
    limits,
    readBalance: signal => chain.balance(address, signal),
    log: SILENT,
    ...(now ? { now } : {}),
  });
  await guard.start();
  const verdict = await loadReferenceVerdict(address);
  const facilitator = embeddedFacilitator({ chain, feePayer: keyPair, guard, verdict, log: SILENT, timing });
  const requirements = requirementsOf(SUMMARIZE, testChain.terms, address);
  return {
    facilitator,
    guard,
    keyPair,
    feePayer,
    requirements,
    lamports: () => testChain.sandbox.chain.account(address)?.lamports ?? 0n,
    payment: bend => ({
      requirements,
      transaction: craftPayment({
        feePayer: address,
        payTo: testChain.terms.payTo,
        blockhash: testChain.sandbox.chain.latestBlockhash('processed').blockhash,
        ...bend,
      }).transaction,
    }),
    close: async () => {
      await facilitator.close();
      await real.close();
    },
  };
}

export async function fundedKey(testChain: TestChain, lamports = 1_000_000_000): Promise<Keypair> {
  const key = Keypair.generate();
  await testChain.send([
    SystemProgram.transfer({ fromPubkey: testChain.funder, toPubkey: key.publicKey, lamports }),
  ]);
  return key;
}
