import { receiptsIn } from '../../receipts/find-receipts.js';
import { ReceiptFault } from '../../receipts/receipt-fault.js';
import { hostOf, publishedKey } from '../../receipts/resolve-did.js';
import { contradictions, verifyReceipt, type Known, type Verified } from '../../receipts/verify-receipt.js';
import type { Json } from '../../contract/json.js';
import { Broken, must, type Findings } from './findings.js';
import { isObject, type Reply } from './http-call.js';

const KEY = 'offer-receipt';

/** Checks the signatures of a shop's offers; a shop that does not sign gets no finding. */
export async function checkOffers(
  name: string,
  url: string,
  { extensions }: { extensions?: Json },
  findings: Findings,
): Promise<void> {
  const offers = extensions?.[KEY];
  if (offers === undefined) return;
  await findings.should(`${name}: its offers are signed by the shop`, () =>
    checkSigned(offers, 'offer', url),
  );
}

/** @throws Broken if the answer of a sale has no receipt signed by the shop, or a receipt for something else */
export async function checkReceipt(
  { headers, body }: Pick<Reply, 'headers' | 'body'>,
  receipt: unknown,
  url: string,
): Promise<void> {
  const extensions = isObject(receipt) ? receipt['extensions'] : undefined;
  const signed = isObject(extensions) ? extensions[KEY] : undefined;
  must(signed !== undefined, 'receipts are not signed: the extension offer-receipt is missing');
  await checkSigned(signed, 'receipt', url);
  const own = headers.get('answer-receipt');
  if (own !== null) await checkSigned(own, 'answer receipt', url, { answer: body });
}

async function checkSigned(
  value: unknown,
  kind: Verified['kind'],
  url: string,
  known: Known = {},
): Promise<void> {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const all = receiptsIn(text);
  // Signatures made with Ethereum keys have a different form, which is not checked.
  if (all.length === 0 && text.includes('"eip712"')) return;
  must(all.length > 0, `there is no JWS in it: ${text.slice(0, 100)}`);
  for (const each of all) {
    const verified = await verifiedFor(each, url);
    must(verified.kind === kind, `it is not ${kind}, but ${verified.kind}`);
    const about = String(verified.payload['resourceUrl']);
    must(new URL(about).host === new URL(url).host, `it is about ${about}, but the call was sold at ${url}`);
    const [other] = contradictions(verified, known);
    must(other === undefined, other ?? '');
  }
}

/** Only the checked host may have a private address, not other hosts named in a receipt. */
async function verifiedFor(text: string, url: string): Promise<Verified> {
  const keyOf = (kid: string) => publishedKey(kid, hostOf(kid.split('#', 1)[0] ?? '') === new URL(url).host);
  try {
    return await verifyReceipt(text, keyOf);
  } catch (error) {
    throw error instanceof ReceiptFault ? new Broken(error.message) : error;
  }
}
