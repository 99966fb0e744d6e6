import { writeContract } from './compile-contract.js';
import { ContractFault } from './contract.js';

/** Run by every build, in the folder of the shop: compiles the contract once, so that it is not parsed at every start. */
try {
  await writeContract(process.cwd());
} catch (error) {
  if (!(error instanceof ContractFault)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
