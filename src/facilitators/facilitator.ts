import type { PaymentRequirements } from '@x402/core/types';
import type { Listing } from './listings.js';
import type { SettleResult, SignResult, Trouble, VerifyResult } from '../rails/rail.js';

/** A request to the facilitator: our own offer and our own encoding of the buyer's transaction; nothing is echoed from the buyer. */
export type FacilitatorRequest = {
  transaction: string;
  requirements: PaymentRequirements;
  /** The entry for the facilitator's directory, if it has one. */
  listing?: Listing | undefined;
};

/**
 * A facilitator's answer about a listing. `refused`: it refuses requests with a listing. `why`: its reason, as one line of printable ASCII.
 */
export type ListingVerdict = Pick<Listing, 'operation' | 'transport'> & {
  status: 'success' | 'processing' | 'rejected' | 'refused';
  why?: string;
};

/** The x402 v2 kind for our network, as `/supported` lists it. `signers`: all addresses that the facilitator says it pays fees with. */
export type Supported = { feePayer: string; signers?: readonly string[] };

/** Verifies and settles payments. The adapter never retries. */
export type Facilitator = {
  /** @throws FacilitatorUnreachable, or FacilitatorFault if it does not serve our network in x402 v2. */
  supported(network: string): Promise<Supported>;
  verify(ask: FacilitatorRequest): Promise<VerifyResult>;
  /**
   * Verifies the payment and signs it as fee payer, without sending. Only a facilitator of this server, which sends the transaction itself, has this
   * method. The ledger stores signature and bytes when it moves the payment to `settling`, before anything is sent.
   */
  sign?(ask: FacilitatorRequest): Promise<SignResult>;
  /** For a facilitator that signs, `transaction` is the fully signed one. */
  settle(ask: FacilitatorRequest): Promise<SettleResult>;
  close(): Promise<void>;
};

/** The facilitator can't be used with this configuration. The server does not start. */
export class FacilitatorFault extends Error {}
/** The facilitator did not answer. The server starts with the fee payer that is recorded in the ledger. */
export class FacilitatorUnreachable extends Error {
  readonly trouble: Trouble;

  constructor(message: string, trouble: Trouble = { rest: false }) {
    super(message);
    this.trouble = trouble;
  }
}

const MAX_REASON = 300;

/** Reduces text from outside, which goes into answers and headers, to one bounded line of printable ASCII. */
export function plain(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, ' ').slice(0, MAX_REASON);
}

const EMPTY_WALLET = 'insufficient_funds';
const SIMULATION_FAILED = 'invalid_exact_svm_transaction_simulation_failed';

/**
 * Refusals that do not prove that the transfer has not landed. Before a facilitator settles, it verifies: it reads the wallet and simulates the
 * transfer. If the transfer has already landed, it may have emptied the wallet. The same refusals have other causes, too: the wallet was empty
 * before, or the blockhash is unknown or expired.
 */
export const REFUSALS_OF_LANDED_TRANSFERS = new Set([EMPTY_WALLET, SIMULATION_FAILED]);

/** Reasons with which a facilitator refuses before it signs (x402 scheme exact on SVM). Any other reason proves nothing. */
export const REFUSALS_BEFORE_SIGNING = new Set([
  ...REFUSALS_OF_LANDED_TRANSFERS,
  'invalid_exact_svm_unsupported_scheme',
  'invalid_exact_svm_network_mismatch',
  'invalid_exact_svm_payload_missing_fee_payer',
  'invalid_exact_svm_fee_payer_not_managed_by_facilitator',
  'invalid_exact_svm_payload_transaction',
  'invalid_exact_svm_payload_transaction_could_not_be_decoded',
  'invalid_exact_svm_payload_signature_invalid',
  'invalid_exact_svm_payload_excessive_signers',
  'invalid_exact_svm_payload_transaction_instructions_length',
  'invalid_exact_svm_payload_transaction_instructions_compute_limit_instruction',
  'invalid_exact_svm_payload_transaction_instructions_compute_limit_instruction_too_high',
  'invalid_exact_svm_payload_transaction_instructions_compute_price_instruction',
  'invalid_exact_svm_payload_transaction_instructions_compute_price_instruction_too_high',
  'invalid_exact_svm_payload_unknown_fourth_instruction',
  'invalid_exact_svm_payload_unknown_fifth_instruction',
  'invalid_exact_svm_payload_unknown_sixth_instruction',
  'invalid_exact_svm_payload_unknown_seventh_instruction',
  'invalid_exact_svm_payload_unknown_optional_instruction',
  'invalid_exact_svm_payload_no_transfer_instruction',
  'invalid_exact_svm_payload_transaction_fee_payer_transferring_funds',
  'invalid_exact_svm_payload_mint_mismatch',
  'invalid_exact_svm_payload_recipient_mismatch',
  'invalid_exact_svm_payload_amount_mismatch',
  'invalid_exact_svm_payload_memo_mismatch',
  'invalid_exact_svm_payload_memo_count',
]);
