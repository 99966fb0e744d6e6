import type { CalledOperation, Contract } from './contract.js';
import { patternFault } from './pattern.js';
import type { Fault } from './read-parameters.js';
import { isObject, keysOf, objectOf, ReferenceFault, targetOf } from './references.js';

/** Members in which `pattern` is a value or a name, not a regular expression. */
const NO_SCHEMAS =
  /^(x-.*|example|examples|default|enum|const|mapping|links|callbacks|security|servers|externalDocs)$/;

/** Reports what is wrong with the regular expressions in the schemas of the operations that are called, each once, at its place. */
export function reportPatterns({ document, paid, given }: Contract, fault: Fault): void {
  const seen = new Set<unknown>();
  const judged = new Map<string, string | undefined>();
  const judge = (pattern: string, at: string[]): void => {
    if (!judged.has(pattern)) judged.set(pattern, patternFault(pattern));
    const wrong = judged.get(pattern);
    if (wrong !== undefined) fault(at, wrong);
  };
  const walk = (node: unknown, at: string[]): void => {
    if (typeof node !== 'object' || node === null || seen.has(node)) return;
    seen.add(node);
    for (const [key, value] of Object.entries(node)) {
      const place = [...at, key];
      if (key === 'pattern' && typeof value === 'string') judge(value, place);
      else if (key === '$ref' && typeof value === 'string') walk(referred(value), keysAt(value));
      else if (!NO_SCHEMAS.test(key)) {
        if (key === 'patternProperties')
          for (const name of Object.keys(objectOf(value))) judge(name, [...place, name]);
        walk(value, place);
      }
    }
  };
  const referred = (reference: string): unknown => {
    try {
      return targetOf(document, reference);
    } catch (error) {
      if (error instanceof ReferenceFault) return undefined;
      throw error;
    }
  };
  for (const { path, method } of [...paid, ...given] as CalledOperation[]) {
    const item = objectOf(objectOf(document.paths)[path]);
    walk(item.parameters, ['paths', path, 'parameters']);
    const operation = item[method.toLowerCase()];
    if (isObject(operation)) walk(operation, ['paths', path, method.toLowerCase()]);
  }
}

function keysAt(reference: string): string[] {
  try {
    return keysOf(reference);
  } catch {
    return [];
  }
}
