import { homedir } from 'node:os';
import { join } from 'node:path';
import { toDecimal } from '../price/amount.js';
import { AnswerFiles } from './answer-files.js';
import { Fates } from './fate.js';
import type { BuyerParts } from './purchase.js';
import { Purse } from './purse.js';
import { createSigner } from './signer.js';
import type { StatementLine } from './statement.js';

/** The wallet of a key pair. */
export type Wallet = BuyerParts & { purse: Purse; fates: Fates };

export type WalletOptions = Pick<BuyerParts, 'limits' | 'timeoutMs' | 'attemptMs'> & {
  /** The folder of a payer (base58), in which payments without an answer are kept. */
  folderOf: (payer: string) => string;
  /** Default: the public RPC server for the network. */
  rpcUrl: string | undefined;
};

/** @throws PurseFault */
export async function openWallet(
  secretKey: Uint8Array,
  { folderOf, rpcUrl, ...parts }: WalletOptions,
): Promise<Wallet> {
  const signer = await createSigner(secretKey, rpcUrl);
  return { ...parts, signer, purse: new Purse(folderOf(signer.address)), fates: new Fates(rpcUrl) };
}

/** The default folder of a wallet. All programs that buy with the same key use it, so that they share limits and payments. */
export function usualFolder(payer: string): string {
  return join(homedir(), '.coinslot', 'wallets', payer);
}

/** The folder for bytes that were bought over MCP. */
export function answerFilesOf({ purse }: Wallet): AnswerFiles {
  return new AnswerFiles(join(purse.folder, 'answers'));
}

/** What a wallet has spent. Amounts are USDC as decimal strings. */
export type Statement = {
  payer: string;
  currency: 'USDC';
  maxPrice: string;
  budget: string;
  leftToday: string;
  withoutAnswer: { shop: string; tool: string; amount: string; signedAt: string; transaction?: string }[];
  /** Oldest first. */
  lines: StatementLine[];
  folder: string;
};

/** @param count how many lines to return from the end of the statement */
export function statementOf({ purse, limits, signer }: Wallet, count: number): Statement {
  return {
    payer: signer.address,
    currency: 'USDC',
    maxPrice: toDecimal(limits.maxPrice),
    budget: toDecimal(limits.budget),
    leftToday: toDecimal(purse.left(limits.budget)),
    withoutAnswer: purse.pending().map(({ shop, tool, amount, signedAt, landed }) => ({
      shop,
      tool,
      amount: toDecimal(BigInt(amount)),
      signedAt: new Date(signedAt).toISOString(),
      ...(landed === undefined ? {} : { transaction: landed }),
    })),
    lines: purse.lines(count),
    folder: purse.folder,
  };
}
