import { readFileSync } from 'node:fs';
import { LineCounter, parseDocument, type Document } from 'yaml';
import { PRICES } from '../price/prices.js';
import {
  compiledContract,
  ContractFault,
  faultsAt,
  readCompiled,
  readContract,
  throwAll,
  type Contract,
} from './contract.js';
import { contractSource } from './import/kept-document.js';
import type { Added } from './expand/draft.js';
import { expand } from './expand/expand.js';
import type { Fault } from './read-parameters.js';
import { isObject } from './references.js';

const STALE =
  'openapi.yaml was changed after the last build, so the types and handlers that were built may not fit it: build again (npm run build).';

/** The readable part of a contract, the parts that the build adds, and all faults. */
export type Reading = { contract: Contract; added: Added[]; faults: string[]; fault: Fault };

/**
 * Reads openapi.yaml into operations with prices.
 * @param compiled its compiled form, if there is one
 * @throws ContractFault with all faults together, such as an unknown price key, a number where a string is required, or a missing
 * answer. Also thrown if the YAML was changed after it was compiled, because the types and handlers were then made from another contract
 */
export function loadContract(file: URL | string, compiled?: URL): Contract {
  const built = compiled && compiledContract(file, compiled);
  if (built) return built;
  const name = typeof file === 'string' ? file : 'openapi.yaml';
  return unbuilt(parseContract(readFileSync(file, 'utf8'), name), compiled);
}

/** Like loadContract, but the file may be an overlay of another document (see kept-document.ts). */
export async function loadAnyContract(file: string, compiled?: URL): Promise<Contract> {
  const built = compiled && compiledContract(file, compiled);
  if (built) return built;
  const { text } = await contractSource(file);
  return unbuilt(parseContract(text), compiled);
}

function unbuilt(contract: Contract, compiled: URL | undefined): Contract {
  if (compiled && readCompiled(compiled)) throw new ContractFault(STALE);
  return contract;
}

/** Like loadContract, from the text of the document; `name` is the file name in faults, `prices` the allowed kinds of price. */
export function parseContract(text: string, name = 'openapi.yaml', prices = PRICES): Contract {
  const { contract, faults } = readText(text, name, prices);
  throwAll(faults);
  return contract;
}

/**
 * Reads a document, completed with what the build adds (see expand.ts).
 * @throws ContractFault if the text is not a document at all; other faults are returned
 */
export function readText(text: string, name = 'openapi.yaml', prices = PRICES): Reading {
  const lines = new LineCounter();
  const yaml = parseDocument(text, { lineCounter: lines });
  const first = yaml.errors[0];
  if (first) throw new ContractFault(`${name}: ${first.message}`);
  const own: unknown = yaml.toJS();
  if (!isObject(own))
    throw new ContractFault(
      `${name}:1: must be an OpenAPI document: an object that begins with openapi: 3.1.0`,
    );
  const { document, added, conflicts } = expand(own);
  const { faults, fault } = faultsAt(path => `${name}:${lineOf(yaml, lines, path)}`);
  for (const { path, message } of conflicts) fault(path, message);
  return { contract: readContract(document, fault, prices), added, faults, fault };
}

function lineOf(yaml: Document, lines: LineCounter, path: string[]): number {
  for (let length = path.length; length > 0; length--) {
    const node = yaml.getIn(path.slice(0, length), true) as { range?: [number, number, number] } | undefined;
    if (node?.range) return lines.linePos(node.range[0]).line;
  }
  return 1;
}
