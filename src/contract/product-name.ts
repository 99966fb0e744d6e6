import type { Json } from './json.js';
import { objectOf } from './references.js';

/** The product name that pages show: the title of the contract. */
export function productName({ document }: { document: Json }): string {
  const { title } = objectOf(document.info);
  return typeof title === 'string' && title.trim() !== '' ? title.trim() : 'API';
}
