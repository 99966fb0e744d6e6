import { expect } from 'chai';
import fc from 'fast-check';
import {
  plausibleQuotes,
  lowerMedian,
  median,
  nearMedian,
} from '../../../handlers/sol-token-brief/consensus.js';
import { cleanText } from '../../../handlers/mints/clean-text.js';
import { decimalPrice, holders, price } from '../../../handlers/sol-token-brief/fields.js';
import { backoffSeconds } from '../../../src/net/failure.js';
import { briefLine, formatAmount, formatPrice, shortenMint } from '../../../handlers/sol-token-brief/line.js';

const MINT = 'JUPyiwrYJFskUPiHa7hkeR8VUtAeFoSYbKedZNsDvCN';
const at = (...prices: number[]) => prices.map(priceUsd => ({ priceUsd }));

describe('market figures: numbers for people', () => {
  const amounts: [number | null, string][] = [
    [null, 'n/a'],
    [0, '$0.00'],
    [0.0001, '<$0.01'],
    [0.42, '$0.42'],
    [12.345, '$12.35'],
    [950, '$950.00'],
    [999.99, '$999.99'],
    [999.996, '$1.00K'],
    [12_345, '$12.3K'],
    [123_456, '$123K'],
    [999_499, '$999K'],
    [999_999, '$1.00M'],
    [1_234_567, '$1.23M'],
    [461_995_714.68, '$462M'],
    [999_999_999, '$1.00B'],
    [2.5e12, '$2.50T'],
    [1.2345e19, '$1.23e19'],
  ];
  for (const [usd, text] of amounts) {
    it(`amount ${usd} reads ${text}`, () => expect(formatAmount(usd)).to.equal(text));
  }

  const prices: [number | null, string][] = [
    [null, 'n/a'],
    [0.00001234, '$0.00001234'],
    [0.000012, '$0.000012'],
    [0.00001, '$0.00001'],
    [0.43214, '$0.4321'],
    [0.5, '$0.50'],
    [0.99999, '$1.00'],
    [1, '$1.00'],
    [1.239, '$1.24'],
    [64_123.451, '$64,123.45'],
    [1.2344e-15, '$1.234e-15'],
    [3e9, '$3.00B'],
  ];
  for (const [usd, text] of prices) {
    it(`price ${usd} reads ${text}`, () => expect(formatPrice(usd)).to.equal(text));
  }

  it('formats any figure without mistaken exponents, NaN or a second line', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e31, noNaN: true }), usd => {
        for (const text of [formatAmount(usd), formatPrice(usd)]) {
          expect(text).to.match(/^<?\$\d{1,3}(,\d{3})*(\.\d+)?(e-?\d+)?[KMBT]?$/);
        }
      }),
    );
  });

  it('shortens a mint to its first and last characters', () =>
    expect(shortenMint(MINT)).to.equal('JUPy…DvCN'));

  it('puts everything the specification lists into one line', () => {
    const line = briefLine({
      mint: MINT,
      symbol: 'JUP',
      priceUsd: 0.1424,
      mcapUsd: 461_995_714.68,
      liquidityUsd: 2_310_000,
      volume24hUsd: null,
      sources: ['jupiter', 'dexscreener'],
      untraded: false,
      disputed: false,
      spread: 1.004,
      findings: [],
    });
    expect(line).to.equal(
      'JUP (JUPy…DvCN): price $0.1424 (sources within 0.4%), market cap $462M, liquidity $2.31M, 24h volume n/a. ' +
        'Sources: jupiter, dexscreener. This is not financial advice.',
    );
  });
});

