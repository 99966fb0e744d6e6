import { LRUCache } from 'lru-cache';
import type { OfferedHint } from '../ledger/store.js';
import { Resting } from '../net/circuit.js';
import { UNOBSERVED, type FacilitatorAnswered, type Observer } from '../observe/observer.js';
import {
  FacilitatorFault,
  FacilitatorUnreachable,
  type Facilitator,
  type FacilitatorRequest,
} from './facilitator.js';
import type { Outage, SettleResult, SignResult, Trouble, VerifyResult } from '../rails/rail.js';
import type { Went } from './directory-offers.js';
import { SIGN_AGAIN } from '../rails/solana/solana-rail.js';
import { FacilitatorHealth } from './facilitator-health.js';
import type { Listing } from './listings.js';

/**
 * A configured facilitator. `name` has no credentials and is its key in the ledger. `rate`: how many requests per second it allows, if
 * that is known.
 */
export type FacilitatorEntry = {
  name: string;
  facilitator: Facilitator;
  rate?: number | undefined;
  /** The facilitator's only fee payer, if it can't have another one; former ones are no longer offered. */
  onlyFeePayer?: string | undefined;
  /** Set if the facilitator is used only for its directory: it settles only payments that are offered to get an operation listed there. */
  forDirectory?: boolean | undefined;
  /**
   * Set if the facilitator settles payments that name its fee payer but is never offered: the former or next key of the facilitator
   * with the same name.
   */
  second?: boolean | undefined;
};

type Member = Readonly<
  Pick<FacilitatorEntry, 'name' | 'facilitator' | 'onlyFeePayer' | 'forDirectory' | 'second'>
> & {
  readonly health: FacilitatorHealth;
  /** The fee payer in the last `/supported` answer. */
  feePayer?: string;
  /** The duration of the last `/supported` request, in ms. */
  latencyMs?: number;
};

type Status = 'ok' | 'degraded' | 'down';

/** `restSeconds`: set while the facilitator rests after failures; nothing is sent to it for this long. `detail`: a line for the operator. */
export type FacilitatorState = {
  name: string;
  status: Status;
  latencyMs: number | undefined;
  restSeconds: number | undefined;
  detail: string;
};

const MAX_FEE_PAYERS = 1_024;

/**
 * The configured facilitators in order of preference. A payment goes to the one whose fee payer it names, because that fee payer is part
 * of what the buyer signed. Only new challenges can name another one.
 */
export class Facilitators {
  readonly #members: readonly Member[];
  /** The facilitator of each fee payer. */
  readonly #owners = new LRUCache<string, Member>({ max: MAX_FEE_PAYERS });
  readonly #observer: Observer;
  /** Reads the fee payers that any server on the ledger has offered. */
  recorded: () => Promise<readonly OfferedHint[]> = async () => [];
  /** Receives the outcomes of payments at facilitators used only for their directory. */
  onDirectory: (name: string, listing: Listing, went: Went) => void = () => {};

