/** A shop's CSS colours: for its buttons and marks, and for the text on them. */
export type Accent = { accent: string; onAccent: string };

/** The default accent. The front page uses it, too, unless the contract sets a colour. */
export const ACCENT: Accent = { accent: '#7a4a00', onAccent: '#ffffff' };
/** Brown is too dark on a dark page. */
const ACCENT_IN_THE_DARK: Accent = { accent: '#f2b950', onAccent: '#241800' };

/**
 * Typography, spacing and shape. Sizes are in `rem`, so that they follow the reader's text size. `--touch` is the minimum height of a
 * button or link.
 */
const SHAPE = `--font: system-ui, sans-serif; --mono: ui-monospace, "Cascadia Mono", Menlo, Consolas, "Liberation Mono", monospace;
  --text-xs: .8125rem; --text-s: .875rem; --text: 1rem; --text-l: 1.125rem; --text-xl: 1.375rem; --text-2xl: 1.75rem;
  --text-3xl: clamp(2rem, 5vw, 3.1rem); --leading: 1.55; --leading-tight: 1.25;
  --space-1: .25rem; --space-2: .5rem; --space-3: .75rem; --space-4: 1rem; --space-5: 1.5rem; --space-6: 2rem; --space-7: 3rem; --space-8: 4rem;
  --radius-s: .375rem; --radius: .625rem; --radius-l: .9rem; --round: 99rem; --touch: 2.75rem;
  --paper: #ffffff; --code: #16181d; --on-code: #e8e6df; --on-code-warm: #ffc46b; --on-code-good: #8fdca6;`;

/**
 * `line` is for separators, `edge` for the borders of buttons and fields. The `-ground` colours are for badges, `series` for operations in
 * a chart.
 */
const LIGHT = `--ground: #faf9f6; --card: #ffffff; --tint: #f4f1ea; --ink: #1d1b16; --soft: #575246; --line: #dfdacd; --edge: #857e6e;
  --focus: #0b57d0; --good: #1b6b33; --warn: #7a4a00; --bad: #a3201b;
  --good-ground: #e3f3e6; --warn-ground: #fdeecb; --bad-ground: #fbe3e0; --plain-ground: #efece4;
  --series-1: #2368a8; --series-2: #c05f08; --series-3: #24845a; --series-4: #8547ad; --series-5: #bd3565; --series-6: #0f7f8e; --series-7: #857e6e;`;

const DARK = `--ground: #131210; --card: #1d1b17; --tint: #27241d; --ink: #f1eee4; --soft: #bdb7a8; --line: #3a372d; --edge: #918a78;
  --focus: #9cc2ff; --good: #83d69b; --warn: #f2c878; --bad: #ffb0a8;
  --good-ground: #1a3323; --warn-ground: #3a2e12; --bad-ground: #431f1b; --plain-ground: #312e24;
  --series-1: #6fb1ee; --series-2: #f0a255; --series-3: #63c392; --series-4: #c697ea; --series-5: #f28cae; --series-6: #57c3cf; --series-7: #98917f;`;

const accentText = ({ accent, onAccent }: Accent): string => `--accent: ${accent}; --on-accent: ${onAccent};`;

/**
 * The beginning of every page's style sheet, which sets type, space and colours. Text has a contrast of at least 4.5 : 1 on `ground`,
 * `card` and `tint`, and lines around buttons and fields 3 : 1, in both colour schemes.
 * @param own the shop's own colour, the same in both schemes
 */
export function tokens(own?: Accent): string {
  return `:root {
  color-scheme: light dark;
  ${accentText(own ?? ACCENT)}
  ${SHAPE}
  ${LIGHT}
}
@media (prefers-color-scheme: dark) {
  :root {
  ${accentText(own ?? ACCENT_IN_THE_DARK)}
  ${DARK}
  }
}
`;
}

/**
 * Like `tokens`, for a page whose root element sets the colour scheme with a class, `light` or `dark`,
 * whatever the browser prefers.
 */
export function tokensByClass(own?: Accent): string {
  return `${tokens(own)}:root.light { ${accentText(own ?? ACCENT)} ${LIGHT} }
:root.dark { ${accentText(own ?? ACCENT_IN_THE_DARK)} ${DARK} }
`;
}
