import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { COMPILED_FILE, compileContract, CONTRACT_FILE, ContractFault } from './contract.js';

/** Run by `make build`: compiles the contract once, so that it is not parsed at every start. */
try {
  const compiled = compileContract(readFileSync(CONTRACT_FILE, 'utf8'));
  const unfinished = new URL(`${COMPILED_FILE.href}.${process.pid}`);
  writeFileSync(unfinished, compiled);
  renameSync(unfinished, COMPILED_FILE);
} catch (error) {
  rmSync(COMPILED_FILE, { force: true });
  if (!(error instanceof ContractFault)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
