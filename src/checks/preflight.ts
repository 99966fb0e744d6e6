import { ConfigFault } from '../config/setting-reader.js';
import { withDeadline } from '../net/deadline.js';
import type { Log } from '../net/log.js';

/**
 * The result of a check. `subject`: the variable or thing that was checked. `found` and `todo` are sentence fragments without a full stop;
 * `todo` says what to do. `fatal`: an error that keeps the server from starting even in the sandbox.
 */
export type Finding = {
  level: 'ok' | 'warning' | 'error';
  subject: string;
  found: string;
  todo?: string;
  fatal?: boolean;
};

/** A check of one thing that the server depends on. It may throw if it can't be carried out. */
export type Check = { subject: string; look(signal: AbortSignal): Promise<Finding[]> };

/** How long each check may take. All run in parallel. */
const CHECK_MS = 8_000;
const NEVER = new AbortController().signal;

/** Runs all checks in parallel. One that can't be carried out gives a warning. Never rejects. */
export async function runChecks(checks: readonly Check[], ms = CHECK_MS): Promise<Finding[]> {
  return (await Promise.all(checks.map(check => carryOut(check, ms)))).flat();
}

async function carryOut(check: Check, ms: number): Promise<Finding[]> {
  try {
    return await withDeadline(ms, NEVER, signal => check.look(signal));
  } catch (error) {
    return [{ level: 'warning', subject: check.subject, found: `not checked: ${(error as Error).message}` }];
  }
}

/** A finding without its level, in one line. */
export function sentenceOf({ subject, found, todo }: Finding): string {
  return `${subject}: ${found}${todo === undefined ? '' : `: ${todo}`}`.replace(/\s+/g, ' ');
}

/**
 * Logs the findings. Outside the sandbox, an error keeps the server from starting.
 * @throws ConfigFault with all errors
 */
export function heed(
  findings: readonly Finding[],
  { isSandbox, log }: { isSandbox: boolean; log: Log },
): void {
  for (const finding of findings) if (finding.level === 'warning') log.warn({}, sentenceOf(finding));
  const errors = findings.filter(({ level }) => level === 'error');
  const stops = isSandbox ? errors.filter(({ fatal }) => fatal) : errors;
  if (stops.length > 0) throw new ConfigFault(stops.map(sentenceOf).join('\n'));
  for (const error of errors)
    log.error({}, `${sentenceOf(error)} (outside the sandbox, this keeps the server from starting)`);
}
