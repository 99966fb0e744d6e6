import { LRUCache } from 'lru-cache';

/**
 * A cache of the last used, up to `max` keys, which takes memory as it fills. `LRUCache` with `max` reserves memory for all keys when it is
 * made: 28 bytes a key, for limits that most servers never come near.
 */
export function growingCache<K extends string, V extends string | object>(max: number): LRUCache<K, V> {
  return new LRUCache<K, V>({ maxSize: max, sizeCalculation: () => 1 });
}
