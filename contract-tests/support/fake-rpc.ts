import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AccountLayout, AccountType, MintLayout } from '@solana/spl-token';
import { Keypair, PublicKey } from '@solana/web3.js';
import { expect } from 'chai';
import type { UpstreamFailure } from '../../src/net/failure.js';
import { failureOf } from './failure.js';

export type Call = { method: string; params: unknown[]; port: number | undefined };
export type StoredAccount = { owner: PublicKey; data: Buffer; lamports?: number; executable?: boolean };
type DataSlice = { offset: number; length: number };
export type Answer = (response: ServerResponse, call: Call, id: unknown) => void;

export const never = new AbortController().signal;
export const ADDRESS = Keypair.generate().publicKey;
export const AUTHORITY = Keypair.generate().publicKey;

/** A JSON-RPC server on loopback that has some accounts and can be made to misbehave. */
export class FakeRpc {
  readonly accounts = new Map<string, StoredAccount>();
  readonly results = new Map<string, unknown>();
  readonly calls: Call[] = [];
  answer: Answer = (response, call, id) => this.send(response, id, this.resultOf(call));
  readonly #server: Server = createServer((request, response) => void this.#serve(request, response));

  async open(): Promise<string> {
    await new Promise<void>(done => this.#server.listen(0, '127.0.0.1', done));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/rpc?api-key=secret`;
  }

  send(response: ServerResponse, id: unknown, result: unknown): void {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  }

  resultOf({ method, params }: Call): unknown {
    const { dataSlice } = (params[1] ?? {}) as { dataSlice?: DataSlice };
    const context = { slot: 5 };
    if (method === 'getAccountInfo') return { context, value: this.#account(params[0], dataSlice) };
    if (method !== 'getMultipleAccounts') return this.results.get(method);
    return { context, value: (params[0] as unknown[]).map(address => this.#account(address, dataSlice)) };
  }

  #account(address: unknown, dataSlice?: DataSlice): object | null {
    const account = this.accounts.get(String(address));
    if (!account) return null;
    const data = dataSlice
      ? account.data.subarray(dataSlice.offset, dataSlice.offset + dataSlice.length)
      : account.data;
    return {
      owner: account.owner.toBase58(),
      lamports: account.lamports ?? 1_461_600,
      executable: account.executable ?? false,
      rentEpoch: 0,
      data: [data.toString('base64'), 'base64'],
    };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as {
      id: unknown;
      method: string;
      params: unknown[];
    };
    const call = { method: body.method, params: body.params, port: request.socket.remotePort };
    expect(request.url).to.equal('/rpc?api-key=secret');
    this.calls.push(call);
    this.answer(response, call, body.id);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise(done => this.#server.close(done));
  }
}

export type MintFields = {
  supply?: bigint;
  decimals?: number;
  mintAuthority?: PublicKey;
  freezeAuthority?: PublicKey;
};

export function mintBytes({ supply = 0n, decimals = 6, mintAuthority, freezeAuthority }: MintFields): Buffer {
  const data = Buffer.alloc(MintLayout.span);
  MintLayout.encode(
    {
      mintAuthorityOption: mintAuthority ? 1 : 0,
      mintAuthority: mintAuthority ?? PublicKey.default,
      supply,
      decimals,
      isInitialized: true,
      freezeAuthorityOption: freezeAuthority ? 1 : 0,
      freezeAuthority: freezeAuthority ?? PublicKey.default,
    },
    data,
  );
  return data;
}

/** The account of a Token-2022 mint with type-length-value entries, in the layout that the program writes. */
export function extendedMint(
  fields: MintFields,
  entries: [number, Buffer][],
  type = AccountType.Mint,
): Buffer {
  const tlv = entries.map(([kind, value]) => {
    const head = Buffer.alloc(4);
    head.writeUInt16LE(kind, 0);
    head.writeUInt16LE(value.length, 2);
    return Buffer.concat([head, value]);
  });
  const padding = Buffer.alloc(AccountLayout.span - MintLayout.span);
  return Buffer.concat([mintBytes(fields), padding, Buffer.from([type]), ...tlv]);
}

/** Returns the failure of a call, after checking that its message reveals nothing about the server. */
export async function publicFailureOf(promise: Promise<unknown>): Promise<UpstreamFailure> {
  const failure = await failureOf(promise);
  expect(failure.message, 'public message').to.not.match(
    /127\.0\.0\.1|secret|api-key|undici|ECONN|Struct|status \d/i,
  );
  return failure;
}
