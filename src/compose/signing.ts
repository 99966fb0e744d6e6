import { keptReceiptKey } from '../config/receipt-key.js';
import type { Json } from '../contract/json.js';
import { documentOf, type StaticDocuments } from '../http/documents.js';
import { resourceUrl } from '../methods/x402/requirements.js';
import { DID_PATH } from '../receipts/did-document.js';
import { PublishedKeys } from '../receipts/published-keys.js';
import { Receipts } from '../receipts/receipts.js';
import type { Base } from './base.js';
import type { Offering } from './offering.js';

/**
 * Opens the receipts; undefined if the shop itself serves a document at the path where the keys would be
 * published.
 */
export async function openReceipts(
  { config, contract, terms, log, disposers }: Base,
  { ledger }: Offering,
): Promise<Receipts | undefined> {
  const { paid, given, free } = contract;
  if ([...given, ...free, ...paid].some(({ path }) => path === DID_PATH)) {
    log.warn(
      {},
      `receipts are not signed: the contract declares ${DID_PATH}, where the receipt keys would be published`,
    );
    return undefined;
  }
  const operations = new Map(paid.map(operation => [operation.id, operation]));
  const receipts = await Receipts.open({
    key: config.receiptKey ?? keptReceiptKey(config.stateDir),
    published: new PublishedKeys(ledger),
    urlOf: id => {
      const operation = operations.get(id);
      return operation && resourceUrl(operation, terms);
    },
    ...{ publicUrl: terms.publicUrl, network: terms.network, log },
  });
  disposers.unshift(async () => receipts.close());
  return receipts;
}

/** The static documents, and the document with the receipt keys, which changes when a server on the ledger gets a different key. */
export function withKeys(
  documents: StaticDocuments,
  receipts: Receipts | undefined,
  exposed: string,
): StaticDocuments {
  const all = new Map(documents);
  if (!receipts) return all;
  const publish = (document: Json): unknown => all.set(DID_PATH, documentOf(document, exposed));
  publish(receipts.document);
  receipts.onDocument = publish;
  return all;
}
