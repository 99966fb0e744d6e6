import accepts from 'accepts';
import type { IncomingMessage } from 'node:http';
import type { CalledOperation } from './contract.js';

/**
 * The content type that a call asks for in its `Accept` header, if the operation declares several. Undefined for the first one, which is
 * the default and is also sent to calls that accept none of them.
 */
export function preferredType({ answers }: CalledOperation, accept: string | undefined): string | undefined {
  if (accept === undefined) return undefined;
  const [{ status }] = answers;
  const types = answers.filter(form => form.status === status).map(({ mimeType }) => mimeType);
  if (types.length < 2) return undefined;
  const chosen = accepts({ headers: { accept } } as IncomingMessage).type(types);
  return typeof chosen === 'string' && chosen !== types[0] ? chosen : undefined;
}
