import {
  createAssociatedTokenAccountInstruction,
  createTransferCheckedInstruction,
  createTransferInstruction,
  getAssociatedTokenAddressSync,
  TOKEN_2022_PROGRAM_ID,
} from '@solana/spl-token';
import {
  AddressLookupTableAccount,
  Keypair,
  PublicKey,
  SystemProgram,
  TransactionMessage,
  VersionedTransaction,
  type TransactionInstruction,
} from '@solana/web3.js';
import { expect } from 'chai';
import {
  base64Json,
  craftPayment,
  craftVersion1,
  DEVNET,
  DEVNET_V1,
  memoInstruction,
  openAccountInstruction,
  v1Header,
  v2Header,
  type Recipe,
} from '../../support/craft.js';
import {
  call,
  challengeOf,
  openWorld,
  post,
  receiptOf,
  signFor,
  TEXT,
  type Answer,
  type World,
} from '../../support/world.js';
import { toDecimal } from '../../../src/price/amount.js';
import { RECENT_BLOCKHASHES_SYSVAR } from '../../../src/rails/solana/networks.js';
import { priceOf } from '../../support/sold.js';

type Headers = Record<string, string>;
/** The name of the error, its message, and the headers of the payment. */
type Bad = [string, RegExp, () => Headers];

const PRICE = priceOf('summarize');
const paysInstead = (amount: bigint): RegExp =>
  new RegExp(`pays ${toDecimal(amount)} USDC, must be exactly ${toDecimal(PRICE)} USDC`);
const MAX_CHALLENGE_BYTES = 4096;
const MAINNET = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const stranger = (): PublicKey => Keypair.generate().publicKey;

