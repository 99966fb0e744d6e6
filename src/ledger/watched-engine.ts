import type { Engine } from './engine.js';

/** `committed`: called after every write with its duration in ms. `failed`: called when a write or a read fails. */
export type LedgerWatch = { committed(ms: number): void; failed(error: Error): void };

/** An engine that reports its operations. Reporting never changes a result: a committed write is never reported as failed. */
export function watched(engine: Engine, watch: LedgerWatch): Engine {
  const failed = (error: unknown): void => watch.failed(error as Error);
  function written<T>(work: Promise<T>): Promise<T> {
    const began = performance.now();
    work.then(() => watch.committed(performance.now() - began), failed);
    return work;
  }
  return {
    dialect: engine.dialect,
    owner: engine.owner,
    read: operation => {
      const work = engine.read(operation);
      work.catch(failed);
      return work;
    },
    write: (operation, scope) => written(engine.write(operation, scope)),
    transact: work => written(engine.transact(work)),
    notifyChange: id => engine.notifyChange(id),
    changeOf: (id, ms) => engine.changeOf(id, ms),
    show: (kind, use) => engine.show(kind, use),
    close: () => engine.close(),
  };
}
