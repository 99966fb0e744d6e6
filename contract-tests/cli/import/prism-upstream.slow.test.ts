import { createKeyPairSignerFromBytes } from '@solana/kit';
import { x402Client } from '@x402/core/client';
import { decodePaymentResponseHeader } from '@x402/core/http';
import { wrapFetchWithPayment } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { contractYaml } from '../../../src/cli/import/contract-yaml.js';
import type { PricedOperation } from '../../../src/contract/contract.js';
import { parseContract } from '../../../src/contract/parse-contract.js';
import { exampleCall } from '../../support/example-call.js';
import { describeInCi, rows } from '../../support/extent.js';
import { callTool, paid, type ToolCall } from '../../support/mcp-call.js';
import { importedFrom, textOf } from '../../support/public-documents.js';
import { openWorld, type World } from '../../support/world.js';
import { noPrism, startMock, type Prism } from '../../tools/prism.js';

/** Documents in OpenAPI 3.1, 3.0 and Swagger 2.0, and how many operations are bought from each. */
const SERVED = [
  { file: 'petstore-3.1.json', most: 20 },
  { file: 'blockfrost.yaml', most: 12 },
  { file: 'okta.json', most: 12 },
] as const;

describeInCi(`An imported API that Prism serves${noPrism ? ` (skipped: ${noPrism})` : ''}`, function () {
  this.timeout(240_000);
  const folder = mkdtempSync(join(tmpdir(), 'coinslot-imported-'));
  before(function () {
    if (noPrism) this.skip();
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const { file, most } of rows(SERVED))
    describe(file, () => {
      let api: Prism;
      let world: World;
      let wallet: x402Client;
      let operations: PricedOperation[];
      before(async () => {
        const document = join(folder, file);
        writeFileSync(document, textOf({ file }));
        api = await startMock(pathToFileURL(document));
        const shop = mkdtempSync(join(folder, 'shop-'));
        const { contract, asked } = await importedFrom({ file }, api.url);
        const text = contractYaml(contract, file);
        writeFileSync(join(shop, 'openapi.yaml'), text);
        operations = parseContract(text).paid.slice(0, most);
        const secrets = Object.fromEntries(asked.map(({ variable }) => [variable, 'a-key-of-the-seller']));
        world = await openWorld({ SHOP_DIR: shop, ALLOW_PRIVATE_UPSTREAMS: 'true', ...secrets });
        const signer = await createKeyPairSignerFromBytes(world.buyer);
        wallet = new x402Client().register(
          'solana:*',
          new ExactSvmScheme(signer, { rpcUrl: world.sandbox.rpc.url }),
        );
      });
      after(async () => {
        await world?.close();
        await api?.close();
      });

      it('is bought over HTTP by the official client', async () => {
        const pay = wrapFetchWithPayment(fetch, wallet);
        const earned = await world.earned();
        for (const operation of operations) {
          const { query, init } = exampleCall(operation);
          const answer = await pay(`${world.url}${operation.examplePath}${query}`, init);
          expect(answer.ok, `${operation.id}: ${answer.status} ${await answer.text()}`).to.equal(true);
          const receipt = answer.headers.get('payment-response') ?? '';
          expect(decodePaymentResponseHeader(receipt).success, operation.id).to.equal(true);
        }
        expect((await world.earned()) - earned).to.equal(BigInt(operations.length) * 10_000n);
      });

      it('is bought over MCP', async () => {
        const earned = await world.earned();
        for (const { id } of operations) {
          const unpaid = await callTool(world.url, id, {});
          const required = unpaid.structuredContent as unknown as Parameters<
            x402Client['createPaymentPayload']
          >[0] & {
            extensions: { bazaar: { info: { input: { example: Record<string, unknown> } } } };
          };
          const payment = await wallet.createPaymentPayload(required);
          const { example } = required.extensions.bazaar.info.input;
          const answer: ToolCall = await callTool(world.url, id, example, paid(payment));
          expect(answer.isError, `${id}: ${JSON.stringify(answer.content).slice(0, 300)}`).not.to.equal(true);
        }
        expect((await world.earned()) - earned).to.equal(BigInt(operations.length) * 10_000n);
      });
    });
});
