import { Broken, type Findings } from '../conformance/findings.js';
import { isObject, textOf } from '../conformance/http-call.js';
import { receiversOf } from '../conformance/listing-checks.js';
import { askDirectory, listedIn, posted, standingOf, type Heard, type Standing } from './directory.js';
import { inTurns, nameOf, type ReadShop } from './read-shop.js';

/** The URL of Coinbase's facilitator. Validating and listing need no key. */
export const COINBASE = 'https://api.cdp.coinbase.com/platform/v2/x402';

const DIRECTORY = 'Coinbase';
/** The maximum number of operations to validate. Coinbase calls the shop for each one. */
const MAX_VALIDATED = 20;
const VALIDATE_MS = 30_000;
const MAX_RECEIVERS = 4;
const MAX_COMPLAINTS = 3;
/** The steps by which a shop gets into Coinbase's directory. */
export const COINBASE_STEPS = [
  'sell each operation once through Coinbase: add https://api.cdp.coinbase.com/platform/v2/x402 to FACILITATOR_URL or CATALOGUE_FACILITATORS, with CDP_API_KEY_ID and CDP_API_KEY_SECRET',
  'keep PAY_TO unchanged, because entries belong to it. New entries appear within about six hours',
];

/**
 * Asks Coinbase's validator about each operation, and its directory for entries that pay the shop's receivers.
 * @returns the standing; the validator's complaints are in the findings
 */
export async function askCoinbase(shop: ReadShop, url: string, findings: Findings): Promise<Standing> {
  const silent = await validate(shop, url, findings);
  const entries: unknown[] = [];
  for (const payTo of allReceivers(shop).slice(0, MAX_RECEIVERS)) {
    const heard = await askDirectory(
      `${url}/discovery/merchant?payTo=${encodeURIComponent(payTo)}&limit=1000`,
    );
    const found = entriesOf(heard);
    if (typeof found === 'string')
      return { directory: DIRECTORY, state: 'unknown', found, next: COINBASE_STEPS };
    entries.push(...found);
  }
  const standing = standingOf(DIRECTORY, listedIn(entries, shop), shop, COINBASE_STEPS);
  return silent === undefined
    ? standing
    : { ...standing, found: `${standing.found}; its validator ${silent}` };
}

function allReceivers({ asked }: ReadShop): string[] {
  return [...new Set([...receiversOf(asked).values()].flatMap(all => [...all]))];
}

/** The entries in an answer, or the reason why there are none. For an unknown receiver, the status is 404. */
function entriesOf(heard: Heard): unknown[] | string {
  if ('why' in heard) return `it ${heard.why}`;
  if (heard.status === 404) return [];
  if (heard.status !== 200) return `it answered ${heard.status}`;
  const { resources, items } = heard.json;
  const entries = resources ?? items;
  return Array.isArray(entries) ? (entries as unknown[]) : 'its answer is not a list of entries';
}

/** @returns why the validator gave no answer, if it gave none */
async function validate({ asked }: ReadShop, url: string, findings: Findings): Promise<string | undefined> {
  const answered = asked.filter(({ challenge }) => challenge).slice(0, MAX_VALIDATED);
  const verdicts = await inTurns(answered, async ({ operation }) => ({
    operation,
    heard: await askDirectory(
      `${url}/validate`,
      posted({ resource: operation.url, method: operation.method }),
      VALIDATE_MS,
    ),
  }));
  let silent: string | undefined;
  for (const { operation, heard } of verdicts) {
    const verdict = verdictOf(heard);
    if (typeof verdict === 'string') {
      silent ??= verdict;
      continue;
    }
    await findings.must(`Coinbase's validator accepts ${nameOf(operation)}`, () => {
      if (!verdict.valid) throw new Broken(verdict.complaints.join('; ') || 'it gives no reason');
    });
  }
  return silent;
}

type Verdict = { valid: boolean; complaints: string[] };

/** The validator's verdict on one operation, or the reason why there is none. */
function verdictOf(heard: Heard): Verdict | string {
  if ('why' in heard) return heard.why;
  const { valid, preflight, simulation } = heard.json;
  if (heard.status >= 500 || typeof valid !== 'boolean') return `answered ${heard.status} without a verdict`;
  const failed = (Array.isArray(preflight) ? (preflight as unknown[]) : [])
    .filter(isObject)
    .filter(each => each['passed'] === false)
    .map(
      ({ check, name, detail }) =>
        `${textOf(check ?? name)}${detail === undefined ? '' : `: ${textOf(detail)}`}`,
    );
  const outcome = isObject(simulation) ? simulation['outcome'] : undefined;
  const refused =
    outcome === undefined || outcome === 'accepted' ? [] : [`a listing would be ${textOf(outcome)}`];
  return {
    valid,
    complaints: [...failed.slice(0, MAX_COMPLAINTS), ...refused].map(text => text.slice(0, 300)),
  };
}
