/**
 * How much of the tests runs (CONTRIBUTING.md, "Which tests run where"): `local` is what `make test` runs, `ci` what `.ci/run` runs.
 * Otherwise everything does: with `make test-all`, or where a file is run by hand.
 */
const EXTENT = process.env['TESTS'] ?? 'all';

/** The rows of a table of which one stands for the others, because a faster test proves those, too: the first, or all of them. */
export function rows<T>(all: readonly T[]): readonly T[] {
  return EXTENT === 'all' ? all : all.slice(0, 1);
}

/** What takes minutes and is shown elsewhere, too, is left to `make test-all`. */
export const isEverythingRun = EXTENT === 'all';

/** How often something is repeated: `few` times show it, `many` look further. */
export function repeated(many: number, few: number): number {
  return EXTENT === 'all' ? many : few;
}

/** A suite that `make test` leaves to `.ci/run`. */
export function describeInCi(title: string, body: (this: Mocha.Suite) => void): void {
  // Looked up at each call: every file has another `describe`.
  if (EXTENT === 'local') describe.skip(`${title} (skipped: .ci/run and make test-all run it)`, body);
  else describe(title, body);
}
