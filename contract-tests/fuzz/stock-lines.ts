import { readFileSync } from 'node:fs';

const GUIDE = new URL('../../../docs/how-to/testing.md', import.meta.url);

/** The commands of docs/how-to/testing.md that run Schemathesis, split into words: without Docker, and with it. */
export function stockLines(): { st: string[]; docker: string[] } {
  const lines = readFileSync(GUIDE, 'utf8').split('\n');
  const words = (start: string): string[] => {
    const line = lines.map(each => each.trim()).find(each => each.startsWith(start));
    if (line === undefined) throw new Error(`docs/how-to/testing.md has no line that begins with ${start}`);
    return line.split(/\s+/);
  };
  return { st: words('st run '), docker: words('docker run ') };
}

/** The words after the name of the image, which Docker passes to `st`. */
export function wordsForSt(docker: string[]): string[] {
  return docker.slice(docker.findIndex(word => word.startsWith('schemathesis/schemathesis')) + 1);
}
