import type { Contract, PricedOperation } from '../../contract/contract.js';
import { MAX_HEADER_BYTES } from '../header-bytes.js';
import { givenUpBy } from './challenge.js';
import { tagsOf } from './service.js';
import type { Terms } from './requirements.js';

const MAX_ADVICE = 20;

/**
 * The operations whose challenge did not fit into its header, and what to shorten. Left-out schemas are not reported, because directories get
 * them with each payment.
 */
export function headerAdvice({ paid }: Pick<Contract, 'paid'>, terms: Terms): string[] {
  const advice = paid.flatMap(operation => {
    const left = givenUpBy(operation, terms).filter(each => each !== 'schemas');
    if (left.length === 0) return [];
    const [field, bytes] = longestField(operation, terms);
    return [
      `the 402 of ${operation.id} leaves out ${left.join(', ')}: proxies have room for ${MAX_HEADER_BYTES} bytes of headers. Shorten ${field} (${bytes} bytes)`,
    ];
  });
  return advice.slice(0, MAX_ADVICE);
}

/** The field that takes the most room in a challenge, and its bytes there. */
function longestField(operation: PricedOperation, terms: Terms): [string, number] {
  const { summary, request, parameters, tags } = operation;
  const examples = parameters.map(({ name, example }) => [name, example]);
  const fields: [string, number][] = [
    ['its summary', 2 * Buffer.byteLength(summary)],
    ['the example of its request', bytesOf(request?.example)],
    ['the examples of its parameters', bytesOf(examples)],
    ['its tags', bytesOf(tagsOf(tags))],
    ['its path, or PUBLIC_URL', 2 * Buffer.byteLength(terms.publicUrl + operation.examplePath)],
  ];
  return fields.reduce((longest, each) => (each[1] > longest[1] ? each : longest));
}

function bytesOf(value: unknown): number {
  return value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value));
}
