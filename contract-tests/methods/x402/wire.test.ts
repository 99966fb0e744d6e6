import { expect } from 'chai';
import fc from 'fast-check';
import { decodePayment, type WirePayment } from '../../../src/methods/x402/wire.js';
import { sellingOf } from '../../support/selling.js';
import { facilitatorRequest } from '../../support/http-facilitator.js';
import {
  base64Json,
  DEVNET,
  DEVNET_USDC,
  DEVNET_V1,
  v1Header,
  v2Header,
  withIdentifier,
} from '../../support/craft.js';

const { methods: METHODS } = sellingOf({
  network: DEVNET,
  v1Network: DEVNET_V1,
  asset: DEVNET_USDC,
  payTo: 'Receiver',
  publicUrl: 'http://127.0.0.1',
});
const { requirements: ACCEPTED } = facilitatorRequest('FeePayer');
const V2 = v2Header(ACCEPTED, 'AAAA');
const V1 = v1Header(DEVNET_V1, 'AAAA');

function read(headers: Record<string, string>): WirePayment {
  const decoded = decodePayment({ headers });
  if (decoded.kind !== 'payment') throw new Error(`not a payment: ${JSON.stringify(decoded)}`);
  return decoded.payment;
}

function faultOf(headers: Record<string, string>): string {
  const decoded = decodePayment({ headers });
  if (decoded.kind !== 'fault') throw new Error(`no fault: ${decoded.kind}`);
  return decoded.error;
}

describe('wire: a payment is read by its structure, not by the name of its header', () => {
  for (const name of ['payment-signature', 'x-payment']) {
    it(`v2 in ${name}`, () => {
      const payment = read({ [name]: V2 });
      expect(payment).to.include({ version: 2, scheme: 'exact', network: DEVNET, transaction: 'AAAA' });
      expect(payment.accepted).to.include({ amount: '10000', asset: DEVNET_USDC, payTo: 'Receiver' });
    });

    it(`v1 in ${name}`, () => {
      const payment = read({ [name]: V1 });
      expect(payment).to.include({ version: 1, scheme: 'exact', network: DEVNET_V1, transaction: 'AAAA' });
      expect(payment.accepted).to.equal(undefined);
    });
  }

  it('is absent without a header', () => {
    expect(decodePayment({ headers: {} }).kind).to.equal('none');
    expect(METHODS.areIn(['Authorization', 'x', 'X-Other', 'X-PAYMENT'])).to.equal(false);
    expect(METHODS.areIn(['Host', 'a', 'X-PAYMENT', ''])).to.equal(true);
    expect(METHODS.areIn(['Payment-Signature', V2])).to.equal(true);
  });

  it('reads the same payment in both headers as one, and refuses two different ones', () => {
    expect(read({ 'payment-signature': V2, 'x-payment': V2 }).version).to.equal(2);
    expect(faultOf({ 'payment-signature': V2, 'x-payment': v1Header(DEVNET_V1, 'BBBB') })).to.match(
      /two different payments/,
    );
  });

  it('reads base64url, missing padding and spaces around the value', () => {
    const json = JSON.stringify({
      x402Version: 1,
      scheme: 'exact',
      network: DEVNET_V1,
      payload: { transaction: 'AA+/' },
      x: '??>>~~',
    });
    for (const value of [
      Buffer.from(json).toString('base64url'),
      Buffer.from(json).toString('base64').replace(/=+$/, ''),
      ` ${Buffer.from(json).toString('base64')}\t`,
    ]) {
      expect(read({ 'x-payment': value }).transaction).to.equal('AA+/');
    }
  });

  it('ignores unknown extensions and fields', () => {
    const value = base64Json({
      ...(JSON.parse(Buffer.from(V2, 'base64').toString()) as object),
      extensions: { bazaar: { info: 1 }, other: null },
      more: [1, 2],
    });
    expect(read({ 'payment-signature': value }).identifier).to.equal(undefined);
  });
});

