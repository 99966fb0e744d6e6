import { readCatalogue, type Catalogue } from './catalogue.js';
import { checkChallenges, type Asked } from './challenge-checks.js';
import { checkDocuments } from './document-checks.js';
import { Findings, type Finding } from './findings.js';
import { checkFront } from './front-checks.js';
import { checkAddress, checkListing } from './listing-checks.js';
import { checkMcp, findMcp } from './mcp-checks.js';
import { checkPurchase, type Purse } from './purchase-checks.js';

/**
 * Checks any x402 shop: its documents, the challenge of each paid operation, the proxies in front of it and, with a purse, one purchase.
 * One finding per promise. The shop's documents determine what is checked; a fault never ends the check.
 * @param url the address of the shop, or of one paid operation
 */
export async function checkShop(url: string, purse?: Purse): Promise<Finding[]> {
  const findings = new Findings();
  let catalogue: Catalogue | undefined;
  await findings.must(`a shop answers at ${url}`, async () => {
    catalogue = await readCatalogue(url);
  });
  if (!catalogue) return findings.all;
  const mcp = await findMcp(catalogue, url);
  // An MCP server without a website has none of these documents: its tools say what is sold.
  if (!mcp?.isAlone) await checkDocuments(catalogue, findings);
  const asked = await checkSold(catalogue, findings);
  await checkFront(catalogue, findings);
  if (mcp) await checkMcp(catalogue, mcp, findings);
  // No advice about the address of a shop on this machine: its owner knows that other machines can't reach
  // it.
  if (!/^(localhost|127\.|\[::1\])/.test(new URL(url).hostname)) await checkAddress(url, findings, 'should');
  await checkListing(catalogue, asked, findings, 'should');
  if (purse) await checkPurchase(catalogue, purse, findings);
  return findings.all;
}

async function checkSold({ sold }: Catalogue, findings: Findings): Promise<Asked[]> {
  const asked: Asked[] = [];
  for (const operation of sold.filter(({ method }) => method))
    asked.push(await checkChallenges(operation, findings));
  return asked;
}
