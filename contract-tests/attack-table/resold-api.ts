import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compileContract } from '../../src/contract/compile-contract.js';
import { documentOf, TestUpstream, type OperationForSale } from '../support/upstream-shop.js';

/** The shop's operations, which are calls to an API: one is paid for after its work, the other up front. */
export const ITEMS = '/items';
export const ORDERS = '/orders';

/** An API on this machine, and the folder of a shop that sells it. Items 404 and 502 are answered with that status; all orders fail. */
export class ResoldApi {
  readonly folder: string;
  readonly #api: TestUpstream;

  private constructor(folder: string, api: TestUpstream) {
    this.folder = folder;
    this.#api = api;
  }

  static async open(): Promise<ResoldApi> {
    const api = await TestUpstream.open();
    api.answer = ({ url = '' }, response) => {
      const [, of = '', id = ''] = url.split('/');
      const status = of === 'orders' ? 500 : id === '404' || id === '502' ? Number(id) : 200;
      response.writeHead(status, { 'Content-Type': 'application/json' }).end('{"value":1}');
    };
    const sold = (id: string, path: string): OperationForSale => ({
      id,
      path: `${path}/{id}`,
      parameters: [{ name: 'id', in: 'path' }],
      upstream: { url: `${api.url}${path}/{id}` },
    });
    const text = JSON.stringify(
      documentOf([sold('getItem', ITEMS), { ...sold('order', ORDERS), flow: 'upfront' }]),
    );
    const folder = await mkdtemp(join(tmpdir(), 'coinslot-resold-'));
    await mkdir(join(folder, 'dist'));
    await writeFile(join(folder, 'openapi.yaml'), text);
    await writeFile(join(folder, 'dist', 'openapi.json'), await compileContract(text));
    return new ResoldApi(folder, api);
  }

  /** The number of requests to the API. */
  get requests(): number {
    return this.#api.calls.length;
  }

  async close(): Promise<void> {
    this.#api.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}
