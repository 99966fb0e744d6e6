/*
 * What `import … from 'coinslot'` gives to the handlers of a shop, and to their tests. docs/sell-your-own.md shows their use.
 */

export type {
  Asked,
  Body,
  Call,
  Handler,
  HandlersOf,
  OpenOrder,
  OrderRef,
  Params,
  Query,
  Ready,
  Reply,
  Served,
  ServedFree,
} from '../contract/operation.js';
export type { Backends } from '../upstreams/backends.js';
export { UpstreamFailure } from '../net/failure.js';
export { answerOfExample, type ExampleAnswer } from './answer-of-example.js';
