import { createHash } from 'node:crypto';

/** Random decisions that depend only on a seed and a key, so that a replay decides the same although its timing differs. */
export class SeededRandom {
  readonly seed: number;

  constructor(seed: number) {
    this.seed = seed;
  }

  /** A number from 0 to below 1. */
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
