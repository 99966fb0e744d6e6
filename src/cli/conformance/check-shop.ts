import { readCatalogue, type Catalogue } from './catalogue.js';
import { checkChallenges } from './challenge-checks.js';
import { checkDocuments } from './document-checks.js';
import { Findings, must, type Finding } from './findings.js';
import { checkFront } from './front-checks.js';
import { checkPurchase, type Purse } from './purchase-checks.js';

/**
 * Checks any x402 shop: what it says of itself, the challenge of everything it sells, what stands in front of it and, with a purse, one
 * purchase. One finding per promise. What is checked derives from what the shop says; a fault never ends the check.
 * @param url the address of the shop, or of one paid operation
 */
export async function checkShop(url: string, purse?: Purse): Promise<Finding[]> {
  const findings = new Findings();
  let catalogue: Catalogue | undefined;
  await findings.must(`a shop answers at ${url}`, async () => {
    catalogue = await readCatalogue(url);
  });
  if (!catalogue) return findings.all;
  await checkDocuments(catalogue, findings);
  await checkSold(catalogue, findings);
  await checkFront(catalogue, findings);
  if (purse) await checkPurchase(catalogue, purse, findings);
  return findings.all;
}

async function checkSold({ sold }: Catalogue, findings: Findings): Promise<void> {
  const receivers = new Map<string, Set<string>>();
  for (const operation of sold.filter(({ method }) => method)) {
    for (const [network, payTo] of await checkChallenges(operation, findings))
      receivers.set(network, (receivers.get(network) ?? new Set()).add(payTo));
  }
  await findings.should('everything is paid to one receiver', () => {
    for (const [network, all] of receivers)
      must(all.size === 1, `on ${network} the money goes to ${[...all].join(' and ')}`);
  });
}
