import type { PricedOperation } from '../contract/contract.js';

/**
 * The first lines for a person at the terminal. Its links contain tokens, so it is only for a terminal.
 * @param sold the operations that can be bought from this machine
 * @param links `buy` is the command that buys, as it is typed in this folder
 */
export function bannerOf(
  url: string,
  links: { operator: string; pages: readonly { name: string; url: string }[]; buy: string },
  sold: readonly Pick<PricedOperation, 'id' | 'request'>[],
): string {
  const lines = [
    ['Server', url],
    ['Operator', links.operator],
  ];
  for (const { name, url: opens } of links.pages) lines.push([name, opens]);
  const first = sold.find(({ request }) => request !== undefined);
  if (first?.request)
    lines.push(['Buy a call', `${links.buy} ${first.id} ${quoted(JSON.stringify(first.request.example))}`]);
  return `\n${lines.map(([name = '', value = '']) => `  ${name.padEnd(11)} ${value}\n`).join('')}\n`;
}

/**
 * The lines that replace the banner when the output is a pipe or a file: the addresses of the pages, without
 * the tokens that open them.
 */
export function linksOf(
  url: string,
  { operator, pages }: { operator: string; pages: readonly { name: string; url: string }[] },
): Record<string, string> {
  const bare = (link: string): string => {
    const { origin, pathname } = new URL(link);
    return origin + pathname;
  };
  const named = pages.map((page): [string, string] => [page.name, bare(page.url)]);
  return {
    shop: `${url}/`,
    reference: `${url}/docs`,
    operator: bare(operator),
    ...Object.fromEntries(named),
  };
}

/** Quotes a string for a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