  constructor(
    entries: readonly [FacilitatorEntry, ...FacilitatorEntry[]],
    now: () => number = Date.now,
    observer: Observer = UNOBSERVED,
  ) {
    this.#observer = observer;
    this.#members = entries.map(({ name, facilitator, rate, onlyFeePayer, forDirectory, second }) => ({
      name,
      facilitator,
      onlyFeePayer,
      forDirectory,
      second,
      health: new FacilitatorHealth(rate, now),
    }));
  }

  /** The facilitators' names, in order of preference. */
  get names(): string[] {
    return this.#first.map(({ name }) => name);
  }

  /** The fee payer that each facilitator named last. */
  get feePayers(): string[] {
    return this.#first.flatMap(({ feePayer }) => (feePayer === undefined ? [] : [feePayer]));
  }

  /** The name of the facilitator that pays with this fee payer; undefined if that is not known here. */
  nameOf(feePayer: string): string | undefined {
    return this.#owners.get(feePayer)?.name;
  }

  /** Like `nameOf`, but also reads the ledger if the fee payer is not known here. */
  async findName(feePayer: string): Promise<string | undefined> {
    if (!this.#owners.has(feePayer)) this.learn(await this.recorded());
    return this.nameOf(feePayer);
  }

  /**
   * The fee payer for new challenges: that of the first facilitator with usable answers that is not near its limit. If all are near their limits,
   * that of the first with usable answers; if none has usable answers, that of the first that answers. Undefined if none answers.
   */
  get choice(): string | undefined {
    const able = this.#sellers.filter(({ health, feePayer }) => feePayer !== undefined && health.available);
    const useful = able.filter(({ health }) => !health.doubtful);
    return (useful.find(({ health }) => !health.nearLimit) ?? useful[0] ?? able[0])?.feePayer;
  }

  /** Whether the facilitator of this name is used only for its directory. */
  isForDirectory(name: string): boolean {
    return this.#members.some(each => each.forDirectory && each.name === name);
  }

  /** The fee payer of a facilitator used only for its directory, if it is healthy. */
  offerable(name: string): string | undefined {
    const member = this.#members.find(each => each.forDirectory && each.name === name);
    const { available, doubtful, nearLimit } = member?.health ?? { available: false };
    const its = member?.feePayer !== undefined && this.#owners.get(member.feePayer) === member;
    return its && available && !doubtful && !nearLimit ? member.feePayer : undefined;
  }

  /** The fee payer of this server's own facilitator, if it answers. */
  get own(): string | undefined {
    const member = this.#first.find(({ onlyFeePayer }) => onlyFeePayer !== undefined);
    return member?.health.available ? member.feePayer : undefined;
  }

  /** Whether the facilitator of this fee payer is known to be down, and when to try again. */
  outage(feePayer: string): Outage | undefined {
    const member = this.#owners.get(feePayer);
    if (!member || member.health.available) return undefined;
    return { name: member.name, retryAfterSeconds: member.health.retryAfterSeconds };
  }

  /**
   * Whether the facilitator of this fee payer gave a usable answer the last time it was asked about a payment. For a rarely used one that
   * means little, so its payments are verified first.
   */
  isHealthy(feePayer: string): boolean {
    const member = this.#owners.get(feePayer);
    return member !== undefined && !member.forDirectory && member.health.healthy;
  }

  /** The facilitators that may pay with this fee payer. */
  namesFor(feePayer: string): string[] {
    const may = this.#members.filter(({ onlyFeePayer }) => (onlyFeePayer ?? feePayer) === feePayer);
    return may.map(({ name }) => name);
  }

  /**
   * The fee payer for the first challenges: from the first facilitator that has just answered. If none did, the last one in the ledger.
   * @throws FacilitatorFault
   */
  firstFeePayer(remembered: readonly OfferedHint[]): string {
    const last = remembered.find(({ hint }) => !this.#owners.get(hint)?.forDirectory);
    const feePayer = this.choice ?? last?.hint;
    if (feePayer !== undefined) return feePayer;
    throw new FacilitatorFault(
      'No facilitator answers. Start one, or set FACILITATOR_URL to one that answers.',
    );
  }

  /**
   * Loads the fee payers from the ledger. Records without a name belong to the first facilitator.
   * @returns those whose facilitators are still configured and may still use them
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
   * Asks all facilitators for their fee payers, except for those that rest.
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

  /** Asks paused facilitators whether they answer again. Never rejects. */
  async probe(network: string): Promise<void> {
    const rested = this.#members.filter(({ health }) => health.mayProbe);
    await Promise.allSettled(rested.map(member => this.#ask(member, network)));
  }

  async verify(request: FacilitatorRequest): Promise<VerifyResult> {
    const member = await this.#memberFor(request);
    if (!member) return unavailable(nobodyHas(request));
    if (member.forDirectory) this.#tell(member, request, 'asked');
    const verdict = await this.#send(member, 'verify', () => member.facilitator.verify(request), unavailable);
    if (!member.forDirectory || verdict.kind === 'valid') return verdict;
    this.#tell(member, request, verdict.kind === 'refused' ? 'refused' : 'failed');
    if (verdict.kind === 'refused' || this.choice === undefined) return verdict;
    const { name, health } = member;
    return { ...verdict, outage: { name, retryAfterSeconds: health.retryAfterSeconds, instead: SIGN_AGAIN } };
  }

  async sign(request: FacilitatorRequest): Promise<SignResult> {
    const member = await this.#memberFor(request);
    if (!member) return unavailable(nobodyHas(request));
    const signing = member.facilitator.sign?.(request);
    return signing ? this.#send(member, 'sign', () => signing, unavailable) : { kind: 'not-needed' };
  }

  async settle(request: FacilitatorRequest): Promise<SettleResult> {
    const member = await this.#memberFor(request);
    if (!member) return unknown(nobodyHas(request));
    const result = await this.#send(member, 'settle', () => member.facilitator.settle(request), unknown);
    if (member.forDirectory) this.#tell(member, request, WENT[result.kind]);
    return result;
  }

  async close(): Promise<void> {
    await Promise.all(this.#members.map(({ facilitator }) => facilitator.close()));
  }

  /** The state of each facilitator, in order of preference. */
  states(): FacilitatorState[] {
    return this.#first.map(({ name, health, latencyMs, forDirectory }) => ({
      name,
      status: health.healthy ? 'ok' : health.available ? 'degraded' : 'down',
      latencyMs,
      restSeconds: health.available ? undefined : health.retryAfterSeconds,
      detail: forDirectory ? `for its directory only: ${health.line}` : health.line,
    }));
  }

  /** The overall state of the facilitators that sales depend on, for `/health`. `detail` names each facilitator and its state. */
  report(): { status: Status; latencyMs?: number; detail?: string } {
    const able = this.#sellers.filter(({ health }) => health.available);
    const well = this.#sellers.every(({ health }) => health.healthy);
    const detail = this.#sellers.map(({ name, health }) => `${name}: ${health.line}`).join('; ');
    const latencyMs = able[0]?.latencyMs;
    return {
      status: well ? 'ok' : able.length === 0 ? 'down' : 'degraded',
      ...(latencyMs === undefined ? {} : { latencyMs }),
      ...(well && this.#sellers.length === 1 ? {} : { detail }),
    };
  }

  get #sellers(): readonly Member[] {
    return this.#first.filter(({ forDirectory }) => !forDirectory);
  }

  /** The members, without those for second keys, so that each name occurs once. */
  get #first(): readonly Member[] {
    return this.#members.filter(({ second }) => !second);
  }

  #tell({ name }: Member, { listing }: FacilitatorRequest, went: Went): void {
    if (listing) this.onDirectory(name, listing, went);
  }

  async #send<T extends Answer>(
    { name, health }: Member,
    request: FacilitatorAnswered['request'],
    send: () => Promise<T>,
    failed: (why: string, trouble: Trouble) => T,
  ): Promise<T> {
    const began = performance.now();
    health.asking();
    const result = await send().catch((error: unknown) => failed(String(error), { rest: false }));
    const ms = performance.now() - began;
    const trouble = troubleOf(result);
    const found = resultOf(result, trouble);
    this.#observer.tell({ kind: 'facilitator', facilitator: name, request, ms, ...found });
    void (trouble ? health.failed(trouble, whyOf(result)) : health.answered());
    return result;
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
    for (const each of [supported.feePayer, ...(supported.signers ?? [])]) this.#own(each, member);
  }

  /** A facilitator used only for its directory takes no payments from the others, whichever fee payers it names. */
  #own(feePayer: string, member: Member): void {
    const owner = this.#owners.get(feePayer);
    if (member.forDirectory && owner && !owner.forDirectory) return;
    this.#owners.set(feePayer, member);
  }

  async #memberFor({ requirements }: FacilitatorRequest): Promise<Member | undefined> {
    const feePayer = String(requirements.extra.feePayer);
    await this.findName(feePayer);
    return this.#owners.get(feePayer);
  }
}

