import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { COMPILED_FILE, compileContract, CONTRACT_FILE, ContractFault } from './contract.js';

/** `make build`: what a start would do anew each time is done once. */
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
