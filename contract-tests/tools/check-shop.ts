import { fileURLToPath } from 'node:url';
import { ContractFault } from '../../src/contract/contract.js';
import { loadShop } from '../../src/shop/load-shop.js';

/** Run by `make build`: loads this repository's shop as the server does at startup, and reports anything that would prevent startup. */
try {
  await loadShop(fileURLToPath(new URL('../../../', import.meta.url)));
} catch (error) {
  if (!(error instanceof ContractFault)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
