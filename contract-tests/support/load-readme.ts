/** A command of a console block, and what its output must look like. */
export type ShownCommand = { command: string; shown: RegExp };

/** Patterns for output that differs from run to run. */
const VARIES: [from: string, to: string][] = [
  // Signatures, keys, the header of a challenge.
  ['(?<![\\w])[1-9A-HJ-NP-Za-km-z]{86,88}(?!\\w)', '[1-9A-HJ-NP-Za-km-z]{86,88}'],
  ['(?<![\\w])[1-9A-HJ-NP-Za-km-z]{43,44}(?!\\w)', '[1-9A-HJ-NP-Za-km-z]{43,44}'],
  ['127\\.0\\.0\\.1:\\d+', '127\\.0\\.0\\.1:\\d+'],
  ['/home/you/', '/\\S*'],
  // Dates, figures, sizes.
  ['\\d{4}-\\d\\d-\\d\\d', '\\d{4}-\\d\\d-\\d\\d'],
  ['(?<![\\w.])\\d+(?:\\.\\d+)?[MKB]?', '[\\d.]+[MKB]?'],
  // Replies of the sample respondents.
  ['"text":"[^"]*"', '"text":"[^"]*"'],
  ['"sentiment":"\\w+"', '"sentiment":"\\w+"'],
  ['…', '[^]*'],
  ['-{3,}', '-{3,}'],
  // The README may break a line where the output does not.
  [' *\\n\\s*', '\\s*'],
  [' +', ' +'],
];
const TOKENS = new RegExp(VARIES.map(([from]) => `(${from})`).join('|'), 'g');

/**
 * The commands of the console blocks of a text. In their expected output, `…` matches anything, and varying values are
 * matched by pattern.
 */
export function load(markdown: string): ShownCommand[] {
  return [...markdown.matchAll(/^```console\n(.*?)^```$/gms)].flatMap(([, block = '']) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map(part => {
        const [command = '', ...output] = part.trimEnd().split('\n');
        return { command, shown: patternOf(output.join('\n').trim()) };
      }),
  );
}

function patternOf(output: string): RegExp {
  let pattern = '';
  let end = 0;
  for (const match of output.matchAll(TOKENS)) {
    pattern += escaped(output.slice(end, match.index));
    pattern += VARIES[match.slice(1).findIndex(group => group !== undefined)]?.[1] ?? '';
    end = match.index + match[0].length;
  }
  return new RegExp(`^\\s*${pattern}${escaped(output.slice(end))}\\s*$`);
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
