import { join } from 'node:path';
import {
  createAssociatedTokenAccountIdempotentInstruction,
  createTransferCheckedInstruction,
  getAssociatedTokenAddressSync,
} from '@solana/spl-token';
import {
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  TransactionMessage,
  VersionedTransaction,
  type TransactionInstruction,
} from '@solana/web3.js';
import { expect } from 'chai';
import { aBody, allInOneWorld, feedbackOf, openServer, send, sign, world } from '../support/brand-servers.js';
import { craftPayment, v2Header } from '../support/craft.js';
import { until } from '../support/faults.js';
import { jsonOf, ledgerCommand } from '../support/ledger-command.js';
import { faultOf } from '../support/ledgers.js';
import { signedIn } from '../support/respondent.js';
import { offerOf, post, recipeOf, TEXT } from '../support/world.js';

type Verdict = {
  transfers: number;
  settled: number;
  foreign: number;
  accounts: { payTo: string; transfers: number }[];
  withdrawals: { transactions: number };
  differences: { kind: string; transaction: string | null }[];
};

describe('The receiver changes', function () {
  this.timeout(120_000);
  allInOneWorld({ slotMs: 100 });
  const first = Keypair.generate();
  const second = Keypair.generate();
  let mint: PublicKey;

  const usdcOf = ({ publicKey }: Keypair): PublicKey => getAssociatedTokenAddressSync(mint, publicKey);
  const addressOf = ({ publicKey }: Keypair): string => publicKey.toBase58();

  async function transact(payer: Keypair, instructions: TransactionInstruction[]): Promise<string> {
    const { connection } = world;
    const { blockhash: recentBlockhash } = await connection.getLatestBlockhash();
    const content = { payerKey: payer.publicKey, recentBlockhash, instructions };
    const transaction = new VersionedTransaction(new TransactionMessage(content).compileToV0Message());
    transaction.sign([payer]);
    return finalized(await connection.sendRawTransaction(transaction.serialize()));
  }

  async function finalized(signature: string): Promise<string> {
    await until(
      'it is final',
      async () => {
        const { value } = await world.connection.getSignatureStatuses([signature]);
        return value[0]?.confirmationStatus === 'finalized';
      },
      40_000,
    );
    return signature;
  }

  const move = (from: Keypair, to: Keypair, amount: bigint): Promise<string> =>
    transact(from, [
      createTransferCheckedInstruction(usdcOf(from), mint, usdcOf(to), from.publicKey, amount, 6),
    ]);

  async function buySummary(url: string, number: number) {
    const offer = await offerOf(url);
    const payer = Keypair.fromSecretKey(world.buyer);
    const { transaction } = craftPayment(recipeOf(offer, payer));
    const headers = { 'PAYMENT-SIGNATURE': v2Header(offer, transaction) };
    const body = { text: `${TEXT} This is number ${number}.` };
    const redeem = (at: string) => post(`${at}/v1/summarize`, body, headers);
    return { redeem, answer: await redeem(url), payTo: offer.payTo };
  }

  it('and answers delivered or owed under the former one can still be fetched; each payment is checked against its own receiver', async () => {
    mint = new PublicKey(world.sandbox.info.usdcMint);
    const buyer = Keypair.fromSecretKey(world.buyer);
    for (const { publicKey } of [buyer, first])
      await world.connection.requestAirdrop(publicKey, LAMPORTS_PER_SOL);
    await transact(
      buyer,
      [first, second].map(owner =>
        createAssociatedTokenAccountIdempotentInstruction(
          buyer.publicKey,
          usdcOf(owner),
          owner.publicKey,
          mint,
        ),
      ),
    );
    // Until the ledger belongs to the second receiver, the server does not accept payments to it.
    await move(buyer, second, 5_000n);

    const before = await openServer('shop', { PAY_TO: addressOf(first), HOLD_SECONDS: '1' });
    const person = await signedIn(before.url);
    const delivered = await buySummary(before.url, 1);
    expect(delivered.answer.status, delivered.answer.body.toString()).to.equal(200);
    const question = await sign(before);
    const body = aBody(1);
    expect((await send(before, question, body, 0)).status).to.equal(503);
    await until('it is owed', async () => (await before.reader.find(question.id))?.state === 'owed');

    const env = { STATE_DIR: join(world.stateDir, 'shop') };
    const early = await ledgerCommand(env, 'receiver', addressOf(second));
    expect(early).to.include({ status: 1, stdout: '' });
    expect(early.stderr).to.include('in use by another running server');
    await before.stop();
    const refusal = await failureOfStart(addressOf(second));
    expect(refusal)
      .to.include(`belongs to PAY_TO ${addressOf(first)}`)
      .and.include('npm run ledger -- receiver');
    expect((await ledgerCommand(env, 'receiver', 'nobody')).stderr).to.include('not a Solana address');
    const changed = await ledgerCommand(env, 'receiver', addressOf(second));
    expect(changed.stderr).to.equal('');
    expect(changed.stdout)
      .to.include(`was ${addressOf(first)} and is now ${addressOf(second)}`)
      .and.include(question.id.slice(0, 16))
      .and.include('1 payments, 0.50 USDC owed');
    expect(await failureOfStart(addressOf(first))).to.include(`belongs to PAY_TO ${addressOf(second)}`);

    const after = await openServer('shop', { PAY_TO: addressOf(second), HOLD_SECONDS: '1' });
    expect((await delivered.redeem(after.url)).body.equals(delivered.answer.body)).to.equal(true);
    const waiting = send(after, question, body, 40);
    person.moveTo(after.url);
    await person.answer(question.id, 'A fine cup.', 'positive');
    const feedback = await waiting;
    expect(feedback.status, feedback.body.toString()).to.equal(200);
    expect(feedbackOf(feedback).responses).to.deep.equal([{ text: 'A fine cup.', sentiment: 'positive' }]);
    const sold = await buySummary(after.url, 2);
    expect(sold).to.have.property('payTo', addressOf(second));
    expect(sold.answer.status).to.equal(200);

    await move(first, second, 400_000n);
    const chain = { ...env, SOLANA_RPC_URL: world.sandbox.rpc.url };
    const { stdout, status } = await ledgerCommand(chain, 'verify', '--json');
    const verdict = JSON.parse(stdout) as Verdict;
    expect(verdict.differences).to.deep.equal([]);
    expect(status).to.equal(0);
    expect(verdict).to.include({ transfers: 3, settled: 3 });
    expect(verdict.accounts.map(({ payTo, transfers }) => [payTo, transfers])).to.deep.equal([
      [addressOf(second), 1],
      [addressOf(first), 2],
    ]);
    expect(verdict.withdrawals.transactions).to.equal(1);
    const stranger = await move(buyer, second, 77n);
    const again = JSON.parse((await ledgerCommand(chain, 'verify', '--json')).stdout) as Verdict;
    expect(again.differences.map(({ kind, transaction }) => [kind, transaction])).to.deep.equal([
      ['unknown', stranger],
    ]);
    const shown = await jsonOf<{ payTo: string; former: { payTo: string }[] }>(env, 'receiver');
    expect(shown.payTo).to.equal(addressOf(second));
    expect(shown.former.map(({ payTo }) => payTo)).to.deep.equal([addressOf(first)]);
  });

  async function failureOfStart(payTo: string): Promise<string> {
    return (await faultOf(openServer('shop', { PAY_TO: payTo }))).message;
  }
});
