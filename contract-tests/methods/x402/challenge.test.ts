import type { Json } from '../../../src/contract/json.js';
import { expect } from 'chai';
import addFormatsModule from 'ajv-formats';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parsePaymentRequired } from '@x402/core/schemas';
import type { PricedOperation } from '../../../src/contract/contract.js';
import { loadContract } from '../../../src/contract/parse-contract.js';
import type { Challenge } from '../../../src/methods/method.js';
import { MAX_HEADER_BYTES } from '../../../src/methods/header-bytes.js';
import { renderChallenge } from '../../../src/methods/x402/challenge.js';
import { Offers } from '../../../src/offers/offers.js';
import { bazaarOf } from '../../../src/methods/x402/describe-call.js';
import type { Terms } from '../../../src/methods/x402/requirements.js';
import { serviceOf } from '../../../src/methods/x402/service.js';
import { SolanaHints } from '../../../src/rails/solana/solana-hints.js';
import { bytesOf, type CheckedTransaction } from '../../../src/rails/solana/transaction.js';
import { sellingOf, x402In } from '../../support/selling.js';

const { document, paid } = loadContract(new URL('../../../../openapi.yaml', import.meta.url));

const FEE_PAYER = 'GVJJ7rdGiXr5xaYbRwRbjfaJL7fmwRygFi1H6aGqDveb';
const OTHER_FEE_PAYER = 'CKPKJWNdJEqa81x7CkZ14BVPiY6y16Sxs7owznqtWYp5';
const BLOCKHASH = 'EkSnNWid2cvwEVnVx9aBqawnmiCNiDgp3gUdkDPTKN1N';
const PUBLIC_URL = `https://${'agents-pay-here.'.repeat(3)}a.org`;

