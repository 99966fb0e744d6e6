import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const LANGUAGES = ['ts', 'python', 'go', 'rust'];

type Block = { language: string; text: string };

function blocksOf(markdown: string): Block[] {
  return [...markdown.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({
    language,
    text,
  }));
}

/** The blocks that no tested file contains word for word. */
function untested(blocks: Block[], files: string[]): Block[] {
  return blocks.filter(({ text }) => text.trim() === '' || !files.some(file => file.includes(text)));
}

function* textsIn(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (entry.name !== 'node_modules' && !entry.name.startsWith('.')) yield* textsIn(path);
    } else if (/\.(ts|py|go|rs|java|sh)$/.test(entry.name)) yield readFileSync(path, 'utf8');
  }
}

describe('The code in docs/how-to/clients.md', () => {
  const blocks = blocksOf(readFileSync(join(ROOT, 'docs/how-to/clients.md'), 'utf8'));

  it('shows how to pay in each language', () => {
    expect(new Set(blocks.map(({ language }) => language))).to.deep.equal(new Set(LANGUAGES));
  });

  it('is code that the client tests run, word for word', () => {
    const files = [...textsIn(join(ROOT, 'contract-tests/clients'))];
    expect(untested(blocks, files)).to.deep.equal([]);
  });

  it('is reported if one word differs', () => {
    const [block] = blocks;
    const changed = { language: 'ts', text: (block?.text ?? '').replace('import', 'export') };
    expect(untested([changed], [block?.text ?? ''])).to.deep.equal([changed]);
  });
});
