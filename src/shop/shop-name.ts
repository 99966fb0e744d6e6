import { productName } from '../contract/product-name.js';
import { isProgram, type Shop } from './load-shop.js';

/** The name that `coinslot init` writes. */
export const TEMPLATE_NAME = 'My shop';
/** Default names, which nobody chose for a shop: the template's, Coinslot's own, and the one that is used when a contract has no title. */
const NOT_ITS_OWN = [TEMPLATE_NAME, 'Coinslot', 'API'];

/** What to do about a shop that has no name of its own; undefined if it has one. The shop of Coinslot's repository is called Coinslot. */
export function nameWarning({ contract }: Pick<Shop, 'contract'>, folder: string): string | undefined {
  const name = productName(contract);
  if (!NOT_ITS_OWN.includes(name) || isProgram(folder)) return undefined;
  return `the shop is still called '${name}', and that name appears to buyers, in directories and on its pages: choose another name in info.title`;
}
