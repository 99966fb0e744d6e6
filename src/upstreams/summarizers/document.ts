import { toBlocks } from './plain-text.js';

/** A text as a model gets it: plain text, one block per paragraph; null when it says nothing. */
export function documentOf(text: string): string | null {
  const document = toBlocks(text)
    .map(block => (block.kind === 'item' ? `- ${block.text}` : block.text))
    .join('\n\n');
  return /[\p{L}\p{N}\p{Extended_Pictographic}\p{RI}]/u.test(document) ? document : null;
}