describe('market figures: how sources are combined', () => {
  it('takes the median; for an even number of values, the mean of the middle two', () => {
    expect(median([3, 1, 2])).to.equal(2);
    expect(median([4, 1, 2, 3])).to.equal(2.5);
  });

  it('takes the smaller of the two middle amounts, and no amount from an empty list', () => {
    expect(lowerMedian([423e6, 2e6])).to.equal(2e6);
    expect(lowerMedian([423e6, 2e6, 3e6])).to.equal(3e6);
    expect(lowerMedian([])).to.equal(undefined);
  });

  it('drops values beyond 1.5 times the median and keeps those at the limit', () => {
    expect(nearMedian(at(1, 1.5, 1.51, 2 / 3, 0.66, 1, 1))).to.deep.equal(at(1, 1.5, 2 / 3, 1, 1));
  });

  it('takes the lower of two contradicting prices, and marks it as disputed', () => {
    expect(plausibleQuotes(at(4_950, 1))).to.deep.equal({ kept: at(1), disputed: true });
    expect(plausibleQuotes(at(1.4, 1))).to.deep.equal({ kept: at(1.4, 1), disputed: false });
  });

  it('takes the lower of two groups of equal size', () => {
    expect(plausibleQuotes(at(1, 1.01, 100, 101))).to.deep.equal({ kept: at(1), disputed: true });
  });

  it('is not moved by one wrong value among three, however wrong', () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-18, max: 1e12, noNaN: true }), lie => {
        const { kept } = plausibleQuotes(at(1, 1.01, lie));
        expect(median(kept.map(item => item.priceUsd))).to.be.within(1 / 1.5, 1.5);
      }),
    );
  });
});

describe('market figures: validation of what sources send', () => {
  const hostile: [string, () => unknown][] = [
    ['a negative price', () => price(-1, 'price')],
    ['an overflowing price', () => price(JSON.parse('1e999'), 'price')],
    ['a price beyond any market', () => price(1e13, 'price')],
    ['NaN', () => price(Number.NaN, 'price')],
    ['a string instead of a number', () => price('1', 'price')],
    ['an object instead of a number', () => price({}, 'price')],
    ['text instead of a decimal', () => decimalPrice('0x10', 'price')],
    ['a spelled NaN', () => decimalPrice('NaN', 'price')],
    ['a negative decimal', () => decimalPrice('-1', 'price')],
    ['an overflowing decimal', () => decimalPrice('1e999', 'price')],
    ['half a holder', () => holders(1.5, 'holders')],
  ];
  for (const [what, read] of hostile) it(`refuses ${what}`, () => expect(read).to.throw(RangeError));

  it('reads a price of zero as no price', () => {
    expect(price(0, 'price')).to.equal(undefined);
    expect(decimalPrice('0.0', 'price')).to.equal(undefined);
  });

  it('reads decimals with and without exponent', () => {
    expect(decimalPrice('0.00000001234', 'price')).to.equal(1.234e-8);
    expect(decimalPrice('1.5e-9', 'price')).to.equal(1.5e-9);
  });

  it('leaves harmless names unchanged', () =>
    expect(cleanText("Trump's  Cat 🐈 №1", 64)).to.equal("Trump's Cat 🐈 No1"));

  it('removes markup, control and direction characters, even disguised ones', () => {
    expect(cleanText('<script>alert("x")</script>', 64)).to.equal('scriptalert(x)/script');
    expect(cleanText('＜b＞A\u0000B\u202eC\u200b\r\nD\u2028E', 64)).to.equal('bABC D E');
    expect(cleanText('[free](https://x)', 64)).to.equal('free(https://x)');
    expect(cleanText('\ud800 \u0007', 64)).to.equal(undefined);
    expect(cleanText(7, 64)).to.equal(undefined);
  });

  it('keeps any text on one line, within its length, and is idempotent', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), text => {
        const clean = cleanText(text, 32);
        if (clean === undefined) return;
        expect(clean.length).to.be.within(1, 32);
        expect(clean).to.not.match(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}<>&"]/u);
        expect(cleanText(clean, 32)).to.equal(clean);
      }),
    );
  });

  it("reads from a source's headers when to try again, within limits", () => {
    const now = 1_800_000_000_000;
    const seconds = (headers: Record<string, string>) => backoffSeconds(headers, now);
    expect(seconds({ 'retry-after': '7' })).to.equal(7);
    expect(seconds({ 'retry-after': '86400' })).to.equal(120);
    expect(seconds({ 'retry-after': new Date(now + 9_000).toUTCString() })).to.equal(9);
    expect(seconds({ 'x-ratelimit-reset': '12' })).to.equal(12);
    expect(seconds({ 'x-ratelimit-reset': '1800000030' })).to.equal(30);
    expect(seconds({ 'x-ratelimit-reset': '1800000045000' })).to.equal(45);
    expect(seconds({ 'x-ratelimit-reset': '1700000000' })).to.equal(1);
    expect(seconds({ 'x-ratelimit-reset': 'soon' })).to.equal(undefined);
    expect(seconds({})).to.equal(undefined);
  });
});
