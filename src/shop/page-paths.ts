import type { Contract } from '../contract/contract.js';
import { MCP_PATH, REFERENCE_PATH } from '../contract/reserved-names.js';

const ONE_SEGMENT = /^\/[a-z][a-z0-9-]*$/;
/** The link to the operator page is kept under this name; see `keepPageLinks`. */
const OPERATOR_PAGE = '/operator-page';

/** The faults in the paths of pages, each in a sentence. With such a path, an operation or another page would never be reached. */
export function pageFaults(
  { paid, given = [], free }: Pick<Contract, 'paid' | 'free'> & Partial<Pick<Contract, 'given'>>,
  pages: readonly { id: string; path: string; routes: readonly { path: string }[] }[],
): string[] {
  const taken = [
    MCP_PATH,
    REFERENCE_PATH,
    OPERATOR_PAGE,
    ...[...paid, ...given, ...free].map(({ path }) => path),
  ];
  return pages.flatMap(({ id, path, routes }, index) => {
    const start = `The pages of ${id} are at ${path}`;
    if (!ONE_SEGMENT.test(path))
      return [`${start}, which is not one segment of lower-case letters, digits and -, such as /panel.`];
    const outside = routes.find(route => !route.path.startsWith('/'));
    if (outside) return [`${start}, but their route '${outside.path}' does not begin with /.`];
    const other = taken.find(each => each === path || each.startsWith(`${path}/`) || each.startsWith('/{'));
    if (other !== undefined)
      return [`${start}, where ${other} is, too. Choose another path for one of them.`];
    const same = pages.findIndex(each => each.path === path);
    return same < index
      ? [`${start}, where the pages of ${pages[same]?.id} already are. Choose another path.`]
      : [];
  });
}
