import { createHash } from 'node:crypto';
import type { Payment as Row } from '../../src/ledger/store.js';
import type {
  Called,
  Check,
  Checked,
  Fate,
  Hinting,
  Hints,
  Named,
  Position,
  Rail,
  SettleResult,
  Sighting,
  SignResult,
  VerifyResult,
} from '../../src/rails/rail.js';

type Transfer = Checked & { amount: bigint };

/** How many ticks after its claim a payment can no longer be made. */
const LIFE = 2;

/**
 * A rail without a chain: balances in memory. A payment is `payer:amount:number`. Time advances by ticks. Reads always
 * return the truth, except that the bank may fail to answer.
 */
export class ToyRail implements Rail<Transfer>, Hinting {
  readonly network = 'toy:1';
  readonly another = 'another number';
  readonly balances = new Map<string, bigint>();
  /** The shop's income. */
  earned = 0n;
  settles = 0;
  /** Whether answers to settle requests are lost, after the money has moved or before. */
  loses: 'nothing' | 'answers' | 'requests' = 'nothing';
  tick = 1;
  readonly #moved = new Map<string, string>();
  readonly #hints: Hints = { bank: 'toy' };

  async check(evidence: string, amount: bigint): Promise<Check<Transfer>> {
    const [, payer, paid] = /^([a-z]+):(\d{1,15}):\d+$/.exec(evidence) ?? [];
    if (payer === undefined || paid === undefined) return { ok: false, error: 'transfer: cannot be read' };
    const id = createHash('sha256').update(evidence).digest('hex');
    const checked = { id, payer, evidence, amount: BigInt(paid) };
    if (checked.amount === amount) return { ok: true, checked };
    return { ok: false, error: `amount: pays ${paid}, must be ${amount}`, checked };
  }

  hints(): Hints {
    return this.#hints;
  }

  hintsAfter(): Hints {
    return this.#hints;
  }

  async find(): Promise<Named> {
    return { kind: 'not-seen' };
  }

  arrived(): void {}

  moved(): void {}

  position(): Position {
    return { after: this.tick, position: this.tick };
  }

  formerHint(): undefined {
    return undefined;
  }

  unoffered(): string {
    return 'it was not offered';
  }

  async tooOld(): Promise<undefined> {
    return undefined;
  }

  outage(): undefined {
    return undefined;
  }

  isHealthy(): boolean {
    return true;
  }

  async verify({ payer, amount }: Transfer): Promise<VerifyResult> {
    return this.#has(payer, amount) ? { kind: 'valid' } : { kind: 'refused', reason: 'too little' };
  }

  async sign(): Promise<SignResult> {
    return { kind: 'not-needed' };
  }

  async settle(transfer: Transfer, _call: Called): Promise<SettleResult> {
    return this.#settle(transfer);
  }

  maySettleAgain({ position }: Row): boolean {
    return this.tick <= position + LIFE;
  }

  async settleAgain({ id, payer, amount }: Row): Promise<SettleResult> {
    return this.#settle({ id, payer, amount });
  }

  explain(reason: string): string {
    return `funds: ${reason}`;
  }

  isDoubted(): boolean {
    return false;
  }

  async confirm({ id }: Row): Promise<boolean> {
    return this.#moved.has(id);
  }

  async lookFor({ id }: Row): Promise<Sighting> {
    const settlement = this.#moved.get(id);
    return settlement === undefined ? { kind: 'not-seen' } : { kind: 'seen', settlement };
  }

  async beginRound(): Promise<void> {}

  async fate({ id, position }: Row): Promise<Fate> {
    const settlement = this.#moved.get(id);
    if (settlement !== undefined) return { kind: 'paid', settlement };
    if (this.tick <= position + LIFE) return { kind: 'unknown' };
    return { kind: 'absent', why: 'the bank never moved it', final: true };
  }

  condense({ evidence }: { evidence: string }): string {
    return evidence;
  }

  async distrust(): Promise<void> {}

  #settle({ id, payer, amount }: Pick<Transfer, 'id' | 'payer' | 'amount'>): SettleResult {
    this.settles += 1;
    const lost: SettleResult = { kind: 'unknown', reason: 'no answer', signature: '' };
    if (this.loses === 'requests') return lost;
    const signature = this.#moved.get(id) ?? `toy${this.#moved.size + 1}`;
    if (!this.#moved.has(id)) {
      if (!this.#has(payer, amount)) return { kind: 'refused', reason: 'too little' };
      this.balances.set(payer, (this.balances.get(payer) ?? 0n) - amount);
      this.earned += amount;
      this.#moved.set(id, signature);
    }
    return this.loses === 'answers' ? lost : { kind: 'settled', signature };
  }

  #has(payer: string, amount: bigint): boolean {
    return (this.balances.get(payer) ?? 0n) >= amount;
  }
}
