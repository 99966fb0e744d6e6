import { hash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ContractFault } from '../contract.js';
import { contractOf, type Imported } from './import-contract.js';
import { applyOverlay, isOverlay, readOverlay } from './overlay.js';
import { ImportFault, MAX_DOCUMENT_BYTES, parsedText, sourceOf } from './source-document.js';

/** The text of a contract, and the hashes of the further files it was made from. */
export type ContractSource = { text: string; files: Record<string, string> };

/** A text without this is not an overlay, so it need not be parsed here. Few shops have an overlay. */
const MAY_BE_OVERLAY = /\boverlay["']?:/;

/**
 * The contract of a shop: its openapi.yaml or, if that is an overlay, the overlay applied to the document that it extends.
 * @throws ContractFault
 */
export async function contractSource(file: string): Promise<ContractSource> {
  const text = readFileSync(file, 'utf8');
  if (!MAY_BE_OVERLAY.test(text)) return { text, files: {} };
  try {
    const overlay = parsedText(text, file);
    return isOverlay(overlay) ? await extended(file, overlay) : { text, files: {} };
  } catch (error) {
    if (error instanceof ImportFault)
      throw new ContractFault(`The contract can't be used:\n  ${file}: ${error.message}`);
    throw error;
  }
}

async function extended(file: string, written: Parameters<typeof readOverlay>[0]): Promise<ContractSource> {
  const overlay = readOverlay(written);
  const { extends: named } = overlay;
  if (/^[a-z]+:\/\//i.test(named))
    throw new ImportFault(
      `extends names ${named}, but a build reads files only: save the document next to openapi.yaml`,
    );
  const at = resolve(dirname(file), named);
  const files: Record<string, string> = {};
  const read = (path: string): string => {
    const text = readLocal(path, named);
    files[path] = hash('sha256', text);
    return text;
  };
  const document = applyOverlay(parsedText(read(at), named), overlay);
  const source = await sourceOf(document, pathToFileURL(at), async each => read(fileURLToPath(each)));
  const imported = await contractOf(source, { at: pathToFileURL(at), prices: [], kept: true });
  refuseLeftOut(imported, named);
  return { text: JSON.stringify(imported.contract), files };
}

function readLocal(path: string, named: string): string {
  try {
    if (statSync(path).size <= MAX_DOCUMENT_BYTES) return readFileSync(path, 'utf8');
  } catch (error) {
    throw new ImportFault(`extends names ${named}, and ${path} can't be read: ${(error as Error).message}`);
  }
  throw new ImportFault(`${path} is larger than ${MAX_DOCUMENT_BYTES >> 20} MB`);
}

/** Every operation with a price must be sellable; otherwise the build fails. */
function refuseLeftOut({ table }: Imported, name: string): void {
  const faults = table.filter(({ price, leftOut }) => price !== undefined && leftOut !== undefined);
  if (faults.length === 0) return;
  const lines = faults.map(({ method, path, leftOut }) => `${name} ${method} ${path}: ${leftOut}`);
  throw new ContractFault(`The contract can't be used:\n  ${lines.join('\n  ')}`);
}