type Answer = VerifyResult | SignResult | SettleResult;

const WENT: Record<SettleResult['kind'], Went> = { settled: 'sold', refused: 'refused', unknown: 'failed' };

/** A failure of the facilitator, except for an answered settlement whose outcome is still unknown. */
function troubleOf(result: Answer): Trouble | undefined {
  if (result.kind === 'unavailable') return ('trouble' in result && result.trouble) || { rest: false };
  return result.kind === 'unknown' ? result.trouble : undefined;
}

function resultOf(result: Answer, trouble: Trouble | undefined): Pick<FacilitatorAnswered, 'result' | 'why'> {
  if (result.kind === 'refused') return { result: 'refused', why: result.reason };
  return trouble || result.kind === 'unknown' ? { result: 'failed', why: whyOf(result) } : { result: 'ok' };
}

function whyOf(result: Answer): string {
  if ('detail' in result) return result.detail;
  return 'reason' in result ? result.reason : 'no usable answer';
}

function unavailable(detail: string, trouble?: Trouble): VerifyResult & SignResult & { kind: 'unavailable' } {
  return { kind: 'unavailable', detail, ...(trouble && { trouble }) };
}

function unknown(reason: string, trouble?: Trouble): SettleResult {
  return { kind: 'unknown', reason, signature: '', ...(trouble && { trouble }) };
}

function nobodyHas({ requirements }: FacilitatorRequest): string {
  return `no facilitator in FACILITATOR_URL has the fee payer ${String(requirements.extra.feePayer)}`;
}
