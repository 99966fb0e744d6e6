import { hash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { throwAll, type Compiled, type Contract } from './contract.js';
import { programVersion } from './program-version.js';
import { contractSource } from './import/kept-document.js';
import { readText } from './parse-contract.js';
import { reportSchemas } from './schema-faults.js';

/**
 * Compiles the completed document to JSON, because a starting server parses JSON in a tenth of the time that YAML takes.
 * @param text of openapi.yaml
 * @throws ContractFault with all faults together, including unusable schemas and examples that their own schema rejects
 */
export async function compileContract(text: string): Promise<string> {
  return compiledText(text, await checkedContract(text));
}

/** The results of a build: the whole document for types, mocks and other tools, and the compiled one that a server loads when it starts. */
export type BuiltContract = { contract: Contract; whole: string; compiled: string };

/**
 * Builds the contract of a shop, and writes nothing.
 * @throws ContractFault
 */
export async function buildContract(folder: string): Promise<BuiltContract> {
  const file = join(folder, 'openapi.yaml');
  const { text, files } = await contractSource(file);
  const contract = await checkedContract(text);
  const whole = `${JSON.stringify(contract.document, undefined, 2)}\n`;
  return { contract, whole, compiled: compiledText(readFileSync(file, 'utf8'), contract, files) };
}

/**
 * Writes the built contract of a shop: `generated/openapi.json` and `dist/openapi.json`.
 * @throws ContractFault; then neither file is written
 */
export async function writeContract(folder: string): Promise<Contract> {
  const files = [join(folder, 'generated', 'openapi.json'), join(folder, 'dist', 'openapi.json')] as const;
  const { contract, whole, compiled } = await buildContract(folder).catch((error: unknown) => {
    for (const file of files) rmSync(file, { force: true });
    throw error;
  });
  write(files[0], whole);
  write(files[1], compiled);
  return contract;
}

async function checkedContract(text: string): Promise<Contract> {
  const { contract, faults, fault } = readText(text);
  await reportSchemas(contract, fault);
  throwAll(faults);
  return contract;
}

/** The compiled form of a contract. It is valid while the source file has this text and the further files have these hashes. */
export function compiledText(text: string, { document }: Contract, files?: Record<string, string>): string {
  const others = files && Object.keys(files).length > 0 ? { files } : {};
  const by = programVersion();
  return JSON.stringify({ sha256: hash('sha256', text), by, ...others, document } satisfies Compiled);
}

/** Writes atomically: a reader never sees a part of the new content. */
function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, text);
  renameSync(unfinished, file);
}
