export type Said<Fields = object> = Fields & { sentence: string };
type Authority = { authority: string | null };
/** `epoch`: the first epoch in which the fee applies. `maximum` is in whole tokens, per transfer. */
export type TransferFee = { epoch: number; basisPoints: number; maximum: string };

/**
 * The extensions of a mint (Token-2022), each with a sentence that says what it means for holders. Addresses are base58, null if
 * there is none; times are ISO 8601; amounts are decimal strings in whole tokens.
 */
export type MintExtensions = {
  permanentDelegate?: Said<{ delegate: string | null }>;
  transferFee?: Said<
    Authority & {
      withdrawAuthority: string | null;
      /** Fees that have been moved to the mint but not withdrawn yet. */
      withheld: string;
      /** Applies before `newer.epoch`. */
      older: TransferFee;
      newer: TransferFee;
    }
  >;
  transferHook?: Said<Authority & { program: string | null }>;
  defaultAccountState?: Said<{ state: 'initialized' | 'frozen' }>;
  pausable?: Said<Authority & { paused: boolean }>;
  mintCloseAuthority?: Said<Authority>;
  nonTransferable?: Said;
  permissionedBurn?: Said<Authority>;
  /** Encryption keys are base64. */
  confidentialTransfers?: Said<Authority & { automaticApproval: boolean; auditorKey: string | null }>;
  confidentialTransferFees?: Said<Authority & { withdrawKey: string | null }>;
  confidentialMintBurn?: Said;
  interestBearing?: Said<
    Authority & {
      basisPoints: number;
      averageBasisPoints: number;
      since: string | null;
      changed: string | null;
    }
  >;
  /** `newMultiplierFrom` is null if that time is outside the range of dates. */
  scaledUiAmount?: Said<
    Authority & { multiplier: number; newMultiplier: number; newMultiplierFrom: string | null }
  >;
  metadataPointer?: Said<Authority & { address: string | null }>;
  /** The issuer's own texts, cleaned. */
  metadata?: Said<
    Authority & {
      name: string | null;
      symbol: string | null;
      uri: string | null;
      fields: { key: string; value: string }[];
    }
  >;
  groupPointer?: Said<Authority & { address: string | null }>;
  group?: Said<Authority & { size: string; maxSize: string }>;
  groupMemberPointer?: Said<Authority & { address: string | null }>;
  groupMember?: Said<{ group: string; number: string }>;
  /** Extensions that this version does not know, or whose data is malformed. */
  unknown?: Said<{ type: number; bytes: number }>[];
  /** Bytes after the last extension that could be read. */
  unreadable?: Said<{ bytes: number }>;
};
