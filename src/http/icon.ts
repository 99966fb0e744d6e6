import { crc32, deflateSync } from 'node:zlib';

/** The icon: a coin and its slot, drawn on a square of 16 by 16 units. The SVG and the PNG are drawn from the same numbers. */
const CENTRE = 8;
const RIM = { radius: 7.5, colour: [0xa8, 0x74, 0x16] } as const;
const FACE = { radius: 6.3, colour: [0xe8, 0xb5, 0x3a] } as const;
const SLOT = { halfWidth: 1.05, halfHeight: 4.2, colour: [0x3d, 0x2b, 0x00] } as const;
type Colour = readonly [number, number, number];

const hex = (colour: Colour): string => `#${colour.map(part => part.toString(16).padStart(2, '0')).join('')}`;

export const ICON_SVG =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" role="img" aria-label="A coin with a slot">' +
  [RIM, FACE]
    .map(
      ({ radius, colour }) => `<circle cx="${CENTRE}" cy="${CENTRE}" r="${radius}" fill="${hex(colour)}"/>`,
    )
    .join('') +
  `<rect x="${CENTRE - SLOT.halfWidth}" y="${CENTRE - SLOT.halfHeight}" width="${2 * SLOT.halfWidth}" ` +
  `height="${2 * SLOT.halfHeight}" rx="${SLOT.halfWidth}" fill="${hex(SLOT.colour)}"/></svg>`;

/** Samples per pixel in each direction, for smooth edges. */
const SAMPLES = 4;
const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const EIGHT_BIT_RGBA = [8, 6, 0, 0, 0];

/** The icon as a square PNG with transparent corners. @param size its side in pixels */
export function iconPng(size: number): Buffer {
  const row = 1 + size * 4;
  const pixels = Buffer.alloc(row * size);
  for (let y = 0; y < size; y++)
    for (let x = 0; x < size; x++) pixels.set(pixelAt(x, y, 16 / size), y * row + 1 + x * 4);
  const head = Buffer.alloc(13);
  head.writeUInt32BE(size, 0);
  head.writeUInt32BE(size, 4);
  head.set(EIGHT_BIT_RGBA, 8);
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(pixels, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** Red, green, blue and opacity of a pixel. @param unit its side, in units of the drawing */
function pixelAt(x: number, y: number, unit: number): number[] {
  const sum = [0, 0, 0];
  let covered = 0;
  for (let sample = 0; sample < SAMPLES * SAMPLES; sample++) {
    const across = x + ((sample % SAMPLES) + 0.5) / SAMPLES;
    const down = y + (Math.floor(sample / SAMPLES) + 0.5) / SAMPLES;
    const colour = colourAt(across * unit - CENTRE, down * unit - CENTRE);
    if (!colour) continue;
    covered += 1;
    colour.forEach((part, index) => (sum[index] = (sum[index] ?? 0) + part));
  }
  if (covered === 0) return [0, 0, 0, 0];
  return [...sum.map(part => Math.round(part / covered)), Math.round((255 * covered) / (SAMPLES * SAMPLES))];
}

/** @param x and @param y from the centre */
function colourAt(x: number, y: number): Colour | undefined {
  const { halfWidth, halfHeight } = SLOT;
  const beyond = Math.max(0, Math.abs(y) - (halfHeight - halfWidth));
  if (Math.hypot(x, beyond) <= halfWidth) return SLOT.colour;
  const distance = Math.hypot(x, y);
  return [FACE, RIM].find(({ radius }) => distance <= radius)?.colour;
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}
