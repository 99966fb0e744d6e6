import { randomUUID } from 'node:crypto';
import type { Method } from '../../src/methods/method.js';

/**
 * A payment method that exists only in tests: the header `Toy` carries the number of a challenge and the signed
 * transaction. Every challenge has a new number, which is good for one payment.
 */
export function toyMethod(): Method {
  const open = new Set<string>();
  const toy: Method = {
    name: 'toy',
    protocol: 'toy',
    requestHeaders: ['toy'],
    answerHeaders: ['Toy-Challenge', 'Toy-Receipt'],
    fresh: true,
    isAskedBy: () => false,
    read(carrier, operation) {
      const sent = 'meta' in carrier ? carrier.meta['toy'] : carrier.headers['toy'];
      if (typeof sent !== 'string') return undefined;
      const [nonce = '', evidence = ''] = sent.split(' ');
      if (!open.has(nonce)) return { kind: 'refused', method: toy, error: `toy: ${nonce} was never offered` };
      const mismatch = nonce.startsWith(`${operation.id}.`) ? {} : { mismatch: 'toy: of another operation' };
      return { kind: 'credential', credential: { method: toy, evidence, identifier: null, ...mismatch } };
    },
    challenge(operation, hints, error = '') {
      const nonce = `${operation.id}.${randomUUID()}`;
      open.add(nonce);
      return {
        headers: { 'Toy-Challenge': `${nonce} ${Object.values(hints).join()} ${error}` },
        body: Buffer.from('{}'),
      };
    },
    example: () => ({ headers: { 'Toy-Challenge': 'a-number an-address' }, body: Buffer.from('{}') }),
    toolChallenge: (_operation, { headers }) => ({
      structured: {},
      meta: { 'toy/challenge': headers['Toy-Challenge'] },
    }),
    receiptHeaders: ({ payer }) => ({ 'Toy-Receipt': payer }),
    receiptMeta: ({ payer }) => ({ 'toy/receipt': payer }),
    documents: () => ({
      protocol: { toy: {} },
      instructions: 'Or send the header Toy.',
      steps: ['Or play.'],
      phrase: 'toys',
      tool: 'Or _meta.toy.',
    }),
  };
  return toy;
}
