import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileContract } from '../../contract/compile-contract.js';
import { ContractFault } from '../../contract/contract.js';
import { sharedText } from '../../contract/expand/shared-parts.js';
import { ContractText, OperationFault } from './contract-text.js';
import {
  answerSchemaLines,
  operationLines,
  schemaName,
  tagOf,
  type NewOperation,
} from './describe-operation.js';
import { addHandler, removeHandler } from './handler-files.js';

/**
 * Adds an operation to the shop in a folder.
 * @returns the files that it wrote
 * @throws OperationFault; nothing was changed
 */
export async function addOperation(folder: string, operation: NewOperation): Promise<string[]> {
  const { id, path, method, tag, upstream } = operation;
  const contract = readContract(folder);
  const whole = isWhole(contract);
  if (contract.find(id)) throw taken(`an operation ${id}`);
  if (contract.has(['paths', path, method])) throw taken(`${method} ${path}`);
  if (whole && contract.has(['components', 'schemas', schemaName(id)]))
    throw taken(`a schema ${schemaName(id)}`);
  if (whole || tag !== undefined) contract.addTag(tagOf(operation), 'Paid operations.');
  contract.addOperation(path, operationLines(operation, whole));
  if (whole) {
    contract.addComponent('schemas', schemaName(id), answerSchemaLines(operation));
    contract.copyMissing(new ContractText(sharedText()));
  }
  await check(contract);
  const files = upstream === undefined ? addHandler(folder, operation) : [];
  return [write(folder, contract), ...files];
}

/**
 * Removes an operation from the shop in a folder, with everything that nothing else needs.
 * @returns the files that it wrote or removed
 * @throws OperationFault; nothing was changed
 */
export async function removeOperation(folder: string, id: string): Promise<string[]> {
  const contract = readContract(folder);
  const gone = contract.removeOperation(id);
  await check(contract);
  return [write(folder, contract), ...gone.flatMap(each => removeHandler(folder, each))];
}

/** Whether a contract is complete, like the one in this repository, so that additions must be complete as well. */
function isWhole(contract: ContractText): boolean {
  return contract.find('getOpenapi') !== undefined;
}

function readContract(folder: string): ContractText {
  const file = join(folder, 'openapi.yaml');
  if (existsSync(file)) return new ContractText(ownContract(readFileSync(file, 'utf8')));
  throw new OperationFault(
    `There is no openapi.yaml in ${folder}: go to the folder of your shop, or run coinslot init.`,
  );
}

function ownContract(text: string): string {
  if (!/^overlay:/m.test(text)) return text;
  throw new OperationFault(
    'openapi.yaml is an overlay of another document: add an action to it, with x-price and x-upstream, or remove one.',
  );
}

function write(folder: string, { text }: ContractText): string {
  const file = join(folder, 'openapi.yaml');
  writeFileSync(file, text);
  return file;
}

function taken(what: string): OperationFault {
  return new OperationFault(`openapi.yaml already has ${what}. Nothing was changed.`);
}

/** Checks that the server would accept the contract before it is written. */
async function check({ text }: ContractText): Promise<void> {
  try {
    await compileContract(text);
  } catch (error) {
    if (!(error instanceof ContractFault)) throw error;
    throw new OperationFault(`${error.message}\nNothing was changed.`);
  }
}
