import type { Engine } from './engine.js';

/** Called after every write, and after a read that failed: how long it took in ms, and why it failed. */
export type LedgerWatch = (write: boolean, ms: number, error?: Error) => void;

/** An engine that reports its operations. What `tell` does changes no result: a write that was committed is never called failed. */
export function watched(engine: Engine, tell: LedgerWatch): Engine {
  function told<T>(write: boolean, work: Promise<T>): Promise<T> {
    const began = performance.now();
    work.then(
      () => write && tell(write, performance.now() - began),
      error => tell(write, performance.now() - began, error as Error),
    );
    return work;
  }
  return {
    dialect: engine.dialect,
    owner: engine.owner,
    read: operation => told(false, engine.read(operation)),
    write: (operation, bytes) => told(true, engine.write(operation, bytes)),
    transact: work => told(true, engine.transact(work)),
    close: () => engine.close(),
  };
}
