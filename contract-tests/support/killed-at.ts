/**
 * A process that is killed at its n-th call to the parts that it works with: `before` the call is made, or `after` it,
 * so that the result does not arrive. No later call is made.
 */
export function killedAt(step: number, when: 'before' | 'after') {
  let asked = 0;
  let die = (): void => {};
  const death = new Promise<true>(resolve => (die = () => resolve(true)));
  const mortal = <T extends object>(part: T): T =>
    new Proxy(part, {
      get: (target, name) => {
        const member = Reflect.get(target, name) as unknown;
        if (typeof member !== 'function') return member;
        return async (...values: unknown[]): Promise<unknown> => {
          asked += 1;
          const own = asked;
          if (own === step && when === 'before') die();
          if (own > step || (own === step && when === 'before')) return new Promise(() => {});
          const answer = await (member as (...all: unknown[]) => Promise<unknown>).apply(target, values);
          if (own === step) die();
          return own >= step ? new Promise(() => {}) : answer;
        };
      },
    });
  return { mortal, death };
}