describe('wire: a payment that cannot be decoded is refused with the reason', () => {
  const v2 = (change: object): string =>
    base64Json({ x402Version: 2, accepted: ACCEPTED, payload: { transaction: 'AAAA' }, ...change });
  const without = (key: string): object => ({
    accepted: Object.fromEntries(Object.entries(ACCEPTED).filter(([name]) => name !== key)),
  });
  const v1 = (change: object): string =>
    base64Json({
      x402Version: 1,
      scheme: 'exact',
      network: DEVNET_V1,
      payload: { transaction: 'AAAA' },
      ...change,
    });

  const BAD: [string, string, RegExp][] = [
    ['an empty header', '', /not base64/],
    ['a header that is not base64', 'hello, world!', /not base64/],
    ['base64 and base64url mixed', `${V2}-+`, /not base64/],
    ['padding in the middle', `AA==${V2}`, /not base64/],
    ['a header sent twice, joined by Node', `${V2}, ${V2}`, /not base64/],
    ['base64 of something else', Buffer.from('hello').toString('base64'), /not base64-encoded JSON/],
    ['cut JSON', Buffer.from('{"x402Version":2').toString('base64'), /not base64-encoded JSON/],
    ['null', base64Json(null), /not a JSON object/],
    ['a number', base64Json(7), /not a JSON object/],
    ['a text', base64Json('payment'), /not a JSON object/],
    ['a list', base64Json([1]), /not a JSON object/],
    ['an empty object', base64Json({}), /neither an x402 v2 PaymentPayload .* nor a v1 one.*x402Version/],
    ['v2 without accepted', base64Json({ x402Version: 2, payload: { transaction: 'AAAA' } }), /no accepted/],
    ['accepted null', v2({ accepted: null }), /v2 PaymentPayload: \/accepted must be object/],
    ['accepted a list', v2({ accepted: [] }), /\/accepted must be object/],
    ['accepted without asset', v2(without('asset')), /must have required property 'asset'/],
    ['accepted without payTo', v2(without('payTo')), /must have required property 'payTo'/],
    ['accepted without scheme', v2(without('scheme')), /must have required property 'scheme'/],
    ['accepted without network', v2(without('network')), /must have required property 'network'/],
    [
      'an amount that is a number',
      v2({ accepted: { ...ACCEPTED, amount: 10000 } }),
      /\/accepted\/amount must be string/,
    ],
    [
      'extra that is a text',
      v2({ accepted: { ...ACCEPTED, extra: 'x' } }),
      /\/accepted\/extra must be object/,
    ],
    [
      'a fee payer that is an object',
      v2({ accepted: { ...ACCEPTED, extra: { feePayer: {} } } }),
      /feePayer must be string/,
    ],
    ['version 1 with accepted', v2({ x402Version: 1 }), /x402Version must be equal to constant/],
    ['version "2"', v2({ x402Version: '2' }), /x402Version/],
    ['version 3', v1({ x402Version: 3 }), /x402Version/],
    ['no payload', v2({ payload: undefined }), /must have required property 'payload'/],
    ['a payload of null', v2({ payload: null }), /\/payload must be object/],
    [
      'a transaction that is a list',
      v2({ payload: { transaction: ['AAAA'] } }),
      /\/payload\/transaction must be string/,
    ],
    [
      'a huge transaction',
      v2({ payload: { transaction: 'A'.repeat(8193) } }),
      /must NOT have more than 8192/,
    ],
    [
      'an EVM payload',
      v1({ payload: { signature: '0x', authorization: {} } }),
      /must have required property 'transaction'/,
    ],
    ['v1 without network', v1({ network: undefined }), /must have required property 'network'/],
    ['an endless network', v1({ network: 'x'.repeat(257) }), /must NOT have more than 256/],
    ['a v1 scheme of null', v1({ scheme: null }), /\/scheme must be string/],
    [
      'fields hidden in the prototype',
      Buffer.from(
        `{"__proto__":{"accepted":${JSON.stringify(ACCEPTED)},"payload":{"transaction":"AAAA"},"x402Version":2}}`,
      ).toString('base64'),
      /neither/,
    ],
    [
      'accepted hidden in the prototype',
      Buffer.from(
        '{"x402Version":2,"accepted":{"__proto__":{"scheme":"exact"}},"payload":{"transaction":"A"}}',
      ).toString('base64'),
      /must have required property/,
    ],
    [
      'JSON nested without end',
      Buffer.from('['.repeat(10_000)).toString('base64'),
      /not base64-encoded JSON/,
    ],
  ];
  for (const [name, value, reason] of BAD) {
    it(name, () => {
      expect(faultOf({ 'payment-signature': value })).to.match(reason);
      expect(faultOf({ 'x-payment': value })).to.match(reason);
    });
  }

  it('without an exception, and with a short message', () => {
    const value = fc.oneof(
      fc.string({ maxLength: 200 }),
      fc.json({ maxDepth: 4 }).map(text => Buffer.from(text).toString('base64')),
      fc.jsonValue().map(part => base64Json({ x402Version: 2, accepted: part, payload: part })),
      fc
        .jsonValue()
        .map(part =>
          base64Json({ x402Version: 1, scheme: 'exact', network: part, payload: { transaction: part } }),
        ),
    );
    fc.assert(
      fc.property(value, text => {
        const decoded = decodePayment({ headers: { 'payment-signature': text } });
        if (decoded.kind === 'fault') expect(decoded.error.length).to.be.below(400);
      }),
      { numRuns: 400 },
    );
  });
});

