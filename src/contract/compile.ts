import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { compileContract } from './compile-contract.js';
import { ContractFault } from './contract.js';

/** Run by every build, in the folder of the shop: compiles the contract once, so that it is not parsed at every start. */
const compiledFile = resolve('dist', 'openapi.json');
try {
  const compiled = await compileContract(readFileSync('openapi.yaml', 'utf8'));
  mkdirSync('dist', { recursive: true });
  const unfinished = `${compiledFile}.${process.pid}`;
  writeFileSync(unfinished, compiled);
  renameSync(unfinished, compiledFile);
} catch (error) {
  rmSync(compiledFile, { force: true });
  if (!(error instanceof ContractFault)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