const common = { payTo: '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4', publicUrl: PUBLIC_URL };
const SANDBOX: Terms = {
  ...common,
  network: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
  v1Network: 'solana-devnet',
  asset: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
};
const MAINNET: Terms = {
  ...common,
  network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
  v1Network: 'solana',
  asset: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
};
/** The facts about the mint, so that clients do not need an RPC server to look them up. */
const USDC_TOKEN = { decimals: 6, tokenProgram: 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA' };
const LIVE = { feePayer: FEE_PAYER, recentBlockhash: BLOCKHASH };

type Parsed = Json & { accepts: (Json & { extra: Json })[] };
const parse = ({ body }: Challenge): Parsed => JSON.parse(body.toString('utf8')) as Parsed;

const ajv = new Ajv2020({ strict: false });
(addFormatsModule as unknown as (ajv: Ajv2020) => void)(ajv);
ajv.addFormat('binary', true);
ajv.addSchema(document, 'contract');
const keepsContract = ajv.compile({ $ref: 'contract#/components/schemas/PaymentChallenge' });

function expectSound(challenge: Challenge): Parsed {
  const { headers, body } = challenge;
  const header = body.toString('base64');
  // Clients take the header to mean v2.
  const v1 = (JSON.parse(body.toString('utf8')) as Json)['x402Version'] === 1;
  expect(headers).to.deep.equal(v1 ? {} : { 'PAYMENT-REQUIRED': header });
  expect(header).to.have.length.at.most(MAX_HEADER_BYTES);
  const parsed = parse(challenge);
  expect(keepsContract(parsed), ajv.errorsText(keepsContract.errors)).to.equal(true);
  return parsed;
}

before(() => expect(PUBLIC_URL).to.have.length(61));

for (const [name, terms] of Object.entries({ SANDBOX, MAINNET })) {
  for (const operation of paid) {
    describe(`The challenge of ${operation.id} (${name})`, () => {
      const url = PUBLIC_URL + operation.examplePath;
      const amount = operation.price.atomic.toString();

      it('offers only the CAIP-2 network, with the fields of both versions', () => {
        const challenge = expectSound(renderChallenge(operation, terms, LIVE));
        expect(challenge.x402Version).to.equal(2);
        expect(challenge.resource).to.deep.equal({
          url,
          description: operation.summary,
          mimeType: operation.answers[0].mimeType,
        });
        expect(challenge.accepts).to.deep.equal([
          {
            network: terms.network,
            scheme: 'exact',
            asset: terms.asset,
            payTo: terms.payTo,
            amount,
            maxAmountRequired: amount,
            maxTimeoutSeconds: 60,
            resource: url,
            description: operation.summary,
            mimeType: operation.answers[0].mimeType,
            extra: {
              ...LIVE,
              ...USDC_TOKEN,
              ...(operation.flow === 'upfront' ? { paymentFlow: 'upfront' } : {}),
            },
          },
        ]);
      });

      it("is accepted by x402's own schemas, in each version", () => {
        for (const version of [1, 2] as const) {
          const whole = parsePaymentRequired(parse(renderChallenge(operation, terms, LIVE, version)));
          expect(whole.success, JSON.stringify(whole.error)).to.equal(true);
        }
      });

      it("names service, tags and icon within the header's limit, without leaving out anything else", () => {
        const service = serviceOf({ document, paid, given: [], free: [] }, PUBLIC_URL);
        const challenge = expectSound(renderChallenge(operation, { ...terms, service }, LIVE));
        const { serviceName, tags, iconUrl } = challenge.resource as Json;
        expect({ serviceName, tags, iconUrl }).to.deep.equal({
          serviceName: 'Coinslot',
          tags: operation.tags,
          iconUrl: `${PUBLIC_URL}/icon.png`,
        });
        const { success, data } = parsePaymentRequired(challenge);
        expect(success && data.x402Version === 2 && data.resource).to.deep.equal(challenge.resource);
        expect((challenge.extensions as Json).bazaar).to.deep.equal(bazaarOf(operation, true));
        const free =
          4096 -
          String(renderChallenge(operation, { ...terms, service }, LIVE).headers['PAYMENT-REQUIRED']).length;
        expect(free, 'room for the reason of a refusal').to.be.above(200);
      });

      it('would be rejected if it also named the v1 network, so it does not', () => {
        const challenge = parse(renderChallenge(operation, terms, LIVE));
        const [option] = challenge.accepts;
        const mixed = { ...challenge, accepts: [option, { ...option, network: terms.v1Network }] };
        expect(parsePaymentRequired(mixed).success).to.equal(false);
      });

      it('names only the v1 network, without free text, when requested in v1', () => {
        const challenge = expectSound(renderChallenge(operation, terms, LIVE, 1));
        expect(challenge).to.have.all.keys('x402Version', 'accepts');
        expect(challenge.x402Version).to.equal(1);
        expect(challenge.accepts.map(option => option.network)).to.deep.equal([terms.v1Network]);
        expect(parse(renderChallenge(operation, terms, LIVE, 1, 'bad signature')).error).to.equal(
          'bad signature',
        );
      });

      it('tells v1 crawlers in outputSchema how to call the operation, and what it answers', () => {
        const [option] = parse(renderChallenge(operation, terms, LIVE, 1)).accepts;
        const { input, output } = option!.outputSchema as { input: Json; output?: Json };
        const { method, request } = operation;
        expect(input).to.deep.include({ type: 'http', method, ...(request ? { bodyType: 'json' } : {}) });
        const { properties = {}, required = [] } = (request?.plain ?? {}) as {
          properties?: Record<string, Json>;
          required?: string[];
        };
        const fields = (input.bodyFields ?? {}) as Record<string, Json>;
        expect(Object.keys(fields)).to.deep.equal(Object.keys(properties));
        for (const [name, field] of Object.entries(properties)) {
          const { type, description } = field;
          expect(fields[name]).to.deep.equal({ type, description, required: required.includes(name) });
        }
        const [{ kind, mimeType, example }] = operation.answers;
        expect(output).to.deep.equal(kind === 'json' ? example : { type: kind, format: mimeType });
        expect(parse(renderChallenge(operation, terms, LIVE)).accepts[0]).not.to.have.property(
          'outputSchema',
        );
      });

      it('tells crawlers how to call the operation, in a form that the schema in the challenge accepts', () => {
        const { extensions } = parse(renderChallenge(operation, terms, LIVE)) as unknown as {
          extensions: Record<string, { info: Json; schema: Json }>;
        };
        for (const extension of ['bazaar', 'payment-identifier']) {
          const { info, schema } = extensions[extension]!;
          const validate = new Ajv2020({ strict: false }).compile(schema);
          expect(validate(info), `${extension}: ${ajv.errorsText(validate.errors)}`).to.equal(true);
        }
        const { input } = extensions.bazaar!.info as { input: Json };
        expect(input).to.include({ type: 'http', method: operation.method });
        const takesBody = ajv.compile(operation.request?.plain ?? {});
        expect(takesBody(input.body), ajv.errorsText(takesBody.errors)).to.equal(true);
        expect(extensions['payment-identifier']!.info).to.deep.equal({ required: false });
        const takesId = new Ajv2020().compile(extensions['payment-identifier']!.schema);
        const ids = ['a'.repeat(15), 'a'.repeat(16), 'Z9_-'.repeat(32), 'a'.repeat(129), 'no spaces in ids!'];
        expect(ids.map(id => takesId({ required: false, id }))).to.deep.equal([
          false,
          true,
          true,
          false,
          false,
        ]);
        expect(takesId({ id: 'a'.repeat(16) })).to.equal(false);
      });
    });
  }
}

describe('The challenge', () => {
  const [operation] = paid as [PricedOperation];

  it('has no blockhash while none is known', () => {
    for (const { extra } of parse(renderChallenge(operation, SANDBOX, { feePayer: FEE_PAYER })).accepts) {
      expect(extra).to.deep.equal({ feePayer: FEE_PAYER, ...USDC_TOKEN });
    }
  });

  it('never shortens an example: one that does not fit into the header is left out with the whole description of the call', () => {
    for (const length of [50, 500, 1_000, 5_000]) {
      const text = 'a'.repeat(length);
      const long = { ...operation, request: { ...operation.request!, example: { text } } };
      const { extensions } = expectSound(renderChallenge(long, MAINNET, LIVE));
      const { bazaar } = extensions as { bazaar?: { info: { input: { body: Json } } } };
      expect(extensions).to.have.property('payment-identifier');
      if (length < 1_000) expect(bazaar?.info.input.body).to.deep.equal({ text });
      if (length === 5_000) expect(bazaar).to.equal(undefined);
    }
  });
});

describe('A server that makes offers', () => {
  const upfront = paid.find(operation => operation.flow === 'upfront')!;
  const [operation] = paid as [PricedOperation];
  const VIEW = { blockhash: BLOCKHASH, slot: 7, height: 5 };
  let clock = 1_000_000;
  let hints: SolanaHints;
  let offers: Offers;
  const open = (): void => {
    hints = new SolanaHints(FEE_PAYER, () => clock);
    offers = new Offers(sellingOf(SANDBOX).methods, hints);
  };
  const blockhashes = (): unknown[] =>
    parse(offers.challenge(operation, x402In(offers, 2))).accepts.map(option => option.extra.recentBlockhash);

  afterEach(() => hints.close());

  it('keeps its challenges until the fee payer or the blockhash changes', () => {
    open();
    const first = offers.challenge(operation, x402In(offers, 2));
    expect(offers.challenge(operation, x402In(offers, 2))).to.equal(first);
    hints.setFeePayer(FEE_PAYER);
    clock += 60_000;
    expect(offers.challenge(operation, x402In(offers, 2))).to.equal(first);
    hints.setView(VIEW);
    expect(offers.challenge(operation, x402In(offers, 2))).not.to.equal(first);
    expect(blockhashes()).to.deep.equal([BLOCKHASH]);
    hints.setFeePayer(OTHER_FEE_PAYER);
    for (const version of [1, 2] as const) {
      for (const { extra } of parse(offers.challenge(operation, x402In(offers, version))).accepts) {
        expect(extra).to.deep.equal({
          feePayer: OTHER_FEE_PAYER,
          recentBlockhash: BLOCKHASH,
          ...USDC_TOKEN,
        });
      }
    }
  });

  it('drops a blockhash 20 s after it was read; each read starts a new 20 s', () => {
    open();
    const timers = new Map<number, { run: () => void; at: number }>();
    const real = { set: globalThis.setTimeout, clear: globalThis.clearTimeout };
    let elapsed = 0;
    const pass = (ms: number): void => {
      elapsed += ms;
      clock += ms;
      for (const [id, { run, at }] of timers) {
        if (at > elapsed) continue;
        timers.delete(id);
        run();
      }
    };
    let next = 1;
    const schedule = (run: () => void, ms: number): object => {
      const id = next++;
      timers.set(id, { run, at: elapsed + ms });
      return { id, unref: () => undefined };
    };
    globalThis.setTimeout = schedule as unknown as typeof setTimeout;
    globalThis.clearTimeout = ((timer?: { id: number }) =>
      void (timer && timers.delete(timer.id))) as typeof clearTimeout;
    try {
      hints.setView(VIEW);
      pass(19_999);
      expect(blockhashes()).to.deep.equal([BLOCKHASH]);
      hints.setView({ ...VIEW, slot: VIEW.slot + 1, blockhash: FEE_PAYER });
      pass(19_999);
      expect(blockhashes()).to.deep.equal([FEE_PAYER]);
      pass(1);
      expect(blockhashes()).to.deep.equal([undefined]);
      expect(timers.size).to.equal(0);
    } finally {
      globalThis.setTimeout = real.set;
      globalThis.clearTimeout = real.clear;
    }
  });

  it('starts no payment on a view of the chain older than 40 s', () => {
    open();
    expect(hints.view()).to.equal(undefined);
    hints.setView(VIEW);
    expect(hints.view()).to.include(VIEW);
    clock += 40_000;
    expect(hints.view()).to.include(VIEW);
    clock += 1;
    expect(hints.view()).to.equal(undefined);
  });

  it("lets the view of the chain grow old if the node's slot does not change", () => {
    open();
    hints.setView(VIEW);
    for (let look = 0; look < 4; look++) {
      clock += 10_000;
      hints.setView({ ...VIEW, blockhash: FEE_PAYER });
    }
    expect(hints.view()).to.include(VIEW);
    clock += 1;
    expect(hints.view()).to.equal(undefined);
    hints.setView({ ...VIEW, slot: VIEW.slot - 1 });
    expect(hints.view()).to.equal(undefined);
    hints.setView({ ...VIEW, slot: VIEW.slot + 1 });
    expect(hints.view()?.slot).to.equal(VIEW.slot + 1);
  });

  const errors: [string, string][] = [
    ['short', 'bad signature'],
    ['long', 'no '.repeat(10_000)],
    ['of three-byte characters', '不'.repeat(10_000)],
    ['of surrogate pairs', '💸'.repeat(10_000)],
    ['of half pairs', '\ud83d'.repeat(10_000)],
    ['of characters that JSON escapes', '\u0001"\\\n'.repeat(10_000)],
  ];
  for (const [name, error] of errors) {
    it(`keeps a refusal within the size of the header if the error is ${name}`, () => {
      open();
      hints.setView(VIEW);
      for (const sold of [operation, upfront]) {
        for (const version of [1, 2] as const) {
          const challenge = expectSound(offers.refusal(sold, x402In(offers, version), error, true));
          const bytes = Buffer.byteLength(JSON.stringify(challenge.error));
          expect(bytes).to.be.at.least(Math.min(error.length, 80));
          expect(error.startsWith(String(challenge.error))).to.equal(true);
          const half = /[\ud800-\udbff](?![\udc00-\udfff])/;
          if (!half.test(error)) expect(half.test(String(challenge.error))).to.equal(false);
        }
      }
    });
  }

  const signedOver = (blockhash: string, hasNonce = false): CheckedTransaction => ({
    id: '',
    evidence: '',
    feePayer: FEE_PAYER,
    payer: FEE_PAYER,
    blockhash: bytesOf(blockhash),
    hasNonce,
    answers: false,
    selfPaid: false,
  });
  const next = (blockhash: string, slot = VIEW.slot + 1) => hints.setView({ ...VIEW, slot, blockhash });

  it('stops offering a blockhash once a payment without a nonce has been signed with it, and does not rebuild challenges', () => {
    open();
    const without = offers.challenge(operation, x402In(offers, 2));
    hints.setView(VIEW);
    let told = 0;
    hints.onUsedUp = () => told++;
    hints.markBlockhashUsed(signedOver(BLOCKHASH, true), true);
    expect(blockhashes(), 'with a nonce').to.deep.equal([BLOCKHASH]);
    hints.markBlockhashUsed(signedOver(BLOCKHASH), false);
    expect(offers.challenge(operation, x402In(offers, 2))).to.equal(without);
    expect(told).to.equal(1);
    next(BLOCKHASH);
    expect(blockhashes(), 'the same one, read again').to.deep.equal([undefined]);
    next(FEE_PAYER);
    expect(blockhashes()).to.deep.equal([FEE_PAYER]);
  });

  it('offers another blockhash of the same slot in place of one that was used up', () => {
    open();
    hints.setView(VIEW);
    hints.markBlockhashUsed(signedOver(BLOCKHASH), true);
    clock += 1_000;
    next(FEE_PAYER, VIEW.slot);
    expect(blockhashes()).to.deep.equal([FEE_PAYER]);
    clock += 39_001;
    expect(hints.view(), 'which does not renew the view').to.equal(undefined);
  });

  it('lets unsettled payments use up at most one blockhash every 2 s, and settled payments any number', () => {
    open();
    hints.setView(VIEW);
    hints.markBlockhashUsed(signedOver(BLOCKHASH), false);
    next(FEE_PAYER);
    hints.markBlockhashUsed(signedOver(FEE_PAYER), false);
    expect(blockhashes()).to.deep.equal([FEE_PAYER]);
    hints.markBlockhashUsed(signedOver(FEE_PAYER), true);
    expect(blockhashes()).to.deep.equal([undefined]);
    next(OTHER_FEE_PAYER, VIEW.slot + 2);
    clock += 2_000;
    hints.markBlockhashUsed(signedOver(OTHER_FEE_PAYER), false);
    expect(blockhashes()).to.deep.equal([undefined]);
  });

  it('reads the chain every 2 s while calls arrive, sooner if a blockhash was used up, and otherwise every 10 s', () => {
    open();
    hints.setView(VIEW);
    expect(hints.nextReadAfterMs()).to.equal(10_000);
    offers.challenge(operation, x402In(offers, 2));
    expect(hints.nextReadAfterMs()).to.equal(2_000);
    next(FEE_PAYER);
    expect(hints.nextReadAfterMs()).to.equal(10_000);
    hints.markBlockhashUsed(signedOver(FEE_PAYER), true);
    expect(hints.nextReadAfterMs()).to.equal(400);
    next(FEE_PAYER, VIEW.slot + 2);
    expect(hints.nextReadAfterMs()).to.equal(400);
    next(BLOCKHASH, VIEW.slot + 3);
    expect(hints.nextReadAfterMs()).to.equal(10_000);
  });

  it('offers a blockhash in the refusal of a payment without a nonce only if the payment used another blockhash', () => {
    open();
    hints.setView(VIEW);
    const offered = (payment: CheckedTransaction): unknown[] =>
      parse(offers.refusal(operation, x402In(offers, 2), 'spent', false, payment)).accepts.map(
        option => option.extra.recentBlockhash,
      );
    expect(offered(signedOver(BLOCKHASH))).to.deep.equal([undefined]);
    expect(offered(signedOver(FEE_PAYER))).to.deep.equal([BLOCKHASH]);
  });

  it('offers no blockhash in a refusal that must not lead to the same transaction', () => {
    open();
    hints.setView(VIEW);
    const extras = (withBlockhash: boolean): Json[] =>
      parse(offers.refusal(operation, x402In(offers, 2), 'spent', withBlockhash)).accepts.map(
        option => option.extra,
      );
    expect(extras(false).some(extra => 'recentBlockhash' in extra)).to.equal(false);
    expect(extras(true).every(extra => extra.recentBlockhash === BLOCKHASH)).to.equal(true);
    expect(blockhashes()).to.deep.equal([BLOCKHASH]);
  });
});
