/** A command of a console block, and what its output must look like. */
export type ShownCommand = { command: string; shown: RegExp };

/** What differs from run to run, each with the pattern that stands for it. */
const VARIES: [from: string, to: string][] = [
  // Signatures, keys, the header of a challenge.
  ['(?<![\\w])[1-9A-HJ-NP-Za-km-z]{86,88}(?!\\w)', '[1-9A-HJ-NP-Za-km-z]{86,88}'],
  ['(?<![\\w])[1-9A-HJ-NP-Za-km-z]{43,44}(?!\\w)', '[1-9A-HJ-NP-Za-km-z]{43,44}'],
  ['127\\.0\\.0\\.1:\\d+', '127\\.0\\.0\\.1:\\d+'],
  ['/home/you/', '/\\S*'],
  // Dates, figures, sizes.
  ['\\d{4}-\\d\\d-\\d\\d', '\\d{4}-\\d\\d-\\d\\d'],
  ['(?<![\\w.])\\d+(?:\\.\\d+)?[MKB]?', '[\\d.]+[MKB]?'],
  // What the sample respondents say.
  ['"text":"[^"]*"', '"text":"[^"]*"'],
  ['"sentiment":"\\w+"', '"sentiment":"\\w+"'],
  ['…', '[^]*'],
  ['-{3,}', '-{3,}'],
  // A line of the README is broken where the output is not.
  [' *\\n\\s*', '\\s*'],
  [' +', ' +'],
];
const TOKENS = new RegExp(VARIES.map(([from]) => `(${from})`).join('|'), 'g');

/** The commands of the console blocks of a text. In their output, `…` stands for anything, and what varies need not be the same. */
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
