import { signatureOf } from '../facilitators/send-until-landed.js';
import type { Anonymizer } from '../ledger/store.js';
import { SIGNATURES } from '../rails/solana/fee-limits.js';
import { anonymousEvidence } from '../rails/solana/kept-evidence.js';

/**
 * If the signature under which a refund landed is not that of the stored transaction, the refund was paid with another wallet. The stored
 * transaction is then dropped.
 */
export const anonymizer: Anonymizer = {
  sale: evidence => anonymousEvidence(evidence, SIGNATURES),
  refund: (evidence, signature) =>
    signatureOf(evidence) === signature ? anonymousEvidence(evidence, 1) : null,
};
