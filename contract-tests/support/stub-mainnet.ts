import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  ACCOUNT_SIZE,
  AccountLayout,
  getAssociatedTokenAddressSync,
  MINT_SIZE,
  MintLayout,
  TOKEN_PROGRAM_ID,
} from '@solana/spl-token';
import { PublicKey, SYSVAR_CLOCK_PUBKEY } from '@solana/web3.js';

export const CAIP2 = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const MAINNET_GENESIS = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d';
export const DEVNET_GENESIS = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG';
export const USDC = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
export const PAY_TO = '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4';
export const FEE_PAYER = 'GVJJ7rdGiXr5xaYbRwRbjfaJL7fmwRygFi1H6aGqDveb';
export const BLOCKHASH = 'EkSnNWid2cvwEVnVx9aBqawnmiCNiDgp3gUdkDPTKN1N';
export const RECEIVER = getAssociatedTokenAddressSync(new PublicKey(USDC), new PublicKey(PAY_TO)).toBase58();
/** The transaction signature that the facilitator reports for every settlement. */
export const SETTLED = '5'.repeat(87);
/** The kind of payment that a facilitator for mainnet lists at /supported. */
export const KIND = { x402Version: 2, scheme: 'exact', network: CAIP2, extra: { feePayer: FEE_PAYER } };

const FROZEN = 2;
const CONTEXT = { slot: 300_000_000, apiVersion: '2.3.0' };

/** The fields of the receiver's token account that tests change. */
export type StubReceiver = { program: string; mint: string; owner: string; frozen: boolean };

/** An RPC server and a facilitator that look like mainnet's. Tests change their answers. */
export class StubMainnet {
  kinds: unknown[] = [{ ...KIND, x402Version: 1, network: 'solana' }, { ...KIND, scheme: 'upto' }, KIND];
  genesis = MAINNET_GENESIS;
  /** The receiver's token account; undefined if it does not exist. */
  receiver: StubReceiver | undefined = {
    program: TOKEN_PROGRAM_ID.toBase58(),
    mint: USDC,
    owner: PAY_TO,
    frozen: false,
  };
  /** How far the chain's time is from ours. */
  aheadSeconds = 0;
  lamports = 1_000_000_000;
  /** The methods and paths that were requested. */
  asked: string[] = [];
  readonly rpc = createServer(this.#listener(({ text }) => this.#rpcAnswer(text)));
  readonly facilitator = createServer(
    this.#listener(({ url }) => {
      this.asked.push(url);
      return this.#facilitatorAnswer(url);
    }),
  );

  static async open(): Promise<StubMainnet> {
    const stub = new StubMainnet();
    for (const server of [stub.rpc, stub.facilitator]) await once(server.listen(0, '127.0.0.1'), 'listening');
    return stub;
  }

  async close(): Promise<void> {
    await Promise.all([this.rpc, this.facilitator].map(stopServer));
  }

  resultOf(method: string, [address]: unknown[]): unknown {
    this.asked.push(method);
    switch (method) {
      case 'getGenesisHash':
        return this.genesis;
      case 'getLatestBlockhash':
        return { context: CONTEXT, value: { blockhash: BLOCKHASH, lastValidBlockHeight: 280_000_150 } };
      case 'getAccountInfo':
        return { context: CONTEXT, value: this.#account(String(address)) };
      case 'getMultipleAccounts':
        return { context: CONTEXT, value: (address as string[]).map(one => this.#account(one)) };
      case 'getBalance':
        return { context: CONTEXT, value: this.lamports };
      case 'getHealth':
        return 'ok';
      case 'getVersion':
        return { 'solana-core': '2.3.0', 'feature-set': 1 };
      case 'getBlockHeight':
        return 280_000_000;
      case 'getTransaction':
        return null;
      default:
        throw new Error(`the stub does not know ${method}`);
    }
  }

  /** Accepts every payment. */
  #facilitatorAnswer(url: string): object {
    if (url.endsWith('/verify')) return { isValid: true };
    if (url.endsWith('/settle')) return { success: true, transaction: SETTLED, network: CAIP2 };
    return { kinds: this.kinds, extensions: [], signers: {} };
  }

  #account(address: string): object | null {
    const of = (owner: string, data: Buffer): object => ({
      lamports: 2_039_280,
      owner,
      executable: false,
      rentEpoch: 0,
      space: data.length,
      data: [data.toString('base64'), 'base64'],
    });
    if (address === SYSVAR_CLOCK_PUBKEY.toBase58()) {
      const clock = Buffer.alloc(40);
      clock.writeBigInt64LE(BigInt(Math.floor(Date.now() / 1_000) + this.aheadSeconds), 32);
      return of('Sysvar1111111111111111111111111111111111111', clock);
    }
    if (address === USDC) return of(TOKEN_PROGRAM_ID.toBase58(), mintAccount());
    if (address !== RECEIVER || !this.receiver) return null;
    return of(this.receiver.program, tokenAccount(this.receiver));
  }

  #rpcAnswer(text: string): object {
    const asked = JSON.parse(text) as { id: unknown; method: string; params?: unknown[] };
    return { jsonrpc: '2.0', id: asked.id, result: this.resultOf(asked.method, asked.params ?? []) };
  }

  #listener(answer: (request: { url: string; text: string }) => object): RequestListener {
    return (message, response) => {
      void bodyOf(message).then(text => {
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify(answer({ url: String(message.url), text })));
      });
    };
  }
}

/** The bytes of a mint with six decimals and no authorities. */
function mintAccount(): Buffer {
  const data = Buffer.alloc(MINT_SIZE);
  const none = {
    mintAuthorityOption: 0,
    mintAuthority: PublicKey.default,
    freezeAuthorityOption: 0,
  } as const;
  const rest = { freezeAuthority: PublicKey.default, supply: 0n, decimals: 6, isInitialized: true };
  MintLayout.encode({ ...none, ...rest }, data);
  return data;
}

/** The bytes of a token account that holds 12.5 USDC. */
export function tokenAccount({ mint, owner, frozen }: Omit<StubReceiver, 'program'>): Buffer {
  const data = Buffer.alloc(ACCOUNT_SIZE);
  const none = PublicKey.default;
  const rest = {
    delegateOption: 0,
    delegate: none,
    isNativeOption: 0,
    isNative: 0n,
    delegatedAmount: 0n,
    closeAuthorityOption: 0,
    closeAuthority: none,
  } as const;
  const state = frozen ? FROZEN : 1;
  AccountLayout.encode(
    { ...rest, mint: new PublicKey(mint), owner: new PublicKey(owner), amount: 12_500_000n, state },
    data,
  );
  return data;
}

export function addressOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export async function bodyOf(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

export async function stopServer(server: Server): Promise<void> {
  server.closeAllConnections();
  if (server.listening) await new Promise(resolve => server.close(resolve));
}
