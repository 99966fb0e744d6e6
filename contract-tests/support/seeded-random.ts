import { createHash } from 'node:crypto';

/** Decides by a seed and by what it is asked about, so that a replay decides alike although its timing differs. */
export class SeededRandom {
  readonly seed: number;

  constructor(seed: number) {
    this.seed = seed;
  }

  /** From 0 to below 1. */
  roll(...about: (string | number)[]): number {
    const digest = createHash('sha256')
      .update([this.seed, ...about].join('/'))
      .digest();
    return digest.readUInt32LE(0) / 2 ** 32;
  }

  pick<T>(choices: readonly (readonly [weight: number, choice: T])[], ...about: (string | number)[]): T {
    const total = choices.reduce((sum, [weight]) => sum + weight, 0);
    let left = this.roll(...about) * total;
    for (const [weight, choice] of choices) {
      left -= weight;
      if (left < 0) return choice;
    }
    throw new Error('nothing to pick');
  }
}
