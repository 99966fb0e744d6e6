import { LRUCache } from 'lru-cache';

/**
 * A cache of the most recently used keys, up to `max`, that takes memory only as it fills. `LRUCache` with `max` reserves 28 bytes per key
 * when it is created, for limits that most servers never reach.
 */
export function growingCache<K extends string, V extends string | object>(max: number): LRUCache<K, V> {
  return new LRUCache<K, V>({ maxSize: max, sizeCalculation: () => 1 });
}
