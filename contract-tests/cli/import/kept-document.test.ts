import { expect } from 'chai';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { contractYaml, overlayOf } from '../../../src/cli/import/contract-yaml.js';
import { writeContract } from '../../../src/contract/compile-contract.js';
import { ContractFault, type Contract } from '../../../src/contract/contract.js';
import { importContract } from '../../../src/contract/import/import-contract.js';
import type { Json } from '../../../src/contract/json.js';
import { loadAnyContract } from '../../../src/contract/parse-contract.js';

/** A document like those that APIs generate: in an older version of OpenAPI, with an operation that is not for sale. */
const documentOf = (schema: Json = { type: 'object' }, more: Json = {}): Json => ({
  openapi: '3.0.3',
  info: { title: 'Ferries', version: '1' },
  servers: [{ url: 'https://api.example.com/v1' }],
  components: { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-Key' } } },
  paths: {
    "/piers/{pier.id}/o'clock": {
      get: {
        operationId: 'readPier',
        security: [{ key: [] }],
        parameters: [
          { name: 'pier.id', in: 'path', required: true, schema: { type: 'string', nullable: true } },
          { name: 'X-Key', in: 'header', required: true, schema: { type: 'string' } },
        ],
        responses: { 200: { description: 'ok', content: { 'application/json': { schema } } } },
      },
      delete: { operationId: 'sink', responses: { 204: { description: 'gone' } } },
    },
    ...more,
  },
});

describe('A document that coinslot import --keep does not copy', () => {
  let folder: string;
  let api: string;
  let shop: string;
  let compiled: URL;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'kept-'));
    [api, shop] = [join(folder, 'api.json'), join(folder, 'openapi.yaml')];
    compiled = pathToFileURL(join(folder, 'dist', 'openapi.json'));
    const text = JSON.stringify(documentOf());
    writeFileSync(api, text);
    const imported = await importContract(text, { prices: ['readPier=0.05'] });
    writeFileSync(shop, contractYaml(overlayOf(imported, './api.json'), 'x'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const built = (): Promise<Contract> => writeContract(folder);
  async function refused(): Promise<string> {
    const fault = await built().then(
      () => expect.fail('built'),
      (error: Error) => error,
    );
    expect(fault).to.be.instanceOf(ContractFault);
    return fault.message;
  }
  const write = (...actions: string[]): void =>
    writeFileSync(
      shop,
      [
        "overlay: '1.0.0'",
        'info: { title: x, version: x }',
        'extends: ./api.json',
        'actions:',
        ...actions,
      ].join('\n'),
    );

  it('is sold with the prices and the address in the overlay, which repeats nothing from the document', async () => {
    expect(readFileSync(shop, 'utf8')).to.not.contain('responses');
    const { paid } = await built();
    expect(
      paid.map(({ id, path, price, upstream, parameters }) => ({
        ...{ id, path, price: price.amount, url: upstream?.url, headers: upstream?.headers },
        asked: parameters.map(({ name }) => name),
      })),
    ).to.deep.equal([
      {
        id: 'readPier',
        path: "/piers/{pier_id}/o'clock",
        price: '0.05',
        url: "https://api.example.com/v1/piers/{pier_id}/o'clock",
        headers: { 'x-key': '${X_KEY}' },
        asked: ['pier_id'],
      },
    ]);
    expect((await loadAnyContract(shop, compiled)).paid).to.have.length(1);
  });

  it('is read again by the next build after it was regenerated; until that build, the server refuses to start', async () => {
    await built();
    writeFileSync(api, JSON.stringify(documentOf({ type: 'object', required: ['name'] })));
    const stale = await loadAnyContract(shop, compiled).catch((error: unknown) => error);
    expect(stale).to.be.instanceOf(ContractFault);
    expect((stale as Error).message).to.contain('build again');
    const [operation] = (await built()).paid;
    expect(operation?.answers[0].schema).to.deep.equal({ type: 'object', required: ['name'] });
    expect((await loadAnyContract(shop, compiled)).paid).to.have.length(1);
  });

  it("stops the build if a priced operation is gone or can't be sold any more, and names it", async () => {
    const { paths } = documentOf();
    writeFileSync(
      api,
      JSON.stringify({ ...documentOf(), paths: { '/other': Object.values(paths as Json)[0] } }),
    );
    expect(await refused())
      .to.contain('the document has nothing there')
      .and.contain("o\\'clock");
    writeFileSync(api, JSON.stringify(documentOf()).replace('application/json', 'text/event-stream'));
    expect(await refused()).to.contain("./api.json GET /piers/{pier.id}/o'clock: answers with a stream");
    rmSync(api);
    expect(await refused()).to.contain("can't be read");
  });

  it('can be changed at any place that a simple JSONPath selects', async () => {
    write(
      '- { target: $, update: { tags: [{ name: Boats }] } }',
      '- { target: $.info, update: { title: My ferries } }',
      "- { target: \"$['paths'].*.get\", update: { tags: [Boats], x-price: { mode: fixed, currency: USD, amount: '1', flow: upfront } } }",
      '- { target: "$.paths.*.get.parameters[1]", remove: true }',
      '- { target: "$.paths.*.delete", remove: true }',
    );
    const { paid, document } = await built();
    expect(
      paid.map(({ tags, flow, upstream, parameters }) => [tags, flow, upstream, parameters.length]),
    ).to.deep.equal([[['Boats'], 'upfront', undefined, 1]]);
    expect((document.info as Json).title).to.equal('My ferries');
  });

  it('is refused with a reason if the overlay contains something unsupported', async () => {
    for (const [action, words] of [
      ['- { target: $..get, remove: true }', 'the supported JSONPath is $.name'],
      ['- { target: "$.paths[?@.x]", remove: true }', 'the supported JSONPath is $.name'],
      ['- { target: paths, remove: true }', 'a target begins with $'],
      ['- { target: $.info }', 'must have an update, or remove: true'],
      ['- 7', 'must have a target'],
    ] as const) {
      write(action);
      expect(await refused(), action).to.contain(words);
    }
    writeFileSync(shop, "overlay: '1.0.0'\nextends: https://api.example.com/openapi.json\nactions: []\n");
    expect(await refused()).to.contain('save the document next to openapi.yaml');
    writeFileSync(shop, 'overlay: 2\nextends: ./api.json\nactions: []\n');
    expect(await refused()).to.contain('overlay must be the version');
  });
});
