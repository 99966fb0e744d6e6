/**
 * How many of the tests run (CONTRIBUTING.md, "Which tests run where"): `local` for `make test`, `ci` for `.ci/run`.
 * With `make test-all`, or if a file is run by hand, all of them run.
 */
const EXTENT = process.env['TESTS'] ?? 'all';

/** The rows of a table to run: all of them, or only the first one where a faster test covers the others. */
export function rows<T>(all: readonly T[]): readonly T[] {
  return EXTENT === 'all' ? all : all.slice(0, 1);
}

/** Guards tests that take minutes and whose subject other tests cover, too; only `make test-all` runs them. */
export const isEverythingRun = EXTENT === 'all';

/** How many times a random test repeats: `few` times as a check, `many` times in a full run. */
export function repeated(many: number, few: number): number {
  return EXTENT === 'all' ? many : few;
}

/** Defines a suite that `make test` skips and `.ci/run` runs. */
export function describeInCi(title: string, body: (this: Mocha.Suite) => void): void {
  // Resolved at each call, because every test file has its own `describe`.
  if (EXTENT === 'local') describe.skip(`${title} (skipped: .ci/run and make test-all run it)`, body);
  else describe(title, body);
}
