import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { Json } from '../json.js';

/** The parts that the build adds to every contract, from shared.yaml. */
export type SharedParts = {
  openapi: string;
  info: Json;
  servers: Json[];
  security: Json[];
  tags: { name: string; description: string }[];
  /** The documents that the server itself answers, by path. */
  paths: Record<string, { get: Json & { operationId: string; responses: Json } }>;
  components: Record<string, Json>;
};

const FILE = new URL('../../../../src/contract/expand/shared.yaml', import.meta.url);

let read: SharedParts | undefined;

export function sharedText(): string {
  return readFileSync(FILE, 'utf8');
}

/** Reads the parts once, when needed: a built server does not need them. */
export function sharedParts(): SharedParts {
  read ??= parse(sharedText()) as SharedParts;
  return read;
}
