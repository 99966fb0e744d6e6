import { LRUCache } from 'lru-cache';
import type { OfferedHint } from '../ledger/store.js';
import { Resting } from '../net/circuit.js';
import { UNOBSERVED, type FacilitatorAnswered, type Observer } from '../observe/observer.js';
import {
  FacilitatorFault,
  FacilitatorUnreachable,
  type Facilitator,
  type FacilitatorRequest,
  type Supported,
} from './facilitator.js';
import type { Outage, SettleResult, SignResult, Trouble, VerifyResult } from '../rails/rail.js';
import { FacilitatorHealth } from './facilitator-health.js';

/**
 * A configured facilitator. `name` has no credentials and is its key in the ledger. `rate`: how many requests per second it allows, if
 * that is known.
 */
export type FacilitatorEntry = {
  name: string;
  facilitator: Facilitator;
  rate?: number | undefined;
  /** The only fee payer that it has, if it can't have another one: its former ones are not offered any more. */
  onlyFeePayer?: string | undefined;
};

type Member = {
  readonly name: string;
  readonly facilitator: Facilitator;
  readonly health: FacilitatorHealth;
  readonly onlyFeePayer: string | undefined;
  /** The one that it named last. */
  feePayer?: string;
  /** How long it took to say so, in ms. */
  latencyMs?: number;
};

type Status = 'ok' | 'degraded' | 'down';

/** `restSeconds` is set while it rests after failures: nothing is sent to it for so long. `detail` is a line for the operator. */
export type FacilitatorState = {
  name: string;
  status: Status;
  latencyMs: number | undefined;
  restSeconds: number | undefined;
  detail: string;
};

const MAX_FEE_PAYERS = 1_024;
/** How long a fee payer that no facilitator has stays unknown. */
const UNKNOWN_MS = 5_000;

/**
 * The configured facilitators in order of preference. A payment goes to the one whose fee payer it names, because that fee payer is part
 * of what the buyer signed. Only new challenges can name another one.
 */
export class Facilitators implements Facilitator {
  readonly #members: readonly Member[];
  /** The facilitator of each fee payer. */
  readonly #owners = new LRUCache<string, Member>({ max: MAX_FEE_PAYERS });
  readonly #unknown = new LRUCache<string, true>({ max: MAX_FEE_PAYERS, ttl: UNKNOWN_MS });
  readonly #observer: Observer;
  #looking: Promise<unknown> | undefined;
  #choice: string | undefined;
  /** Called when new challenges are to name another fee payer; see `choice`. */
  onChoice: () => void = () => {};
  /** Reads the fee payers that any server on the ledger has offered. */
  recorded: () => Promise<readonly OfferedHint[]> = async () => [];

