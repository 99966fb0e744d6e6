import type { HeardVerdict } from '../facilitators/listing-verdicts.js';
import type { Finding } from './preflight.js';

const subject = 'directories';
const MEND = 'correct its descriptions, schemas or examples in openapi.yaml, or set x-listed: false';

/** The last answer of each facilitator's directory, from the ledger. */
export function directoryFindings(
  facilitators: readonly string[],
  heard: readonly HeardVerdict[],
): Finding[] {
  return facilitators.flatMap(name =>
    findingsOf(
      name,
      heard.filter(each => each.facilitator === name),
    ),
  );
}

function findingsOf(name: string, heard: readonly HeardVerdict[]): Finding[] {
  if (heard.length === 0) {
    const found = `${name} has not yet reported a listing; each sale through it requests one`;
    return [{ level: 'ok', subject, found }];
  }
  const listed = heard.filter(({ status }) => status === 'success' || status === 'processing');
  const names = listed.map(({ operation, transport }) => `${operation} (${transport})`).toSorted();
  const good: Finding = { level: 'ok', subject, found: `${name} lists ${names.join(', ')}` };
  const bad = heard.filter(each => !listed.includes(each)).map(each => complaint(name, each));
  return names.length > 0 ? [good, ...bad] : bad;
}

function complaint(name: string, { operation, transport, status, why, at }: HeardVerdict): Finding {
  const since = `since ${new Date(at).toISOString()}: ${why ?? 'no reason given'}`;
  return status === 'refused'
    ? { level: 'warning', subject, found: `${name} refuses requests that ask to be listed, ${since}` }
    : {
        level: 'warning',
        subject,
        found: `${name} does not list ${operation} (${transport}), ${since}`,
        todo: MEND,
      };
}
