import type { Ledger, LedgerEvent } from '../ledger/store.js';

/** One purchase of `coinslot canary`. Steps that it did not reach are absent. */
export type CanaryRun = {
  /** An id, so that a run reported twice is stored once. */
  id: string;
  /** The time when the run ended, in ms since 1970. */
  at: number;
  tookMs: number;
  /** The canary's wallet. */
  payer: string;
  operation?: string;
  /** The id of the payment. */
  payment?: string;
  /** The amount of the payment, in atomic units. */
  amount?: string;
  /** The signature of the transfer. */
  settlement?: string;
  /** The fault, as a sentence; absent if there was none. */
  fault?: string;
};

type Notes = Pick<Ledger, 'keepMeta' | 'notesOf' | 'forgetNotes' | 'tell'>;

/** The key of a run in the ledger begins with this prefix, which is followed by the time of the run. */
const NOTES = 'canary run ';
/** Enough for a week at one run every two hours. */
const MAX_KEPT = 84;
const TIME_DIGITS = 13;
const MAX_TEXT = 500;
const TEXTS = ['operation', 'payment', 'amount', 'settlement', 'fault'] as const;
const PATTERNS: Partial<Record<keyof CanaryRun, RegExp>> = {
  id: /^[\w-]{8,64}$/,
  payment: /^[0-9a-f]{64}$/,
  amount: /^\d{1,19}$/,
};

/** Reads a run from the JSON that a canary reports. @returns undefined if it is invalid */
export function readCanaryRun(json: string): CanaryRun | undefined {
  const value = objectIn(json);
  const { id, at, tookMs, payer } = value;
  if (!isWhole(at) || !isWhole(tookMs) || !isText('id', id) || !isText('payer', payer)) return undefined;
  const run: CanaryRun = { id, at, tookMs, payer };
  for (const name of TEXTS) {
    const text = value[name];
    if (text === undefined) continue;
    if (!isText(name, text)) return undefined;
    run[name] = text;
  }
  return run;
}

/** The canary's last runs, stored in the ledger so that every server shows them. */
export class CanaryRuns {
  readonly #ledger: Notes;

  constructor(ledger: Notes) {
    this.#ledger = ledger;
  }

  /** Stores a run, and sends an event for a failed one. Both happen once, even if the run is reported several times. */
  async keep(run: CanaryRun): Promise<void> {
    if (run.fault !== undefined) await this.#ledger.tell(failed(run, run.fault));
    const time = String(run.at).padStart(TIME_DIGITS, '0');
    await this.#ledger.keepMeta(`${NOTES}${time} ${run.id}`, JSON.stringify(run));
    const keys = (await this.#ledger.notesOf(NOTES)).map(({ key }) => key);
    if (keys.length > MAX_KEPT) await this.#ledger.forgetNotes(keys.slice(0, -MAX_KEPT));
  }

  /** All stored runs, newest first. */
  async newest(): Promise<CanaryRun[]> {
    const notes = await this.#ledger.notesOf(NOTES);
    return notes.flatMap(({ value }) => readCanaryRun(value) ?? []).reverse();
  }
}

function failed({ id, payer, operation, payment, amount, settlement }: CanaryRun, why: string): LedgerEvent {
  const known = { operation, payment, amount, settlement };
  const facts = Object.fromEntries(Object.entries(known).filter(([, fact]) => fact !== undefined));
  return {
    kind: 'canary.failed',
    ...(payment === undefined ? {} : { subject: payment }),
    once: id,
    facts: { ...(facts as Record<string, string>), payer, why },
  };
}

function objectIn(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isText(name: keyof CanaryRun, value: unknown): value is string {
  if (typeof value !== 'string' || value === '' || value.length > MAX_TEXT) return false;
  return PATTERNS[name]?.test(value) ?? true;
}
