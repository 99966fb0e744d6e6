import type { FacilitatorSvmSigner } from '@x402/svm';
import { MAX_COMPUTE_UNITS, MAX_MICROLAMPORTS_PER_UNIT, SIGNATURES } from '../rails/solana/fee-limits.js';
import { FacilitatorFault, type FacilitatorRequest } from './facilitator.js';
import type { VerifyResult } from '../rails/rail.js';

/** Simulates a transaction (base64). @returns why it would fail; null if it would succeed. Throws if the chain can't be asked. */
export type Simulate = (transaction: string) => Promise<string | null>;

export type ReferenceVerdict = (request: FacilitatorRequest, simulate: Simulate) => Promise<VerifyResult>;

/** The package to install, at the version that this program is compiled against. */
const PACKAGE = '@x402/svm@2.27.0';

const OPTIONS = {
  maxPriorityFeeMicroLamports: Number(MAX_MICROLAMPORTS_PER_UNIT),
  maxComputeUnits: MAX_COMPUTE_UNITS,
  maxRequiredSignatures: SIGNATURES,
};

/**
 * The verdict of x402's reference implementation on a payment (scheme `exact` on SVM). Its packages are large, and a server that uses only
 * other facilitators does not need them.
 * @param feePayer the address that pays the fees
 * @throws FacilitatorFault if they are not installed
 */
export async function loadReferenceVerdict(feePayer: string): Promise<ReferenceVerdict> {
  const { ExactSvmScheme } = await import('@x402/svm/exact/facilitator').catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new FacilitatorFault(
      `FACILITATOR_URL: embedded needs the package ${PACKAGE}, which also checks each payment: npm install ${PACKAGE}`,
    );
  });
  return async ({ transaction, requirements }, simulate) => {
    let outage: Error | undefined;
    const signer = signerOf(feePayer, async () => {
      const error = await simulate(transaction).catch((cause: Error) => {
        outage = cause;
        throw cause;
      });
      if (error !== null) throw new Error(`Simulation failed: ${error}`);
    });
    const payload = { x402Version: 2, payload: { transaction }, accepted: requirements };
    const verdict = await new ExactSvmScheme(signer, undefined, OPTIONS).verify(payload, requirements);
    // The reference implementation reports an RPC outage as a failed simulation.
    if (outage !== undefined) throw outage;
    if (verdict.isValid) return { kind: 'valid' };
    const { invalidReason = 'refused without a reason', invalidMessage } = verdict;
    return {
      kind: 'refused',
      reason: invalidMessage ? `${invalidReason}: ${invalidMessage}` : invalidReason,
    };
  };
}

function signerOf(feePayer: string, simulateTransaction: () => Promise<void>): FacilitatorSvmSigner {
  const never = (): never => {
    throw new Error('the reference implementation judges a payment; it neither signs nor sends it');
  };
  return {
    getAddresses: () => [feePayer] as unknown as ReturnType<FacilitatorSvmSigner['getAddresses']>,
    simulateTransaction,
    signTransaction: never,
    sendTransaction: never,
    confirmTransaction: never,
  };
}
