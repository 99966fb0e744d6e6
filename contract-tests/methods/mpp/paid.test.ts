import type { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { craftPayment, v1Header, v2Header } from '../../support/craft.js';
import { until } from '../../support/faults.js';
import { onEachEngine } from '../../support/ledger-places.js';
import { Doors } from '../../support/doors.js';
import { callTool } from '../../support/mcp-call.js';
import {
  credentialOf,
  mppPayment,
  readChallenge,
  type MppPayment,
  type ReadChallenge,
} from '../../support/mpp-payment.js';
import { fundedKey } from '../../support/own-facilitator.js';
import { SUMMARIZE, TestChain } from '../../support/test-chain.js';
import { TestCluster, type TestServer } from '../../support/test-server.js';
import { call, type Answer } from '../../support/world.js';
import { requirementsOf } from '../../../src/methods/x402/requirements.js';

const COPIES = 200;
const FORMS = { 'the server pays the fee': true, 'the buyer pays the fee': false };

type Said = Record<string, unknown> | undefined;

/** A lease may end on a slow machine, and the work is then done twice: all callers still get the answer of one run. */
function expectOneAnswer(said: Said[], last: Said): void {
  expect(last).to.have.property('summary');
  for (const each of said) {
    if (each && 'summary' in each) expect(each).to.deep.equal(last);
    else expect(String(each?.['error'])).to.match(/[Ss]end the same payment again/);
  }
}

onEachEngine('mpp: payments on a chain', (makePlace, engine) => {
  let testChain: TestChain;
  let key: Keypair;

  before(async () => {
    // Slower slots than usual, so that a payment stays valid until a slow machine has sent 200 copies.
    testChain = await TestChain.open(300);
    key = await fundedKey(testChain);
  });
  after(() => testChain.close());

  for (const [form, sponsored] of Object.entries(FORMS)) {
    describe(form, () => {
      let payer: Keypair;
      let servers: TestServer[];
      let doors: Doors[];
      let runs = 0;
      let meanwhile = async (): Promise<void> => {};
      const closers: (() => Promise<unknown>)[] = [];

      before(async () => {
        const place = await makePlace();
        const cluster = await TestCluster.open(testChain, place.url);
        const own = sponsored ? { own: key } : {};
        // SQLite allows one server for a ledger, so there the same server is used as both.
        const first = await cluster.testServer(own);
        servers = [first, engine === 'SQLite' ? first : await cluster.testServer(own)];
        const work = async (): Promise<{ status: 200; body: { summary: string } }> => {
          await meanwhile();
          return { status: 200, body: { summary: `run ${++runs}` } };
        };
        doors = [await Doors.open(servers[0]!, work), await Doors.open(servers[1]!, work)];
        closers.push(...doors.map(each => each.close), () => cluster.close(), place.remove);
      });
      after(async () => {
        for (const close of closers.splice(0)) await close();
      });
      beforeEach(async () => {
        runs = 0;
        meanwhile = async () => {};
        [payer] = (await testChain.payers(1)) as [Keypair];
      });

      const http = (text: string, headers: Record<string, string> = {}, at = 0): Promise<Answer> =>
        call(`${doors[at]!.url}/v1/summarize`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify({ text }),
        });
      const challenge = async (at = 0): Promise<ReadChallenge> =>
        readChallenge((await http('a text', {}, at)).headers.get('www-authenticate'));
      const authorized = ({ authorization }: MppPayment): Record<string, string> => ({ authorization });
      const landed = (): number[] => [...testChain.landed([payer]).values()];
      /** The payer's USDC. */
      const balance = async (): Promise<bigint> => {
        const { value } = await testChain.connection.getTokenAccountBalance(
          testChain.tokenAccount(payer.publicKey),
        );
        return BigInt(value.amount);
      };
      const answered = async (send: () => Promise<Answer>): Promise<Said> => {
        let last = await send();
        await until('it is answered', async () => last.status !== 503 || !(last = await send()));
        return last.json();
      };
      const FUNDS = 20_000_000n;
      const PRICE = SUMMARIZE.price.atomic;

      it('buys once over HTTP, with a receipt, and the same payment gets the same answer at the other server', async () => {
        const asked = await challenge();
        expect(asked.request.methodDetails.feePayerKey).to.equal(
          sponsored ? key.publicKey.toBase58() : undefined,
        );
        const payment = mppPayment(asked, payer);
        const [first, again] = [
          await http('a text', authorized(payment)),
          await http('a text', authorized(payment), 1),
        ];
        for (const answer of [first, again]) {
          expect([answer.status, answer.json()]).to.deep.equal([200, { summary: 'run 1' }]);
          const receipt = JSON.parse(
            Buffer.from(String(answer.headers.get('payment-receipt')), 'base64url').toString(),
          ) as Record<string, string>;
          expect(receipt).to.include({ method: 'solana', challengeId: asked.wire['id'], status: 'success' });
          expect(testChain.sandbox.chain.find(String(receipt['reference']))?.err).to.equal(null);
          expect(answer.headers.get('payment-response')).to.equal(null);
        }
        expect(await balance()).to.equal(FUNDS - PRICE);
        const row = await servers[0]!.reader.find(payment.id);
        expect(row).to.include({ method: 'mpp', state: 'delivered' });
      });

      it('buys over MCP with the challenge that the result of an unpaid call contains', async () => {
        const unpaid = await callTool(doors[0]!.url, 'summarize', { text: 'a tool' });
        const [{ request, ...parts }] = unpaid._meta?.['org.paymentauth/challenges'] as [
          ReadChallenge['wire'] & { request: ReadChallenge['request'] },
        ];
        const payment = mppPayment({ wire: parts, request }, payer);
        const sold = await callTool(doors[1]!.url, 'summarize', { text: 'a tool' }, payment.meta);
        expect(sold.structuredContent, JSON.stringify(sold)).to.deep.equal({ summary: 'run 1' });
        expect(sold._meta?.['org.paymentauth/receipt']).to.include({
          challengeId: parts['id'],
          status: 'success',
        });
        expect(await balance()).to.equal(FUNDS - PRICE);
      });

      it(`${COPIES} copies of one payment, sent to all servers over both transports, make one transfer and get one answer`, async () => {
        const payment = mppPayment(await challenge(), payer);
        const copies = Array.from({ length: COPIES }, async (_, n) => {
          const at = n % 2;
          if (n % 4 < 2) return (await http('copied', authorized(payment), at)).json();
          return (await callTool(doors[at]!.url, 'summarize', { text: 'copied' }, payment.meta))
            .structuredContent;
        });
        const answers = await Promise.all(copies);
        expectOneAnswer(answers, await answered(() => http('copied', authorized(payment))));
        expect(await balance()).to.equal(FUNDS - PRICE);
      });

      it('does no work for a wallet without the money: the answer is a 402, and nothing is sent to the chain', async () => {
        await testChain.spendAll(payer);
        const answer = await http('poor', authorized(mppPayment(await challenge(), payer)));
        expect([answer.status, runs]).to.deep.equal([402, 0]);
        expect(answer.json().error).to.match(/balance|simulation/);
      });

      if (!sponsored)
        it('completes the sale if the buyer sends the payment to the chain during the work', async () => {
          const payment = mppPayment(await challenge(), payer);
          meanwhile = async () => {
            const bytes = Buffer.from(payment.transaction, 'base64');
            await testChain.connection.sendRawTransaction(bytes, { skipPreflight: true });
          };
          const answer = await http('sent twice', authorized(payment));
          expect([answer.status, answer.json()]).to.deep.equal([200, { summary: 'run 1' }]);
          expect(await balance()).to.equal(FUNDS - PRICE);
          expect(await servers[0]!.reader.find(payment.id)).to.include({ state: 'delivered' });
        });

      if (sponsored)
        it(`one transaction, sent ${COPIES} times by MPP and both versions of x402 to all servers, makes one transfer and gets one answer`, async () => {
          const asked = await challenge();
          const { transaction } = craftPayment({
            payer,
            feePayer: key.publicKey.toBase58(),
            payTo: asked.request.recipient,
            asset: asked.request.currency,
            amount: PRICE,
            memo: asked.request.externalId,
            blockhash: testChain.sandbox.chain.latestBlockhash('processed').blockhash,
          });
          const { authorization, meta } = credentialOf(asked, transaction);
          const { terms } = testChain;
          const v2 = v2Header(requirementsOf(SUMMARIZE, terms, key.publicKey.toBase58()), transaction);
          const v1 = v1Header(terms.v1Network, transaction);
          const metaOf = (header: string): Record<string, unknown> => ({
            'x402/payment': JSON.parse(Buffer.from(header, 'base64').toString()) as unknown,
          });
          const ways: { headers: Record<string, string>; meta: Record<string, unknown> }[] = [
            { headers: { authorization }, meta },
            { headers: { 'PAYMENT-SIGNATURE': v2 }, meta: metaOf(v2) },
            { headers: { 'X-PAYMENT': v1 }, meta: metaOf(v1) },
          ];
          const copies = Array.from({ length: COPIES }, async (_, n) => {
            const { headers, meta: carried } = ways[n % 3]!;
            const at = n % 2;
            if (n % 4 < 2) return (await http('all', headers, at)).json();
            return (await callTool(doors[at]!.url, 'summarize', { text: 'all' }, carried)).structuredContent;
          });
          const answers = await Promise.all(copies);
          expectOneAnswer(answers, await answered(() => http('all', ways[1]?.headers, 1)));
          expect(landed()).to.deep.equal([1]);
        });
    });
  }
});