describe('a bad payment is refused with the reason, and costs nobody anything', function () {
  this.timeout(60_000);
  let world: World;
  let offer: Record<string, unknown>;
  let feePayer: string;
  let blockhash: string;
  let payer: Keypair;

  before(async () => {
    world = await openWorld();
    payer = Keypair.fromSecretKey(world.buyer);
    await newOffer();
  });
  after(() => world.close());

  async function newOffer(): Promise<void> {
    const challenge = challengeOf(await summarize({}));
    offer = challenge.accepts[0] ?? {};
    ({ feePayer } = offer.extra as { feePayer: string });
    ({ blockhash } = await world.connection.getLatestBlockhash());
  }

  const summarize = (headers: Headers, body: unknown = { text: TEXT }): Promise<Answer> =>
    post(`${world.url}/v1/summarize`, body, headers);
  const recipe = (bent: Recipe): Recipe => ({
    payer,
    amount: PRICE,
    feePayer,
    payTo: world.sandbox.info.payTo,
    blockhash,
    ...bent,
  });
  const craft = (bent: Recipe): string => craftPayment(recipe(bent)).transaction;
  const signature = (value: string): Headers => ({ 'PAYMENT-SIGNATURE': value });
  const paying = (transaction: string): Headers => signature(v2Header(offer, transaction));
  const bent = (how: Recipe) => (): Headers => paying(craft(how));
  const accepting = (change: object) => (): Headers =>
    signature(v2Header({ ...offer, ...change }, craft({})));
  const sending = (value: unknown) => (): Headers => signature(base64Json(value));
  const swapped = (one: number, other: number) => (usual: TransactionInstruction[]) => {
    const order = [...usual];
    [order[one], order[other]] = [usual[other]!, usual[one]!];
    return order;
  };
  const tokenAccount = (owner: PublicKey): PublicKey =>
    getAssociatedTokenAddressSync(new PublicKey(world.sandbox.info.usdcMint), owner, true);
  const table = (address: PublicKey): AddressLookupTableAccount =>
    new AddressLookupTableAccount({
      key: stranger(),
      state: {
        deactivationSlot: 2n ** 64n - 1n,
        lastExtendedSlot: 1,
        lastExtendedSlotStartIndex: 0,
        addresses: [address],
      },
    });

  /** Sends a transaction by the buyer that is not a payment. */
  async function prepare(...instructions: TransactionInstruction[]): Promise<void> {
    const recentBlockhash = (await world.connection.getLatestBlockhash()).blockhash;
    const message = new TransactionMessage({ payerKey: payer.publicKey, recentBlockhash, instructions });
    const transaction = new VersionedTransaction(message.compileToV0Message());
    transaction.sign([payer]);
    const sent = await world.connection.sendTransaction(transaction);
    const { value } = await world.connection.getSignatureStatuses([sent]);
    expect(value[0]?.err).to.equal(null);
  }

  /** Checks one refusal and returns its error message. */
  function refusal(answer: Answer): string {
    expect(answer.status, answer.body.toString()).to.equal(402);
    const challenge = challengeOf(answer);
    expect(String(answer.headers.get('payment-required')).length).to.be.at.most(MAX_CHALLENGE_BYTES);
    expect(challenge.accepts.length).to.be.greaterThan(0);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    return challenge.error ?? '';
  }

  /** The requests to the chain and the facilitator that a payment may have caused, without the server's background reads. */
  const asked = (): Record<string, number> => {
    const { rpc, facilitator } = world;
    const blockhashes = `getAccountInfo ${RECENT_BLOCKHASHES_SYSVAR}`;
    const background = [
      ...['getLatestBlockhash', 'getHealth', 'getSlot', 'getVersion', 'getBlockHeight'],
      blockhashes,
    ];
    const known = background.reduce((sum, method) => sum + rpc.count(method), 0);
    return {
      rpc: rpc.count() - known,
      verify: facilitator.count('/verify'),
      settle: facilitator.count('/settle'),
    };
  };

  const HEADERS: Bad[] = [
    ['is empty', /not base64/, () => signature('')],
    ['is not base64', /not base64/, () => signature('{"x402Version":2}')],
    ['is two headers of one name', /not base64/, () => signature(`${base64Json({})}, ${base64Json({})}`)],
    [
      'is base64 of something other than JSON',
      /not base64-encoded JSON/,
      () => signature(Buffer.from('pay me').toString('base64')),
    ],
    ['is cut off', /not base64/, () => signature(v2Header(offer, craft({})).slice(0, 301))],
    ['is a JSON number', /not a JSON object/, sending(402)],
    ['is null', /not a JSON object/, sending(null)],
    ['is a list', /not a JSON object/, sending([{}])],
    ['is an empty object', /x402Version/, sending({})],
    ['has no payload', /payload/, () => signature(base64Json({ x402Version: 2, accepted: offer }))],
    ['has a number for a transaction', /transaction must be string/, () => paying(7 as unknown as string)],
    ['accepts a text', /accepted must be object/, sending({ x402Version: 2, accepted: 'all', payload: {} })],
    [
      'is of version 3',
      /x402Version/,
      () => sending({ x402Version: 3, accepted: offer, payload: { transaction: craft({}) } })(),
    ],
    [
      'is v1 without a network',
      /network/,
      sending({ x402Version: 1, scheme: 'exact', payload: { transaction: '' } }),
    ],
    [
      'differs between the two headers',
      /two different payments/,
      () => ({ ...paying(craft({})), 'X-PAYMENT': v1Header(DEVNET_V1, craft({})) }),
    ],
    ['is huge', /8192 characters/, () => paying('A'.repeat(8200))],
  ];

  const OFFERS: Bad[] = [
    ['names the scheme upto', /scheme: 'upto'/, accepting({ scheme: 'upto' })],
    ['names another network', /network: 'solana:5eykt/, accepting({ network: MAINNET })],
    ['names a network of 256 characters', /network: '/, accepting({ network: '"'.repeat(256) })],
    [
      'is v1 for another network',
      /network: 'solana'/,
      () => ({ 'X-PAYMENT': v1Header('solana', craft({})) }),
    ],
    ['accepts a lower amount', /amount: accepted \S+ USDC/, accepting({ amount: `${PRICE - 1n}` })],
    ['accepts a higher amount', /amount: accepted \S+ USDC/, accepting({ amount: `${PRICE + 1n}` })],
    ['accepts another asset', /asset: accepted/, accepting({ asset: stranger().toBase58() })],
    ['accepts another receiver', /payTo: accepted/, accepting({ payTo: stranger().toBase58() })],
    [
      'accepts another flow',
      /paymentFlow: accepted upfront/,
      () => accepting({ extra: { feePayer, paymentFlow: 'upfront' } })(),
    ],
  ];

  const TRANSACTIONS: Bad[] = [
    ['is not base64', /transaction: not base64/, () => paying('%%%%')],
    ['is empty', /transaction: not base64/, () => paying('')],
    ['is noise', /cannot be decoded/, () => paying(Buffer.alloc(300, 9).toString('base64'))],
    ['is truncated', /cannot be decoded/, bent({ bytes: bytes => bytes.subarray(0, -20) })],
    ['trails a byte', /canonical/, bent({ bytes: bytes => Buffer.concat([bytes, Buffer.of(0)]) })],
    [
      'is larger than a packet',
      /larger than 1232/,
      bent({ bytes: bytes => Buffer.concat([bytes, Buffer.alloc(1000)]) }),
    ],
    ['is of version 1', /version 0 or legacy/, () => paying(craftVersion1(recipe({})))],
    ['pays too little', paysInstead(PRICE - 1n), bent({ amount: PRICE - 1n })],
    ['pays too much', paysInstead(PRICE + 1n), bent({ amount: PRICE + 1n })],
    ['pays in another mint', /pays in mint/, () => bent({ asset: world.sandbox.info.mints.classic })()],
    ['misstates the decimals', /decimals are 9/, bent({ decimals: 9 })],
    ['pays somebody else', /pays to token account/, bent({ payTo: stranger().toBase58() })],
    ['pays another account', /pays to token account/, bent({ destination: stranger() })],
    [
      'pays through Token-2022',
      /TransferChecked of the Token program/,
      bent({ tokenProgram: TOKEN_2022_PROGRAM_ID }),
    ],
    [
      'uses the unchecked Transfer',
      /TransferChecked/,
      () => {
        const { publicKey } = payer;
        const to = tokenAccount(new PublicKey(world.sandbox.info.payTo));
        const plain = createTransferInstruction(tokenAccount(publicKey), to, publicKey, 10_000);
        return bent({ instructions: ([limit, price]) => [limit!, price!, plain] })();
      },
    ],
    ['has no signature', /signature is missing/, bent({ signature: 'none' })],
    [
      'has a signature over other bytes',
      /signature is missing or does not match/,
      bent({ signature: 'wrong' }),
    ],
    ['is signed by a stranger', /does not match/, bent({ signature: 'stranger' })],
    ['needs three signers', /3 signatures/, bent({ extra: [memoInstruction('me, too', [stranger()])] })],
    [
      'swaps limit and price',
      /first instruction must set the compute unit limit/,
      bent({ instructions: swapped(0, 1) }),
    ],
    ['transfers first', /first instruction/, bent({ instructions: swapped(0, 2) })],
    [
      'has no budget',
      /first instruction/,
      bent({ instructions: usual => [usual[2]!, usual[3]!, memoInstruction('x')] }),
    ],
    ['is two instructions', /has 2 instructions/, bent({ instructions: usual => usual.slice(1, 3) })],
    [
      'is eight instructions',
      /has 8 instructions/,
      bent({ extra: ['1', '2', '3', '4'].map(text => memoInstruction(text)) }),
    ],
    ['bids an absurd fee', /unit price is too high/, bent({ computePrice: 10n ** 12n })],
    ['asks for absurd compute', /unit limit is too high/, bent({ computeLimit: 5_000_000 })],
    [
      'lets the fee payer open an account',
      /instruction of program|fee payer must not appear/,
      () => bent({ extra: [openAccountInstruction(new PublicKey(feePayer), stranger())] })(),
    ],
    [
      'lets the fee payer pay',
      /instruction of program 1111/,
      () => {
        const theft = { fromPubkey: new PublicKey(feePayer), toPubkey: payer.publicKey, lamports: 1 };
        return bent({ extra: [SystemProgram.transfer(theft)] })();
      },
    ],
    [
      'uses a lookup table',
      /lookup table/,
      () => bent({ lookupTables: [table(tokenAccount(new PublicKey(world.sandbox.info.payTo)))] })(),
    ],
    [
      'names a fee payer that was never offered',
      /fee payer .* was not offered/,
      () => bent({ feePayer: stranger().toBase58() })(),
    ],
    ['pays the price of another operation', paysInstead(7n * PRICE), bent({ amount: 7n * PRICE })],
  ];

  const listed = { 'whose header': HEADERS, 'whose offer': OFFERS, 'whose transaction': TRANSACTIONS };
  for (const [what, cases] of Object.entries(listed)) {
    for (const [name, says, headers] of cases) {
      it(`${what} ${name}: refused by this server, without a request to chain or facilitator`, async () => {
        const before = asked();
        const earned = await world.earned();
        const answer = await summarize(headers());
        expect(refusal(answer)).to.match(says);
        expect(answer.headers.has('payment-response')).to.equal(false);
        expect(asked()).to.deep.equal(before);
        expect(await world.earned()).to.equal(earned);
      });
    }
  }

  it('promise 7: the body of a bad payment is not even read', async () => {
    const before = asked();
    expect(refusal(await summarize(bent({ amount: 1n })(), 'this is not JSON'))).to.include(
      'pays 0.000001 USDC',
    );
    expect(asked()).to.deep.equal(before);
  });

  it('more header bytes than Node accepts are a 400 in JSON', async () => {
    const answer = await summarize(signature('A'.repeat(20_000)));
    expect(answer.status).to.equal(400);
    expect(answer.json().error).to.include('headers are larger');
  });

  it('the refusal of a v1 call is a v1 challenge that names the error', async () => {
    const headers = { 'X-PAYMENT': v1Header(DEVNET_V1, craft({ amount: 1n })) };
    const answer = await post(`${world.url}/v1/summarize?x402Version=1`, { text: TEXT }, headers);
    expect(refusal(answer)).to.match(paysInstead(1n));
    expect(challengeOf(answer)).to.have.property('x402Version', 1);
  });

  it('an empty GET with a payment is not a sale', async () => {
    const earned = await world.earned();
    const answer = await call(`${world.url}/v1/summarize`, { headers: paying(craft({})) });
    expect(answer.status).to.equal(405);
    expect(await world.earned()).to.equal(earned);
  });

  const unknownHash = (): Headers => bent({ blockhash: stranger().toBase58() })();
  const withWallet = (owner: Keypair) => (): Headers => bent({ payer: owner })();
  const nobody = Keypair.generate();
  const noTokens = Keypair.generate();
  const tooLittle = Keypair.generate();
  const otherPurse = (): Headers => bent({ source: tokenAccount(tooLittle.publicKey) })();
  const REMOTE: Bad[] = [
    ['expired or unknown blockhash', /^blockhash: expired or unknown, sign a new payment/, unknownHash],
    ['empty wallet', /^funds: the payer has no USDC account/, withWallet(nobody)],
    ['wallet without a token account', /^funds: the payer has no USDC account/, withWallet(noTokens)],
    ['wallet with too little USDC', /^funds: the payer has too little USDC/, withWallet(tooLittle)],
    [
      "somebody else's money, of which there is too little",
      /^funds: the payer has too little USDC/,
      otherPurse,
    ],
  ];

  describe('if only the chain can detect that it is bad', () => {
    before(async () => {
      const mint = new PublicKey(world.sandbox.info.usdcMint);
      const { publicKey } = payer;
      const [from, to] = [tokenAccount(publicKey), tokenAccount(tooLittle.publicKey)];
      await prepare(
        SystemProgram.transfer({ fromPubkey: publicKey, toPubkey: noTokens.publicKey, lamports: 10_000_000 }),
        createAssociatedTokenAccountInstruction(publicKey, to, tooLittle.publicKey, mint),
        createTransferCheckedInstruction(from, mint, to, publicKey, PRICE - 1n, 6),
      );
      await newOffer();
    });

    for (const [name, says, headers] of REMOTE) {
      it(`${name}: refused by verify every time it is sent, and never settled`, async () => {
        const settles = world.facilitator.count('/settle');
        const earned = await world.earned();
        const payment = headers();
        const said = refusal(await summarize(payment));
        expect(said).to.match(says);
        expect(refusal(await summarize(payment))).to.equal(said);
        expect(world.facilitator.count('/settle')).to.equal(settles);
        expect(await world.earned()).to.equal(earned);
      });
    }

    it('money that is gone between verify and settle leaves a payment refused or unresolved, and nothing is given away', async () => {
      const spender = Keypair.generate();
      const mint = new PublicKey(world.sandbox.info.usdcMint);
      const [from, to] = [tokenAccount(payer.publicKey), tokenAccount(spender.publicKey)];
      await prepare(
        createAssociatedTokenAccountInstruction(payer.publicKey, to, spender.publicKey, mint),
        createTransferCheckedInstruction(from, mint, to, payer.publicKey, PRICE, 6),
      );
      await newOffer();
      const payments = [bent({ payer: spender })(), bent({ payer: spender })(), bent({ payer: spender })()];
      const earned = await world.earned();
      const answers = await Promise.all(payments.map(payment => summarize(payment)));
      const given = answers.filter(({ status }) => status === 200);
      expect(given).to.have.lengthOf(1);
      for (const answer of answers.filter(({ status }) => status !== 200)) {
        expect(answer.status).to.be.oneOf([402, 503]);
        if (answer.status === 503) expect(receiptOf(answer).errorReason).to.equal('settlement_pending');
      }
      expect(await world.earned()).to.equal(earned + PRICE);
    });
  });

  describe('afterwards', () => {
    it('a good payment still buys its answer', async () => {
      expect(offer.network).to.equal(DEVNET);
      await newOffer();
      const earned = await world.earned();
      const crafted = await summarize(paying(craft({})));
      expect(crafted.status, crafted.body.toString()).to.equal(200);
      expect((await summarize(await signFor(world, '/v1/summarize'))).status).to.equal(200);
      expect(await world.earned()).to.equal(earned + 2n * PRICE);
    });
  });
});
