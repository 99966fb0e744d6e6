import { expect } from 'chai';
import { SIGNATURES } from '../../../src/rails/solana/fee-limits.js';
import { condenseEvidence, feePaid, keptEvidence } from '../../../src/rails/solana/kept-evidence.js';
import { readTransaction } from '../../../src/rails/solana/message.js';
import { destinationAccountOf, feePayerOf, sourceAccountOf } from '../../../src/rails/solana/transaction.js';
import { anonymizer } from '../../../src/operator/anonymizer.js';
import { signatureOf } from '../../../src/facilitators/send-until-landed.js';
import { cameFrom } from '../../../src/operator/refund-transaction.js';
import { receiverOf, receiversOf } from '../../../src/operator/receivers.js';
import { accountOf, evidenceOf, MINT, newKeyPair } from '../../support/refund-chain.js';

/** An address has at most 44 characters. */
const ADDRESS = 44;

const signed = (evidence: string): string => {
  const bytes = Buffer.from(evidence, 'base64');
  bytes.fill(7, 1, 65);
  return bytes.toString('base64');
};

describe('what a ledger keeps of a transaction whose outcome is final', () => {
  const payer = newKeyPair().address;

  it('is only the account that the money came from, in 44 characters, if the money went to the only receiver and others paid the fee', () => {
    const whole = evidenceOf(payer);
    const kept = condenseEvidence(whole, destinationAccountOf(whole));
    expect(kept).to.equal(accountOf(payer));
    expect(kept.length).to.be.at.most(ADDRESS);
    expect(cameFrom({ evidence: kept })).to.equal(cameFrom({ evidence: whole }));
    expect(keptEvidence(kept)).to.deep.equal({
      source: sourceAccountOf(whole),
      destination: undefined,
      fee: undefined,
    });
  });

  it("includes the account of another receiver, and the fee that this shop's fee payer paid", () => {
    for (const whole of [evidenceOf(payer), signed(evidenceOf(payer))])
      for (const first of [undefined, destinationAccountOf(whole), accountOf(payer)]) {
        const kept = keptEvidence(condenseEvidence(whole, first));
        expect(kept?.source).to.equal(sourceAccountOf(whole));
        expect(kept?.destination ?? first).to.equal(destinationAccountOf(whole));
        expect(kept?.fee).to.deep.equal(feePaid(whole, SIGNATURES));
      }
    const own = signed(evidenceOf(payer));
    expect(feePaid(condenseEvidence(own, undefined), SIGNATURES)?.feePayer).to.equal(feePayerOf(own));
  });

  it('names the receiver that was paid, whatever receivers the ledger has had since', () => {
    const [first, second, third] = [1, 2, 3].map(() => newKeyPair().address);
    const whole = evidenceOf(payer, undefined, first);
    const identity = {
      ...{ network: '', retired: undefined, payTo: third },
      formerReceivers: [
        { payTo: first ?? '', until: 1_000 },
        { payTo: second ?? '', until: 2_000 },
        { payTo: third ?? '', until: 3_000 },
        { payTo: first ?? '', until: 4_000 },
      ],
    };
    const receivers = receiversOf(identity, MINT);
    for (const of of [accountOf(first ?? ''), undefined]) {
      const evidence = condenseEvidence(whole, of);
      expect(receiverOf({ evidence }, receivers)?.payTo).to.equal(first);
    }
  });

  it("is the whole transaction if its payer is the only signer, or if it can't be read", () => {
    const whole = Buffer.from(evidenceOf(payer), 'base64');
    const alone = Buffer.concat([Buffer.of(1), whole.subarray(1, 65), whole.subarray(129)]);
    alone[65] = 1;
    expect(readTransaction(alone).signatures).to.equal(1);
    for (const evidence of [alone.toString('base64'), 'AAAA', ''])
      expect(condenseEvidence(evidence, undefined)).to.equal(evidence);
  });

  it('does not change if it is condensed again', () => {
    const once = condenseEvidence(signed(evidenceOf(payer)), undefined);
    expect(condenseEvidence(once, undefined)).to.equal(once);
  });
});

describe('what a ledger keeps of a transaction whose payer is removed', () => {
  const payer = newKeyPair().address;

  it('is the data for the books: the receiver of a sale, and the fee that this shop paid', () => {
    const [foreign, own] = [evidenceOf(payer), signed(evidenceOf(payer))];
    for (const whole of [foreign, own])
      for (const evidence of [whole, condenseEvidence(whole, undefined)]) {
        const kept = anonymizer.sale(evidence);
        expect(keptEvidence(kept)).to.deep.equal({
          source: undefined,
          destination: destinationAccountOf(whole),
          fee: feePaid(whole, SIGNATURES),
        });
        expect(kept).not.to.include(sourceAccountOf(whole));
        expect(cameFrom({ evidence: kept })).to.equal(undefined);
      }
  });

  it("is a refund's fee, if the refund landed as this shop signed it", () => {
    const refund = signed(evidenceOf(payer));
    const kept = anonymizer.refund(refund, signatureOf(refund) ?? '');
    expect(feePaid(kept ?? '', 1)).to.deep.equal(feePaid(refund, 1));
    expect(anonymizer.refund(refund, 'another')).to.equal(null);
  });
});
