import { hash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { throwAll, type Compiled, type Contract } from './contract.js';
import { readText } from './parse-contract.js';
import { reportSchemas } from './schema-faults.js';

/**
 * Compiles the document, completed, to JSON, which takes a tenth of the time to parse at the start.
 * @param text of openapi.yaml
 * @throws ContractFault with all faults together, also for a schema that can't be used and for an example that its own schema refuses
 */
export async function compileContract(text: string): Promise<string> {
  return JSON.stringify(compiledForm(text, await checkedContract(text)));
}

/**
 * Writes the contract of a shop for others: `generated/openapi.json`, the whole document, for types, mocks and any other tool, and
 * `dist/openapi.json`, for the start of the server.
 * @throws ContractFault; then neither is there
 */
export async function writeContract(folder: string): Promise<Contract> {
  const files = [join(folder, 'generated', 'openapi.json'), join(folder, 'dist', 'openapi.json')] as const;
  const text = readFileSync(join(folder, 'openapi.yaml'), 'utf8');
  const contract = await checkedContract(text).catch((error: unknown) => {
    for (const file of files) rmSync(file, { force: true });
    throw error;
  });
  write(files[0], `${JSON.stringify(contract.document, undefined, 2)}\n`);
  write(files[1], JSON.stringify(compiledForm(text, contract)));
  return contract;
}

async function checkedContract(text: string): Promise<Contract> {
  const { contract, faults, fault } = readText(text);
  await reportSchemas(contract, fault);
  throwAll(faults);
  return contract;
}

function compiledForm(text: string, { document }: Contract): Compiled {
  return { sha256: hash('sha256', text), document };
}

/** Whoever reads it meets all of it or none. */
function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, text);
  renameSync(unfinished, file);
}