  constructor(
    entries: readonly [FacilitatorEntry, ...FacilitatorEntry[]],
    now: () => number = Date.now,
    observer: Observer = UNOBSERVED,
  ) {
    this.#observer = observer;
    this.#members = entries.map(({ name, facilitator, rate, onlyFeePayer }) => ({
      name,
      facilitator,
      onlyFeePayer,
      health: new FacilitatorHealth(rate, now),
    }));
  }

  /** In order of preference. */
  get names(): string[] {
    return this.#members.map(({ name }) => name);
  }

  /** The fee payer that each facilitator named last. */
  get feePayers(): string[] {
    return this.#members.flatMap(({ feePayer }) => (feePayer === undefined ? [] : [feePayer]));
  }

  /** The name of the facilitator that pays with this fee payer; undefined if that is not known here. */
  nameOf(feePayer: string): string | undefined {
    return this.#owners.get(feePayer)?.name;
  }

  /**
   * The fee payer for new challenges: that of the first facilitator that answers usefully and is not near its limit, else of the first
   * that answers usefully, else of the first that answers. Undefined if none does.
   */
  get choice(): string | undefined {
    const able = this.#members.filter(({ health, feePayer }) => feePayer !== undefined && health.available);
    const useful = able.filter(({ health }) => !health.doubtful);
    return (useful.find(({ health }) => !health.nearLimit) ?? useful[0] ?? able[0])?.feePayer;
  }

  /** Whether the facilitator of this fee payer is known to be down, and when to try again. */
  outage(feePayer: string): Outage | undefined {
    const member = this.#owners.get(feePayer);
    if (!member || member.health.available) return undefined;
    return { name: member.name, retryAfterSeconds: member.health.retryAfterSeconds };
  }

  /** Whether the facilitator of this fee payer gave a usable answer the last time it was asked about a payment. */
  isHealthy(feePayer: string): boolean {
    return this.#owners.get(feePayer)?.health.healthy ?? false;
  }

  /** The same, after a look into the ledger if it is not known here. */
  async findName(feePayer: string): Promise<string | undefined> {
    if (!this.#owners.has(feePayer)) this.learn(await this.recorded());
    return this.nameOf(feePayer);
  }

  /** The facilitators that may pay with this fee payer. */
  namesFor(feePayer: string): string[] {
    const may = this.#members.filter(({ onlyFeePayer }) => (onlyFeePayer ?? feePayer) === feePayer);
    return may.map(({ name }) => name);
  }

  /**
   * The fee payer for the first challenges: of the first facilitator that has just answered. If none did, the last one in the ledger.
   * @throws FacilitatorFault
   */
  firstFeePayer([last]: readonly OfferedHint[]): string {
    const feePayer = this.choice ?? last?.hint;
    if (feePayer !== undefined) return feePayer;
    throw new FacilitatorFault(
      'No facilitator answers. Start one, or set FACILITATOR_URL to one that answers.',
    );
  }

  /**
   * Takes over what the ledger knows. Records without a name are those of the first facilitator.
   * @returns those of facilitators that are still configured and may still have them
   */
  learn(offered: readonly OfferedHint[]): OfferedHint[] {
    return offered.filter(({ hint: feePayer, by }) => {
      const recorded = by === undefined ? this.#members[0] : this.#members.find(({ name }) => name === by);
      const member = this.#owners.get(feePayer) ?? recorded;
      if (!member || (member.onlyFeePayer ?? feePayer) !== feePayer) return false;
      this.#owners.set(feePayer, member);
      member.feePayer ??= feePayer;
      return true;
    });
  }

  /**
   * Asks all facilitators for their fee payers, but for those that rest.
   * @returns the errors, by name
   */
  async refresh(network: string): Promise<Map<string, unknown>> {
    const failures = new Map<string, unknown>();
    const ask = async (member: Member): Promise<void> => {
      try {
        await this.#ask(member, network);
      } catch (error) {
        if (!(error instanceof Resting)) failures.set(member.name, error);
      }
    };
    await Promise.all(this.#members.map(ask));
    return failures;
  }

  /** Asks those that have rested whether they answer again. Never rejects. */
  async probe(network: string): Promise<void> {
    const rested = this.#members.filter(({ health }) => health.mayProbe);
    await Promise.allSettled(rested.map(member => this.#ask(member, network)));
    this.#choose();
  }

  /** Of the facilitator that new challenges name. */
  async supported(network: string): Promise<Supported> {
    const failures = await this.refresh(network);
    const { choice } = this;
    if (choice !== undefined) return { feePayer: choice };
    throw new FacilitatorUnreachable(
      [...failures.values()].map(failure => (failure as Error).message).join('; ') ||
        'no facilitator answers',
    );
  }

  async verify(request: FacilitatorRequest): Promise<VerifyResult> {
    const member = await this.#memberFor(request);
    if (!member) return { kind: 'unavailable', detail: nobodyHas(request) };
    this.#asking(member);
    return this.#heard(member, 'verify', orTrouble(member.facilitator.verify(request), unavailable));
  }

  async sign(request: FacilitatorRequest): Promise<SignResult> {
    const member = await this.#memberFor(request);
    if (!member) return { kind: 'unavailable', detail: nobodyHas(request) };
    if (!member.facilitator.sign) return { kind: 'not-needed' };
    return this.#heard(member, 'sign', orTrouble(member.facilitator.sign(request), unavailable));
  }

  async settle(request: FacilitatorRequest): Promise<SettleResult> {
    const member = await this.#memberFor(request);
    if (!member) return { kind: 'unknown', reason: nobodyHas(request), signature: '' };
    this.#asking(member);
    return this.#heard(member, 'settle', orTrouble(member.facilitator.settle(request), unknown));
  }

  async close(): Promise<void> {
    await Promise.all(this.#members.map(({ facilitator }) => facilitator.close()));
  }

  /** Which of them are asked, and which rest after failures. */
  breakers(): { name: string; open: boolean }[] {
    return this.#members.map(({ name, health }) => ({ name, open: !health.available }));
  }

  /** Each of them, in order of preference. */
  states(): FacilitatorState[] {
    return this.#members.map(({ name, health, latencyMs }) => ({
      name,
      status: health.healthy ? 'ok' : health.available ? 'degraded' : 'down',
      latencyMs,
      restSeconds: health.available ? undefined : health.retryAfterSeconds,
      detail: health.line,
    }));
  }

  /** Of all together, for `/health`. `detail` names each facilitator and its state. */
  report(): { status: Status; latencyMs?: number; detail?: string } {
    const able = this.#members.filter(({ health }) => health.available);
    const well = this.#members.every(({ health }) => health.healthy);
    const detail = this.#members.map(({ name, health }) => `${name}: ${health.line}`).join('; ');
    const latencyMs = able[0]?.latencyMs;
    return {
      status: well ? 'ok' : able.length === 0 ? 'down' : 'degraded',
      ...(latencyMs === undefined ? {} : { latencyMs }),
      ...(well && this.#members.length === 1 ? {} : { detail }),
    };
  }

  #asking({ health }: Member): void {
    health.asking();
    this.#choose();
  }

  async #heard<T extends VerifyResult | SignResult | SettleResult>(
    member: Member,
    request: FacilitatorAnswered['request'],
    answer: Promise<T>,
  ): Promise<T> {
    const began = performance.now();
    const result = await answer;
    const trouble = troubleOf(result);
    const { health, name } = member;
    const ms = performance.now() - began;
    this.#observer.tell({
      kind: 'facilitator',
      facilitator: name,
      request,
      ms,
      ...resultOf(result, trouble),
    });
    const counted = trouble ? health.failed(trouble, whyOf(result)) : health.answered();
    void counted.then(() => this.#choose());
    return result;
  }

  /** Reports a change of the choice. */
  #choose(): void {
    const { choice } = this;
    if (choice === undefined || choice === this.#choice) return;
    this.#choice = choice;
    this.onChoice();
  }

  async #ask(member: Member, network: string): Promise<void> {
    const began = performance.now();
    const { facilitator, health } = member;
    const told = { kind: 'facilitator', facilitator: member.name, request: 'supported' } as const;
    const supported = await health.probe(
      () => facilitator.supported(network),
      error => {
        const why = (error as Error).message;
        this.#observer.tell({ ...told, result: 'failed', ms: performance.now() - began, why });
        return error instanceof FacilitatorUnreachable ? error.trouble : undefined;
      },
    );
    const ms = performance.now() - began;
    member.latencyMs = Math.round(ms);
    this.#observer.tell({ ...told, result: 'ok', ms });
    member.feePayer = supported.feePayer;
    for (const each of [supported.feePayer, ...(supported.signers ?? [])]) this.#owners.set(each, member);
  }

  /** Looks into the ledger, and asks all facilitators which fee payers they have, if this one is not known. */
  async #memberFor(request: FacilitatorRequest): Promise<Member | undefined> {
    const feePayer = feePayerIn(request);
    const known = this.#owners.get(feePayer);
    if (known || this.#unknown.has(feePayer)) return known;
    if ((await this.findName(feePayer)) === undefined) {
      this.#looking ??= this.refresh(request.requirements.network).finally(() => (this.#looking = undefined));
      await this.#looking;
    }
    const found = this.#owners.get(feePayer);
    if (!found) this.#unknown.set(feePayer, true);
    return found;
  }
}

