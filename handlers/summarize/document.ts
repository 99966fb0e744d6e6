import { toBlocks } from './plain-text.js';

/** The text that is sent to a model: plain text, one block per paragraph; null if there is no content. */
export function documentOf(text: string): string | null {
  const document = toBlocks(text)
    .map(block => (block.kind === 'item' ? `- ${block.text}` : block.text))
    .join('\n\n');
  return /[\p{L}\p{N}\p{Extended_Pictographic}\p{RI}]/u.test(document) ? document : null;
}
