import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createAssociatedTokenAccountInstruction,
  createTransferCheckedInstruction,
  getAssociatedTokenAddressSync,
} from '@solana/spl-token';
import {
  Connection,
  Keypair,
  PublicKey,
  SystemProgram,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import type { PricedOperation } from '../../src/contract/contract.js';
import type { Terms } from '../../src/methods/x402/requirements.js';
import { serveFacilitator } from '../../src/sandbox/facilitator-server.js';
import type { HttpServer } from '../../src/sandbox/http-server.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/start.js';
import type { LedgerPlace } from './ledger-places.js';
import { operationIn, RELEASED } from './sold.js';

export const { paid: OPERATIONS } = RELEASED;
const operationOf = (id: string): PricedOperation => operationIn(RELEASED, id);
export const SUMMARIZE = operationOf('summarize');
export const BRAND = operationOf('brandFeedback');

/** In lamports. */
const FEES = 10_000_000;
/** With slots this short, a payment can be proven absent (finalized height above claim height + 450) within fifteen seconds. */
const SLOT_MS = 30;
/** For tests in which no payment needs to expire: the slots are so long that payments remain valid for fifteen seconds, also on a busy machine. */
export const LONG_SLOT_MS = 100;

/** A real local chain with short slots, and payers with money. Failure schedules that run in parallel share one. */
export class TestChain {
  readonly sandbox: Sandbox;
  readonly connection: Connection;
  readonly terms: Terms;
  readonly #folder: string;
  readonly #funder: Keypair;
  /** A second fee payer, with a facilitator of its own. */
  #second: { feePayer: string; facilitator: HttpServer } | undefined;

  private constructor(folder: string, sandbox: Sandbox, funder: Keypair) {
    this.#folder = folder;
    this.sandbox = sandbox;
    this.#funder = funder;
    this.connection = new Connection(sandbox.rpc.url, 'confirmed');
    const { network, v1Network, usdcMint, payTo } = sandbox.info;
    this.terms = { network, v1Network, asset: usdcMint, payTo, publicUrl: 'http://127.0.0.1:8402' };
  }

  static async open(slotMs = SLOT_MS): Promise<TestChain> {
    const folder = await memoryFolder();
    const sandbox = await startSandbox({ stateDir: folder, rpcPort: 0, facilitatorPort: 0, slotMs });
    const secret = JSON.parse(await readFile(join(folder, 'buyer.json'), 'utf8')) as number[];
    return new TestChain(folder, sandbox, Keypair.fromSecretKey(Uint8Array.from(secret)));
  }

  /** The fee payers that servers may offer: the sandbox's, and the second one if it exists. */
  get feePayers(): string[] {
    const { feePayer } = this.sandbox.info;
    return this.#second ? [feePayer, this.#second.feePayer] : [feePayer];
  }

  /** The account that pays for the setup of tests. */
  get funder(): PublicKey {
    return this.#funder.publicKey;
  }

  /** Adds a second fee payer. */
  async addFeePayer(): Promise<void> {
    const { rpc, info } = this.sandbox;
    const key = Keypair.generate();
    const { publicKey: fromPubkey } = this.#funder;
    await this.send([
      SystemProgram.transfer({ fromPubkey, toPubkey: key.publicKey, lamports: 10_000_000_000 }),
    ]);
    const facilitator = await serveFacilitator({
      host: '127.0.0.1',
      port: 0,
      rpcUrl: rpc.url,
      feePayer: key.secretKey,
      id: info.id,
      log: () => {},
    });
    this.#second = { feePayer: key.publicKey.toBase58(), facilitator };
  }

  /** The facilitator of the fee payer that a request names. */
  facilitatorFor(body: Buffer): string {
    if (this.#second && body.includes(`"feePayer":"${this.#second.feePayer}"`))
      return this.#second.facilitator.url;
    return this.sandbox.facilitator.url;
  }

  async close(): Promise<void> {
    await this.#second?.facilitator.close();
    await this.sandbox.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  tokenAccount(owner: PublicKey): PublicKey {
    return getAssociatedTokenAddressSync(new PublicKey(this.terms.asset), owner, true);
  }

  /** New payers, each with this much USDC in atomic units. */
  async payers(count: number, amount = 20_000_000n): Promise<Keypair[]> {
    const payers = Array.from({ length: count }, () => Keypair.generate());
    for (const payer of payers) await this.fund(payer, amount);
    return payers;
  }

  /** Opens a token account for a new payer and funds it with this much USDC, in atomic units, and with SOL for fees that it may pay. */
  async fund(payer: Keypair, amount: bigint): Promise<void> {
    const mint = new PublicKey(this.terms.asset);
    const { publicKey } = this.#funder;
    const account = this.tokenAccount(payer.publicKey);
    await this.send([
      createAssociatedTokenAccountInstruction(publicKey, account, payer.publicKey, mint),
      createTransferCheckedInstruction(this.tokenAccount(publicKey), mint, account, publicKey, amount, 6),
      SystemProgram.transfer({ fromPubkey: publicKey, toPubkey: payer.publicKey, lamports: FEES }),
    ]);
  }

  /** Moves all of a payer's USDC to another wallet. */
  async spendAll(payer: Keypair): Promise<void> {
    const mint = new PublicKey(this.terms.asset);
    const [from, to] = [this.tokenAccount(payer.publicKey), this.tokenAccount(this.funder)];
    const { value } = await this.connection.getTokenAccountBalance(from);
    const amount = BigInt(value.amount);
    await this.send([createTransferCheckedInstruction(from, mint, to, payer.publicKey, amount, 6)], [payer]);
  }

  async send(
    instructions: ConstructorParameters<typeof TransactionMessage>[0]['instructions'],
    signers: Keypair[] = [],
  ): Promise<void> {
    const { blockhash } = this.sandbox.chain.latestBlockhash('processed');
    const content = { payerKey: this.#funder.publicKey, recentBlockhash: blockhash, instructions };
    const transaction = new VersionedTransaction(new TransactionMessage(content).compileToV0Message());
    transaction.sign([this.#funder, ...signers]);
    const sent = await this.connection.sendTransaction(transaction, { skipPreflight: true });
    const { value } = await this.connection.getSignatureStatuses([sent]);
    if (!value[0] || value[0].err)
      throw new Error(`the payers could not be funded: ${JSON.stringify(value)}`);
  }

  /** Signs a payment as the facilitator does, and sends it without waiting for the outcome. */
  async sendAsFacilitator(base64: string): Promise<string> {
    const transaction = VersionedTransaction.deserialize(Buffer.from(base64, 'base64'));
    transaction.sign([Keypair.fromSecretKey(Uint8Array.from(this.sandbox.chain.genesis.keys.feePayer))]);
    return this.connection.sendTransaction(transaction, { skipPreflight: true });
  }

  /** How many times each payment by these payers landed successfully, by payment id. */
  landed(payers: Keypair[]): Map<string, number> {
    const counts = new Map<string, number>();
    for (const payer of payers) {
      const account = this.tokenAccount(payer.publicKey).toBase58();
      for (const entry of this.sandbox.chain.ofAddress(account, { limit: 1_000 }, 'processed')) {
        if (entry.err) continue;
        const wire = Buffer.from(this.sandbox.chain.details(entry).wire, 'base64');
        const { message } = VersionedTransaction.deserialize(wire);
        // A transfer to the payer is not one of its payments.
        if (!message.staticAccountKeys.slice(0, 2).some(key => key.equals(payer.publicKey))) continue;
        const id = sha256(message.serialize());
        counts.set(id, (counts.get(id) ?? 0) + 1);
      }
    }
    return counts;
  }
}

/** A folder in memory. Server crashes are only simulated, so tests need no disk, whose speed would depend on other programs. */
async function memoryFolder(): Promise<string> {
  return mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'coinslot-faults-'));
}

export async function memoryLedgerPlace(): Promise<LedgerPlace> {
  const folder = await memoryFolder();
  return { url: `file:${folder}/ledger.db`, remove: () => rm(folder, { recursive: true, force: true }) };
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
