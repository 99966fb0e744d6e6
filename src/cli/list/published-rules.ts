import {
  checkL2ForOpenAPI,
  checkL4ForOpenAPI,
  getL3ForOpenAPI,
  getOpenAPI,
  getWarningsFor402Body,
  getWarningsForL2,
  getWarningsForL3,
  getWarningsForL4,
  getWarningsForOpenAPI,
} from '@agentcash/discovery';
import type { Json } from '../../contract/json.js';
import type { Asked } from '../conformance/challenge-checks.js';
import { must, type Findings } from '../conformance/findings.js';
import { nameOf, type ReadShop } from './read-shop.js';

/** A complaint from one of the packages. */
type Complaint = { code: string; severity: 'error' | 'warn' | 'info'; message: string; hint?: string };
type Method = Parameters<typeof getL3ForOpenAPI>[2];

const READ_MS = 20_000;
const MAX_NAMED = 3;
/** The packages' rules that this command also checks itself. The packages' complaints about them are left out. */
const OWN = ['OPENAPI_CONTACT_MISSING'];

/** The rules of x402scan and AgentCash: `@agentcash/discovery` checks the documents that were read; it sends no requests itself. */
export async function checkAgentcash({ catalogue, asked }: ReadShop, findings: Findings): Promise<void> {
  const { document } = catalogue;
  if (!document) return;
  const url = `data:application/json;base64,${Buffer.from(JSON.stringify(document)).toString('base64')}`;
  const read = await getOpenAPI(catalogue.base, undefined, AbortSignal.timeout(READ_MS), url);
  const openapi = read.isOk() ? read.value : null;
  const found: [where: string, Complaint][] = getWarningsForOpenAPI(openapi).map(each => ['', each]);
  if (openapi && !('parseFailure' in openapi)) {
    const whole = [
      ...getWarningsForL2(checkL2ForOpenAPI(openapi)),
      ...getWarningsForL4(checkL4ForOpenAPI(openapi)),
    ];
    found.push(...whole.map((each): [string, Complaint] => [each.path ?? '', each]));
    for (const { operation, challenge } of asked) {
      const described = getL3ForOpenAPI(openapi, operation.path, operation.method as Method);
      const complaints = [
        ...getWarningsForL3(described),
        ...(challenge ? getWarningsFor402Body(challenge) : []),
      ];
      found.push(...complaints.map((each): [string, Complaint] => [nameOf(operation), each]));
    }
  }
  await report('@agentcash/discovery', found, findings);
}

async function report(
  judge: string,
  found: readonly [where: string, Complaint][],
  findings: Findings,
): Promise<void> {
  const kinds = new Map<string, { complaint: Complaint; places: string[] }>();
  for (const [where, complaint] of found) {
    if (complaint.severity === 'info' || OWN.includes(complaint.code)) continue;
    const kind = kinds.get(complaint.code) ?? { complaint, places: [] };
    if (where && !kind.places.includes(where)) kind.places.push(where);
    kinds.set(complaint.code, kind);
  }
  if (kinds.size === 0) return findings.must(`${judge} finds no fault`, () => {});
  for (const { complaint, places } of kinds.values()) {
    const { severity, code, message, hint } = complaint;
    const more = places.length > MAX_NAMED ? ` and ${places.length - MAX_NAMED} more` : '';
    const at = places.length > 0 ? ` (${places.slice(0, MAX_NAMED).join(', ')}${more})` : '';
    await findings[severity === 'error' ? 'must' : 'should'](`${judge}: ${code}`, () =>
      must(false, `${message}${at}${hint ? `. ${hint}` : ''}`),
    );
  }
}

type Verdict = { valid: boolean; errors?: string[] };
type BazaarValidators = {
  validateDiscoveryExtension(bazaar: Json): Verdict;
  validateDiscoveryExtensionSpec(bazaar: Json): Verdict;
};

/**
 * The rules of facilitators' directories: those of `@x402/extensions`, if it is installed. It is not a dependency, because it would
 * bring 120 MB of another chain's clients for two functions. The directories' most important rule is checked
 * even without it: an example must match its schema.
 * @returns false if it is not installed
 */
export async function checkBazaars(asked: readonly Asked[], findings: Findings): Promise<boolean> {
  const validators = await loadValidators();
  if (!validators) return false;
  for (const { operation, challenge } of asked) {
    const bazaar = challenge?.extensions?.['bazaar'] as Json | undefined;
    if (!bazaar) continue;
    await findings.must(`@x402/extensions accepts what ${nameOf(operation)} declares to directories`, () => {
      const verdicts = [
        validators.validateDiscoveryExtension(bazaar),
        validators.validateDiscoveryExtensionSpec(bazaar),
      ];
      const errors = verdicts.flatMap(({ valid, errors: all = [] }) => (valid ? [] : [all.join('; ')]));
      must(errors.length === 0, `its extensions.bazaar is refused: ${errors[0]}`);
    });
  }
  return true;
}

async function loadValidators(): Promise<BazaarValidators | undefined> {
  // A variable, so that the compiler does not resolve the package, which may be missing.
  const name: string = '@x402/extensions/bazaar';
  try {
    return (await import(name)) as BazaarValidators;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
