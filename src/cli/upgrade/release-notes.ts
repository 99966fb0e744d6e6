/** A release in the changelog, with its lines. `version`: 'Unreleased' if it is not dated yet. */
type Release = { version: string; lines: string[] };

/** The lines of a changelog that concern authors of shops, and the number of other lines. */
export type Notes = { shop: string[]; others: number };

/** Matches the lines for authors of shops: those that begin with `Handlers:`, and those that name parts of a contract or the build. */
const FOR_SHOPS = /^Handlers:|`x-|openapi\.yaml|coinslot (build|dev)\b/;

/**
 * The lines of a changelog since a version.
 * @param since undefined: since the release before the newest
 */
export function notesSince(changelog: string, since: string | undefined): Notes {
  const releases = releasesOf(changelog);
  const to = releases.findIndex(({ version }) => version === since);
  const lines = releases.slice(0, to >= 0 ? to : 2).flatMap(release => release.lines);
  const shop = lines.filter(line => FOR_SHOPS.test(line));
  return { shop, others: lines.length - shop.length };
}

function releasesOf(changelog: string): Release[] {
  return changelog
    .split(/^## /m)
    .slice(1)
    .map(part => {
      const [heading = '', ...rest] = part.split('\n');
      const lines = rest.filter(line => line.startsWith('- ')).map(line => line.slice(2));
      return { version: /^\S+/.exec(heading)?.[0] ?? '', lines };
    });
}
