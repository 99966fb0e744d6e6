import { fileURLToPath } from 'node:url';
import { writeCollection } from '../../src/cli/build/bruno-collection.js';
import { loadContract } from '../../src/contract/parse-contract.js';

/** Run by `make build`: writes generated/bruno, as `coinslot build` does in a shop. */
const ROOT = new URL('../../../', import.meta.url);
writeCollection(fileURLToPath(ROOT), loadContract(new URL('openapi.yaml', ROOT)));
