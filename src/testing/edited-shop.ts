import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseDocument, type Document } from 'yaml';
import { toAtomic, toDecimal } from '../price/amount.js';
import { objectOf } from '../contract/references.js';

/** A shop as it is deployed for tests: its own contract with other prices or upstreams, and its compiled handlers. */
export type EditedShop = {
  folder: string;
  /** Writes the contract, which takes effect at the next start of the shop. */
  write(prices: 'own' | 'doubled'): void;
  /** Replaces an origin of upstreams with another one in the copy of the contract. */
  redirect(origin: string, to: string): void;
  /** The origins and the environment variables with which the URLs in `x-upstream` entries begin. */
  upstreams: { origins: string[]; variables: string[] };
};

const ORIGIN = /^https?:\/\/[^/{}$]+/i;
const VARIABLE = /^\$\{([A-Za-z_]\w*)\}/;

/** Creates a folder with a copy of a shop's contract and links to its handlers, so that the shop's own folder is never written to. */
export function editShop(shop: string, folder: string): EditedShop {
  const source = readFileSync(join(shop, 'openapi.yaml'), 'utf8');
  mkdirSync(join(folder, 'dist'), { recursive: true });
  for (const part of ['handlers', join('dist', 'handlers')])
    symlinkSync(resolve(shop, part), join(folder, part), 'junction');
  const urls = placesOf(parseDocument(source), 'x-upstream').map(({ value }) => String(value['url']));
  const redirections = new Map<string, string>();
  const write = (prices: 'own' | 'doubled'): void => {
    const document = parseDocument(source);
    for (const { keys, value } of placesOf(document, 'x-upstream')) {
      const url = String(value['url']).replace(ORIGIN, origin => redirections.get(origin) ?? origin);
      document.setIn([...keys, 'url'], url);
    }
    if (prices === 'doubled')
      for (const { keys, value } of placesOf(document, 'x-price'))
        document.setIn([...keys, 'amount'], toDecimal(2n * toAtomic(value['amount'])));
    writeFileSync(join(folder, 'openapi.yaml'), document.toString());
  };
  return {
    folder,
    write,
    redirect: (origin, to) => void redirections.set(origin, to),
    upstreams: { origins: found(urls, ORIGIN, 0), variables: found(urls, VARIABLE, 1) },
  };
}

function found(urls: string[], pattern: RegExp, group: number): string[] {
  return [...new Set(urls.flatMap(url => pattern.exec(url)?.[group] ?? []))];
}

/** All values of an extension in the operations, with their paths in the document. */
function placesOf(
  document: Document,
  extension: string,
): { keys: string[]; value: Record<string, unknown> }[] {
  const { paths } = document.toJS() as { paths?: Record<string, unknown> };
  return Object.entries(paths ?? {}).flatMap(([path, item]) =>
    Object.entries(objectOf(item)).flatMap(([method, operation]) => {
      const value = objectOf(operation)[extension];
      return value === undefined
        ? []
        : [{ keys: ['paths', path, method, extension], value: objectOf(value) }];
    }),
  );
}
