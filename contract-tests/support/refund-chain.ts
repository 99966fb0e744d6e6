import { createHash, randomBytes } from 'node:crypto';
import { Keypair } from '@solana/web3.js';
import { OWNER } from './ledgers.js';
import { readRefund } from '../../src/operator/refund-transaction.js';
import { keyOf } from '../../src/rails/solana/address.js';
import { buildTransfer } from '../../src/rails/solana/build-transfer.js';
import { readKeyPair, type KeyPair } from '../../src/rails/solana/key-pair.js';
import { readTransaction } from '../../src/rails/solana/message.js';
import { NETWORKS, TOKEN_PROGRAM } from '../../src/rails/solana/networks.js';
import type { SolanaChain } from '../../src/rails/solana/rpc.js';
import { receiverAccount, nameOf } from '../../src/rails/solana/transaction.js';
import { signatureOf } from '../../src/facilitators/send-until-landed.js';

export const MINT = NETWORKS.devnet.usdcMint;
const LIFE = 150;

export const newKeyPair = (): KeyPair => readKeyPair(JSON.stringify([...Keypair.generate().secretKey]));
export const accountOf = (payTo: string): string => receiverAccount({ asset: MINT, payTo });

/** A payment signed by its payer. */
export function evidenceOf(
  payer: string,
  source = accountOf(payer),
  payTo = Keypair.generate().publicKey.toBase58(),
): string {
  return buildTransfer({
    ...{
      feePayer: Keypair.generate().publicKey.toBase58(),
      owner: payer,
      source,
      mint: MINT,
      amount: 10_000n,
    },
    ...{ destination: accountOf(payTo), memo: 'a sale' },
    ...{
      reference: Keypair.generate().publicKey.toBase58(),
      blockhash: Keypair.generate().publicKey.toBase58(),
    },
  });
}

type Landed = { signature: string; slot: number; failed: boolean; bytes: Buffer };
/** `state`: 1 is open, 2 is frozen. */
type TokenAccount = { owner: string; mint: string; amount: bigint; state: number };

/** An in-memory chain on which every transaction lands and is final immediately, and lands only once. */
export class RefundChain {
  readonly accounts = new Map<string, TokenAccount>();
  readonly landed: Landed[] = [];
  readonly sent: string[] = [];
  lamports = 1_000_000_000n;
  height = 1_000;
  /** When true, transactions are accepted and lost. */
  loses = false;
  fails = false;
  simulation: string | null = null;
  readonly #bornAt = new Map<string, number>();

  open(owner: string, amount: bigint, state = 1): string {
    const address = accountOf(owner);
    this.accounts.set(address, { owner, mint: MINT, amount, state });
    return address;
  }

  held(owner: string): bigint {
    return this.accounts.get(accountOf(owner))?.amount ?? 0n;
  }

  /** An RPC server of the chain. While `hides` returns true, it shows no transfers. */
  server(hides: () => boolean = () => false): SolanaChain {
    const shown = (): Landed[] => (hides() ? [] : this.landed);
    const parts: Partial<SolanaChain> = {
      account: async address => this.#account(address),
      balance: async () => this.lamports,
      latestBlockhash: async () => this.#latest(),
      simulate: async () => ({ error: this.simulation }),
      send: async transaction => this.#land(transaction),
      signatureStatuses: async signatures =>
        signatures.map(each => {
          const found = shown().find(({ signature }) => signature === each);
          return found ? { finality: 'finalized', failed: found.failed, slot: found.slot } : null;
        }),
      blockhashLives: async blockhash => this.height <= (this.#bornAt.get(blockhash) ?? 0) + LIFE,
      signaturesFor: async address =>
        shown()
          .filter(({ bytes }) => readTransaction(bytes).keys.map(nameOf).includes(address))
          .map(({ signature, slot, failed }) => ({ signature, slot, failed, blockTime: null })),
      transaction: async signature => {
        const found = shown().find(each => each.signature === signature);
        if (!found) return null;
        const { slot, failed, bytes } = found;
        const message = readTransaction(bytes).message;
        return { slot, failed, transaction: bytes, message, blockTime: null, tokens: null, opened: [] };
      },
    };
    return parts as SolanaChain;
  }

  #latest() {
    const blockhash = Keypair.generate().publicKey.toBase58();
    this.#bornAt.set(blockhash, this.height);
    return { blockhash, lastValidBlockHeight: this.height + LIFE, slot: this.height + 10 };
  }

  #account(address: string) {
    const held = this.accounts.get(address);
    if (!held) return null;
    const data = Buffer.alloc(165);
    keyOf(held.mint).copy(data);
    keyOf(held.owner).copy(data, 32);
    data.writeBigUInt64LE(held.amount, 64);
    data[108] = held.state;
    return { owner: TOKEN_PROGRAM, lamports: 2_039_280, executable: false, data, slot: this.height };
  }

  async #land(transaction: string): Promise<void> {
    this.sent.push(transaction);
    const signature = signatureOf(transaction) ?? '';
    const { blockhash, source, destination, amount } = transferOf(transaction);
    const dead = this.height > (this.#bornAt.get(blockhash) ?? 0) + LIFE;
    if (this.loses || dead || this.landed.some(each => each.signature === signature)) return;
    const [from, to] = [this.accounts.get(source), this.accounts.get(destination)];
    if (!from || !to) throw new Error('the test opened no such accounts');
    const failed = this.fails || from.amount < amount;
    if (!failed) [from.amount, to.amount] = [from.amount - amount, to.amount + amount];
    this.landed.push({ signature, slot: this.height, failed, bytes: Buffer.from(transaction, 'base64') });
  }
}

function transferOf(transaction: string) {
  const { blockhash, destination = '', amount, owner = '' } = readRefund(transaction);
  return { blockhash, destination, amount, source: accountOf(owner) };
}

/** A claim of a payment that this payer signed. */
export function paidBy(payer: string, source?: string) {
  const evidence = evidenceOf(payer, source);
  const id = createHash('sha256').update(randomBytes(16)).digest('hex');
  return { id, payer, evidence, network: OWNER.network };
}
