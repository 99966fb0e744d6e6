import { isObject } from '../conformance/http-call.js';
import { askDirectory, listedIn, standingOf, type Standing } from './directory.js';
import type { ReadShop } from './read-shop.js';

/** The URL of PayAI's facilitator. Its directory has no search by seller, so it is read page by page. */
export const PAYAI = 'https://facilitator.payai.network';

const DIRECTORY = 'PayAI';
const PAGE = 1_000;
const MAX_PAGES = 60;
const ALL_MS = 90_000;
/** The steps by which a shop gets into PayAI's directory. */
export const PAYAI_STEPS = [
  'sell each operation once through PayAI, which lists it within minutes: add https://facilitator.payai.network to FACILITATOR_URL or, with a facilitator of your own, to CATALOGUE_FACILITATORS',
  'coinslot check then shows whether PayAI accepted the entry, and if not, why',
];

/** Reads the directory until every operation is found, the end is reached, or the time is up. */
export async function askPayAi(shop: ReadShop, url: string): Promise<Standing> {
  const until = Date.now() + ALL_MS;
  const { sold } = shop.catalogue;
  const entries: unknown[] = [];
  let seen = 0;
  let total = Infinity;
  for (let page = 0; page < MAX_PAGES && seen < total; page++) {
    const left = until - Date.now();
    if (left <= 0) break;
    const heard = await askDirectory(
      `${url}/discovery/resources?limit=${PAGE}&offset=${seen}`,
      {},
      Math.min(20_000, left),
    );
    if ('why' in heard) return unknown(`it ${heard.why}`);
    const { items, pagination } = heard.json;
    if (heard.status !== 200 || !Array.isArray(items))
      return unknown(`it answered ${heard.status} without entries`);
    if (items.length === 0) {
      total = seen;
      break;
    }
    seen += items.length;
    total = totalOf(pagination) ?? (items.length < PAGE ? seen : Infinity);
    entries.push(...ofHost(items as unknown[], shop));
    if (listedIn(entries, shop).length === sold.length) break;
  }
  const listed = listedIn(entries, shop);
  const standing = standingOf(DIRECTORY, listed, shop, PAYAI_STEPS);
  if (seen >= total || listed.length === sold.length) return standing;
  return { ...standing, found: `${standing.found} (among its first ${seen} entries; it has more)` };
}

function unknown(found: string): Standing {
  return { directory: DIRECTORY, state: 'unknown', found, next: PAYAI_STEPS };
}

function totalOf(pagination: unknown): number | undefined {
  const total = isObject(pagination) ? pagination['total'] : undefined;
  return typeof total === 'number' && Number.isSafeInteger(total) && total >= 0 ? total : undefined;
}

/** The entries that may be this shop's, so that tens of thousands of others need not be kept. */
function ofHost(items: readonly unknown[], { catalogue: { base } }: ReadShop): unknown[] {
  const { host } = new URL(base);
  return items.filter(item => isObject(item) && JSON.stringify(item['resource'] ?? '').includes(host));
}
