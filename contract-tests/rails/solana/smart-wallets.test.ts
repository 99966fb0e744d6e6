import { Keypair, PublicKey, TransactionInstruction } from '@solana/web3.js';
import { expect } from 'chai';
import { checker, craft, EXPECTED, PAYER, reasonOf } from '../../support/bent-transactions.js';

/** The programs, by the names of their wallets. */
const WALLETS: Record<string, string> = {
  SQDS4ep65T869zMMBKyuUq6aD6EgTu8psMjkvj52pCf: 'Squads',
  SMRTzfY6DfH5ik3TKiyLFfXexV8uSG3d2UksSCYdunG: 'Squads smart account, as used by Crossmint',
  swigypWHEksbC64pWKwah1WTeh9JXwx8H1rJHLdbQMB: 'Swig',
};
const SECP256R1 = new PublicKey('Secp256r1SigVerify1111111111111111111111111');

/** The instruction that moves the money, with the signer, the vault, and the transfer in its data. */
function execute(program: string, transfer: TransactionInstruction): TransactionInstruction {
  const vault = { pubkey: Keypair.generate().publicKey, isSigner: false, isWritable: true };
  const signer = { pubkey: PAYER.publicKey, isSigner: true, isWritable: false };
  const moved = transfer.keys.map(key => ({ ...key, isSigner: false }));
  return new TransactionInstruction({
    programId: new PublicKey(program),
    keys: [vault, signer, ...moved.filter(({ pubkey }) => !pubkey.equals(PAYER.publicKey))],
    data: Buffer.concat([Buffer.from([194, 8, 161, 87, 153, 164, 25, 171]), transfer.data]),
  });
}

/** How wallets put the instruction that moves the money into a transaction. */
const FORMS: Record<string, (usual: TransactionInstruction[], program: string) => TransactionInstruction[]> =
  {
    'in place of the transfer': ([limit, price, transfer, ...more], program) => [
      limit!,
      price!,
      execute(program, transfer!),
      ...more,
    ],
    alone: ([, , transfer], program) => [execute(program, transfer!)],
    'after the signature of a passkey': ([limit, price, transfer], program) => [
      limit!,
      price!,
      new TransactionInstruction({ programId: SECP256R1, keys: [], data: Buffer.alloc(144, 1) }),
      execute(program, transfer!),
    ],
    'behind a transfer, as if to add to it': (usual, program) => [...usual, execute(program, usual[2]!)],
  };

describe('The payment of a smart wallet', () => {
  for (const [program, name] of Object.entries(WALLETS))
    for (const [form, instructions] of Object.entries(FORMS))
      it(`is refused with the reason and what its owner can do: ${name}, ${form}`, async () => {
        const reason = await reasonOf(craft({ instructions: usual => instructions(usual, program) }));
        expect(reason).to.equal(
          `transaction: the program of a smart wallet (${name}) moves the money, which cannot be checked before the sale. ` +
            'Pay from a wallet that has a key of its own; the smart wallet can fund it',
        );
      });

  it('is treated as an ordinary payment if it only mentions the program of such a wallet', async () => {
    const extra = new TransactionInstruction({
      programId: new PublicKey('L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95'),
      keys: [{ pubkey: new PublicKey(Object.keys(WALLETS)[0]!), isSigner: false, isWritable: false }],
      data: Buffer.from([1]),
    });
    expect((await checker.check(craft({ extra: [extra] }), EXPECTED)).ok).to.equal(true);
  });
});
