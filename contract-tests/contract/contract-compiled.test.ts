import type { Json } from '../../src/contract/json.js';
import { expect } from 'chai';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compileContract } from '../../src/contract/compile-contract.js';
import { ContractFault } from '../../src/contract/contract.js';
import { loadContract, parseContract } from '../../src/contract/parse-contract.js';

/** A contract that stays the same when this repository's operations change. */
const FILE = new URL('../../../contract-tests/released/openapi-1.0.0.yaml', import.meta.url);
const TEXT = readFileSync(FILE, 'utf8');
const { document } = loadContract(FILE);

const at = (value: unknown, ...path: string[]): Json =>
  path.reduce<unknown>((node, key) => (node as Json)[key], value) as Json;

/** The build's errors for a contract that it refuses. */
function refusalOf(text: string): Promise<string> {
  return compileContract(text).then(
    () => expect.fail('compiled'),
    (error: Error) => (error instanceof ContractFault ? error.message : expect.fail(String(error))),
  );
}

describe('A compiled contract', () => {
  let folder: string;
  let file: string;
  let compiled: URL;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'contract-'));
    file = join(folder, 'openapi.yaml');
    compiled = pathToFileURL(join(folder, 'openapi.json'));
    writeFileSync(file, TEXT);
    writeFileSync(compiled, await compileContract(TEXT));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Gives the compiled contract another title, so that a test sees that it was used. */
  function mark(): void {
    const content = JSON.parse(readFileSync(compiled, 'utf8')) as { document: { info: Json } };
    content.document.info.title = 'compiled';
    writeFileSync(compiled, JSON.stringify(content));
  }

  const titleOf = (): unknown => at(loadContract(file, compiled).document, 'info').title;

  it('is used in place of openapi.yaml', () => {
    expect(loadContract(file, compiled)).to.deep.equal(parseContract(TEXT));
    mark();
    expect(titleOf()).to.equal('compiled');
  });

  it('prevents startup after one character of openapi.yaml changed, because types and handlers may no longer match it', () => {
    writeFileSync(file, TEXT.replace("amount: '0.01'", "amount: '0.02'"));
    expect(() => loadContract(file, compiled)).to.throw(
      ContractFault,
      /changed after the last build.*build again/,
    );
    writeFileSync(file, TEXT);
    expect(loadContract(file, compiled).paid).to.have.length.above(0);
  });

  it("is not written if a schema can't be used or rejects the example next to it", async () => {
    const faults: [string, string, RegExp][] = [
      [
        "pattern: '^[1-9A-HJ",
        "pattern: '^([1-9A-HJ",
        /openapi\.yaml:\d+ paths\.\/v1\/sol-token-brief\.post\.requestBody\..*\.pattern: the pattern \^\(\[1-9A-HJ.* is not a regular expression/,
      ],
      [
        'mint: JUPyiwrYJFskUPiHa7hkeR8VUtAeFoSYbKedZNsDvCN',
        'mint: nobody',
        /openapi\.yaml:\d+ paths\.\/v1\/sol-token-brief\.post\.requestBody\..*\.example: the example of its body is wrong: mint must /,
      ],
      [
        'symbol: JUP',
        'symbol: 7',
        /openapi\.yaml:\d+ paths\.\/v1\/sol-token-brief\.post\.responses\.200\..*: the example of its answer \(application\/json\) is wrong: symbol must /,
      ],
    ];
    for (const [from, to, message] of faults) {
      expect(TEXT).to.include(from);
      expect(await refusalOf(TEXT.replace(from, to))).to.match(message);
    }
  });

  it('reports errors of schemas together with all others', async () => {
    const broken = TEXT.replace('symbol: JUP', 'symbol: 7').replace("amount: '0.50'", 'amount: 0.50');
    const said = await refusalOf(broken);
    expect(said)
      .to.match(/symbol must be a string/)
      .and.match(/x-price: amount must be/);
    expect(said.split('\n').slice(1)).to.have.length(2);
  });

  it('is ignored if it is missing or broken', () => {
    for (const text of ['', '{', 'null', '{"document":{}}']) {
      writeFileSync(compiled, text);
      expect(titleOf(), text).to.equal(at(document, 'info').title);
    }
    rmSync(compiled);
    expect(titleOf()).to.equal(at(document, 'info').title);
  });

  it('is not written if the contract has an error, which is reported with its line', async () => {
    const broken = TEXT.replace("amount: '0.01'", 'amount: 0.01');
    expect(await refusalOf(broken)).to.match(/openapi\.yaml:\d+ paths\./);
    writeFileSync(file, broken);
    expect(() => loadContract(file, compiled)).to.throw(ContractFault, /openapi\.yaml:\d+ paths\./);
  });
});
