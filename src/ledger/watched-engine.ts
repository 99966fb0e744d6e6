import type { Engine } from './engine.js';

/** Called after every operation of the database: how long it took in ms, and why it failed. */
export type LedgerWatch = (write: boolean, ms: number, error?: Error) => void;

/** An engine that reports its operations. */
export function watched(engine: Engine, tell: LedgerWatch): Engine {
  const timed = async <T>(write: boolean, work: () => Promise<T>): Promise<T> => {
    const began = performance.now();
    try {
      const result = await work();
      tell(write, performance.now() - began);
      return result;
    } catch (error) {
      tell(write, performance.now() - began, error as Error);
      throw error;
    }
  };
  return {
    dialect: engine.dialect,
    owner: engine.owner,
    read: operation => timed(false, () => engine.read(operation)),
    write: (operation, bytes) => timed(true, () => engine.write(operation, bytes)),
    transact: work => timed(true, () => engine.transact(work)),
    close: () => engine.close(),
  };
}