/** A failure of the facilitator, but for a settlement that it answered and is unknown all the same. */
function troubleOf(result: VerifyResult | SignResult | SettleResult): Trouble | undefined {
  if (result.kind === 'unavailable') return ('trouble' in result && result.trouble) || { rest: false };
  return result.kind === 'unknown' ? result.trouble : undefined;
}

function resultOf(
  result: VerifyResult | SignResult | SettleResult,
  trouble: Trouble | undefined,
): Pick<FacilitatorAnswered, 'result' | 'why'> {
  if (result.kind === 'refused') return { result: 'refused', why: result.reason };
  return trouble || result.kind === 'unknown' ? { result: 'failed', why: whyOf(result) } : { result: 'ok' };
}

async function orTrouble<T>(answer: Promise<T>, failed: (why: string, trouble: Trouble) => T): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    return failed(String(error), { rest: false });
  }
}

function unavailable(detail: string, trouble: Trouble): VerifyResult & SignResult & { kind: 'unavailable' } {
  return { kind: 'unavailable', detail, trouble };
}

function unknown(reason: string, trouble: Trouble): SettleResult {
  return { kind: 'unknown', reason, signature: '', trouble };
}

function whyOf(result: VerifyResult | SignResult | SettleResult): string {
  if ('detail' in result) return result.detail;
  return 'reason' in result ? result.reason : 'no usable answer';
}

function feePayerIn({ requirements }: FacilitatorRequest): string {
  return String(requirements.extra.feePayer);
}

function nobodyHas(request: FacilitatorRequest): string {
  return `no facilitator in FACILITATOR_URL has the fee payer ${feePayerIn(request)}`;
}