describe('wire: payment-identifier', () => {
  const idOf = (extensions: object): string | undefined =>
    read({ 'payment-signature': v2Header(ACCEPTED, 'AAAA', extensions) }).identifier;

  it('is read if it is well-formed', () => {
    for (const id of ['a'.repeat(16), 'A_-9'.repeat(32)]) expect(idOf(withIdentifier(id))).to.equal(id);
  });

  it("counts as absent if a client only sends back the server's offer of it", () => {
    expect(
      idOf({ 'payment-identifier': { info: { required: false }, schema: { type: 'object' } } }),
    ).to.equal(undefined);
    expect(idOf({})).to.equal(undefined);
  });

  for (const [name, extension] of Object.entries({
    'too short': { info: { id: 'a'.repeat(15) } },
    'too long': { info: { id: 'a'.repeat(129) } },
    'not plain': { info: { id: 'a'.repeat(16) + '\n' } },
    'with a quote': { info: { id: `${'a'.repeat(16)}'` } },
    'not a text': { info: { id: 1234567890123456 } },
    null: { info: { id: null } },
    'without info': { id: 'a'.repeat(16) },
    'a text': 'a'.repeat(16),
  })) {
    it(`is an error when ${name}`, () => {
      const value = v2Header(ACCEPTED, 'AAAA', { 'payment-identifier': extension });
      expect(faultOf({ 'payment-signature': value })).to.match(/payment-identifier/);
    });
  }
});

describe('wire: receipts', () => {
  it("are sent in the header of the payment's x402 version", () => {
    const receipt = { success: true, payer: 'p', transaction: 's' };
    const v2 = METHODS.named('x402-v2').receiptHeaders(receipt, { sold: true });
    expect(Object.keys(v2)).to.deep.equal(['PAYMENT-RESPONSE']);
    expect(Object.keys(METHODS.named('x402-v1').receiptHeaders(receipt, { sold: true }))).to.deep.equal([
      'X-PAYMENT-RESPONSE',
    ]);
    expect(JSON.parse(Buffer.from(String(v2['PAYMENT-RESPONSE']), 'base64').toString())).to.deep.equal({
      ...receipt,
      network: DEVNET,
    });
  });
});
