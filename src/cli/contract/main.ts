import { existsSync } from 'node:fs';
import { Document, isMap, isScalar, isSeq, type Node } from 'yaml';
import { ContractFault, throwAll } from '../../contract/contract.js';
import { contractSource } from '../../contract/import/kept-document.js';
import { readText } from '../../contract/parse-contract.js';
import type { Added } from '../../contract/expand/draft.js';
import { writeData, writeErr, writeOut } from '../terminal.js';

const USAGE = `Usage: coinslot contract

Prints the whole contract of the shop in the current folder: openapi.yaml, completed with the payment headers and answers of
every paid operation, the documents that the server itself answers, and examples. A comment above each part that is not in openapi.yaml says
where it comes from. The build writes the same to generated/openapi.json. To change an added part, write it into openapi.yaml.`;

const FILE = 'openapi.yaml';
const LINE_WIDTH = 120;

/** The whole contract as YAML, with a comment above each part that was added. */
function withComments(document: object, added: readonly Added[]): string {
  const yaml = new Document(document, { aliasDuplicateObjects: false });
  for (const { path, why } of added) {
    const node = nodeAt(yaml, path);
    if (node) node.commentBefore = ` added: ${why}`;
  }
  return yaml.toString({ lineWidth: LINE_WIDTH, singleQuote: true });
}

/** The node above which a comment is to be written: the key of a member, or the item of a list. */
function nodeAt(yaml: Document, path: readonly string[]): Node | undefined {
  const parent = yaml.getIn(path.slice(0, -1), true);
  const last = path.at(-1);
  if (isSeq(parent)) return parent.items[Number(last)] as Node | undefined;
  if (!isMap(parent)) return undefined;
  const pair = parent.items.find(({ key }) => isScalar(key) && String(key.value) === last);
  return pair?.key as Node | undefined;
}

async function print(): Promise<void> {
  if (!existsSync(FILE))
    throw new ContractFault(
      `There is no openapi.yaml in ${process.cwd()}: go to the folder of your shop, or run coinslot init.`,
    );
  const { contract, added, faults } = readText((await contractSource(FILE)).text);
  throwAll(faults);
  writeData(withComments(contract.document, added));
}

if (process.argv.length > 2) {
  writeOut(`${USAGE}\n`);
  process.exitCode = process.argv[2] === '--help' ? 0 : 2;
} else {
  try {
    await print();
  } catch (error) {
    if (!(error instanceof ContractFault)) throw error;
    writeErr(`${error.message}\n`);
    process.exitCode = 1;
  }
}
