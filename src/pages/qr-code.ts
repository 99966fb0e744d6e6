import { renderSVG, renderUnicodeCompact } from 'uqr';

/** The width of the empty border around the code, in modules, as ISO/IEC 18004 requires. */
const BORDER = 4;

/**
 * A text as a QR code: an SVG element with the accessible name `label`, black on white in every colour
 * scheme.
 */
export function qrCode(text: string, label: string): string {
  const svg = renderSVG(text, { border: BORDER, pixelSize: 4, ecc: 'M' });
  return svg.replace('<svg ', `<svg class="qr" role="img" aria-label="${label}" `);
}

/** The QR code for a terminal with a dark background, line by line. */
export function qrLines(text: string): string[] {
  return renderUnicodeCompact(text, { border: 2, ecc: 'L' }).split('\n');
}
