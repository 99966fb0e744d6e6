import { expect } from 'chai';
import { STYLE as PANEL_STYLE } from '../../handlers/brand-feedback/style.js';
import { STYLE as OPERATOR_STYLE } from '../../src/admin/operator-style.js';
import { BASE_STYLE } from '../../src/pages/base-style.js';
import { tokens, tokensByClass } from '../../src/pages/design-tokens.js';
import { referenceStyle } from '../../src/site/reference-page.js';
import { siteStyle } from '../../src/site/site-style.js';

const WORDS = { name: '', summary: '', lead: '', details: '' };
const STYLES: Record<string, string> = {
  'pages with a sign-in': BASE_STYLE,
  'operator page': OPERATOR_STYLE,
  panel: PANEL_STYLE,
  'front page': siteStyle(WORDS),
  reference: referenceStyle(WORDS),
};

/** The colours of one scheme, by name. */
function coloursOf(css: string): Map<string, string> {
  return new Map(
    [...css.matchAll(/--([\w-]+): (#[\da-f]{6});/g)].map(([, name = '', value = '']) => [name, value]),
  );
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map(at => {
    const share = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return share <= 0.040_45 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** The contrast as WCAG 2 defines it. */
function contrast(one: string, other: string): number {
  const [less = 0, more = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
  return (more + 0.05) / (less + 0.05);
}

describe('the type, spacing and colours of all pages', () => {
  const [light = '', dark = ''] = tokens().split('@media');
  const schemes = { light: coloursOf(light), dark: new Map([...coloursOf(light), ...coloursOf(dark)]) };
  const grounds = ['ground', 'card', 'tint'];
  const onGrounds = (names: string[]): [string, string][] =>
    names.flatMap(name => grounds.map((ground): [string, string] => [name, ground]));
  const least: [least: number, pairs: [string, string][]][] = [
    [4.5, onGrounds(['ink', 'soft', 'good', 'warn', 'bad'])],
    [4.5, ['good', 'warn', 'bad'].map(name => [name, `${name}-ground`])],
    [
      4.5,
      [
        ['soft', 'plain-ground'],
        ['on-accent', 'accent'],
        ['on-code', 'code'],
        ['on-code-good', 'code'],
        ['on-code-warm', 'code'],
      ],
    ],
    [3, onGrounds(['edge', 'focus'])],
    [3, [1, 2, 3, 4, 5, 6, 7].map(n => [`series-${n}`, 'card'])],
  ];

  for (const [scheme, colours] of Object.entries(schemes))
    it(`have enough contrast in the ${scheme} scheme`, () => {
      const faults = least.flatMap(([wanted, pairs]) =>
        pairs
          .map(([one, other]) => ({
            one,
            other,
            is: contrast(colours.get(one) ?? '', colours.get(other) ?? ''),
          }))
          .filter(({ is }) => !(is >= wanted))
          .map(({ one, other, is }) => `${one} on ${other}: ${is.toFixed(2)}, not ${wanted}`),
      );
      expect(faults).to.deep.equal([]);
    });

  for (const [page, style] of Object.entries(STYLES))
    it(`come from one file: the ${page} has no colour, font or token of its own`, () => {
      const start = [tokensByClass(), tokens()].find(text => style.startsWith(text)) ?? '';
      expect(start, 'the style sheet begins with the tokens').not.to.equal('');
      const rest = style.slice(start.length);
      expect(
        rest.match(/#[\da-f]{3,8}\b(?=[;,) ])|\b(?:rgb|hsl)a?\(|system-ui|(?:^|[;{ ])(?:sans-)?serif/gi) ??
          [],
      ).to.deep.equal([]);
      const known = new Set([...style.matchAll(/(--[\w-]+):/g)].map(([, name]) => name));
      const used = [...style.matchAll(/var\((--[\w-]+)\)/g)].map(([, name]) => name);
      expect(used.filter(name => !known.has(name))).to.deep.equal([]);
    });

  it("use a shop's own accent colour in both schemes", () => {
    const own = siteStyle({ ...WORDS, colour: { accent: '#112233', onAccent: '#ffffff' } });
    expect(own.match(/--accent: #112233; --on-accent: #ffffff;/g)).to.have.length(2);
    expect(own).not.to.include('--accent: #7a4a00');
  });
});
