import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import {
  createTransferCheckedInstruction,
  getAccount,
  getAssociatedTokenAddressSync,
} from '@solana/spl-token';
import { Connection, Keypair, PublicKey, TransactionMessage, VersionedTransaction } from '@solana/web3.js';
import { expect } from 'chai';
import { spawnSandbox, type SpawnOptions } from '../../src/sandbox/child.js';
import type { SandboxInfo } from '../../src/config/sandbox-file.js';
import type { SandboxMessage } from '../../src/sandbox/main.js';

const MAIN = new URL('../../src/sandbox/main.js', import.meta.url);
const CHILD = new URL('../../src/sandbox/child.js', import.meta.url);

describe('the sandbox process', function () {
  this.timeout(60_000);
  let folder: string;
  const ended: ChildProcess[] = [];

  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'coinslot-sandbox-'))));
  afterEach(async () => {
    for (const child of ended.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  });

  const start = async (): Promise<{ child: ChildProcess; info: SandboxInfo }> => {
    const env = { STATE_DIR: folder, SANDBOX_RPC_PORT: '0', SANDBOX_FACILITATOR_PORT: '0' };
    const child = fork(fileURLToPath(MAIN), [], { env, execArgv: [] });
    ended.push(child);
    const [message] = (await once(child, 'message')) as [SandboxMessage];
    if (message.type !== 'ready') throw new Error(message.error);
    return { child, info: message.sandbox };
  };

  const options = (more: Partial<SpawnOptions> = {}): SpawnOptions => ({
    stateDir: folder,
    host: '127.0.0.1',
    rpcPort: 0,
    facilitatorPort: 0,
    publicUrl: 'http://127.0.0.1:8402',
    onExit: () => undefined,
    ...more,
  });

  const accountOf = (info: SandboxInfo, owner: string): PublicKey =>
    getAssociatedTokenAddressSync(new PublicKey(info.usdcMint), new PublicKey(owner));

  const sign = async (
    connection: Connection,
    info: SandboxInfo,
    amount: number,
  ): Promise<VersionedTransaction> => {
    const buyer = Keypair.fromSecretKey(
      Uint8Array.from(JSON.parse(readFileSync(join(folder, 'buyer.json'), 'utf8')) as number[]),
    );
    const mint = new PublicKey(info.usdcMint);
    const [from, to] = [accountOf(info, info.buyer), accountOf(info, info.payTo)] as const;
    const message = new TransactionMessage({
      payerKey: buyer.publicKey,
      recentBlockhash: (await connection.getLatestBlockhash()).blockhash,
      instructions: [createTransferCheckedInstruction(from, mint, to, buyer.publicKey, amount, 6)],
    }).compileToV0Message();
    const transaction = new VersionedTransaction(message);
    transaction.sign([buyer]);
    return transaction;
  };

  it('resumes with every acknowledged transfer after a kill, and then lands one signed before the kill', async () => {
    const { child, info } = await start();
    const gone = once(child, 'exit');
    const connection = new Connection(info.rpcUrl, 'confirmed');
    const held = await sign(connection, info, 1_000_000);
    const acknowledged = new Map<string, number>();
    let next = 1;
    let killed = false;
    const pump = async (): Promise<void> => {
      while (!killed) {
        const amount = next++;
        const transaction = await sign(connection, info, amount);
        acknowledged.set(
          await connection.sendTransaction(transaction, { skipPreflight: amount % 2 === 0 }),
          amount,
        );
        if (acknowledged.size === 60) {
          killed = true;
          child.kill('SIGKILL');
        }
      }
    };
    await Promise.allSettled(Array.from({ length: 8 }, pump));
    await gone;
    expect(acknowledged.size).to.be.at.least(60);

    const resumed = await start();
    expect(resumed.info.id).to.equal(info.id);
    const again = new Connection(resumed.info.rpcUrl, 'confirmed');
    const seller = accountOf(info, info.payTo);
    const listed = await again.getSignaturesForAddress(seller);
    let received = 0n;
    for (const { signature } of listed) {
      const landed = await again.getTransaction(signature, { maxSupportedTransactionVersion: 0 });
      const data = Buffer.from(landed!.transaction.message.compiledInstructions[0]!.data);
      const amount = data.readBigUInt64LE(1);
      expect(BigInt(acknowledged.get(signature) ?? amount)).to.equal(amount);
      received += amount;
    }
    const known = new Set(listed.map(({ signature }) => signature));
    for (const signature of acknowledged.keys()) expect(known.has(signature)).to.equal(true);
    expect((await getAccount(again, seller)).amount).to.equal(received);
    const left = (await getAccount(again, accountOf(info, info.buyer))).amount;
    expect(left + received).to.equal(1_000_000_000_000n);

    await again.sendTransaction(held);
    expect((await getAccount(again, seller)).amount).to.equal(received + 1_000_000n);
    const [first] = acknowledged.keys();
    const { value } = await again.getSignatureStatus(first!, { searchTransactionHistory: true });
    expect(value!.err).to.equal(null);
  });

  it('ends when its parent is killed, and frees its ports for the next sandbox', async () => {
    const script = `
      const { spawnSandbox } = await import(${JSON.stringify(CHILD.href)});
      const { info } = await spawnSandbox(${JSON.stringify(options())});
      process.stdout.write(JSON.stringify(info) + '\\n');
      setInterval(() => undefined, 1000);`;
    const parent = spawn(
      process.execPath,
      ['--input-type=module', '-e', script.replace(/"publicUrl"/, '"onExit":0,$&')],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    ended.push(parent);
    const [line] = (await once(createInterface(parent.stdout), 'line')) as [string];
    const info = JSON.parse(line) as SandboxInfo;
    expect(info.parent).to.equal(parent.pid);
    parent.kill('SIGKILL');
    const port = (url: string): number => Number(new URL(url).port);
    const second = await spawnSandbox(
      options({ rpcPort: port(info.rpcUrl), facilitatorPort: port(info.facilitatorUrl) }),
    );
    try {
      expect(second.info).to.include({
        id: info.id,
        rpcUrl: info.rpcUrl,
        facilitatorUrl: info.facilitatorUrl,
      });
      expect(second.info.pid).to.not.equal(info.pid);
    } finally {
      await second.stop();
    }
  });

  it('is shared by other processes that need it, and outlives them', async () => {
    const { info } = await start();
    const joined = await spawnSandbox(options());
    expect(joined.info).to.deep.equal(info);
    await joined.stop();
    expect((await fetch(`${info.rpcUrl}/health`)).ok).to.equal(true);
  });

  it('is started only once, even if two servers start it concurrently', async () => {
    const both = await Promise.all([spawnSandbox(options()), spawnSandbox(options())]);
    expect(both[0].info.pid).to.equal(both[1].info.pid);
    await Promise.all(both.map(one => one.stop()));
  });

  it('tells its parent when it ends unexpectedly, but not when it is stopped', async () => {
    const reasons: string[] = [];
    const stopped = await spawnSandbox(options({ onExit: reason => void reasons.push(reason) }));
    await stopped.stop();
    expect(reasons).to.deep.equal([]);
    const reason = new Promise<string>((resolve, reject) => {
      spawnSandbox(options({ onExit: resolve })).then(
        ({ info }) => process.kill(info.pid, 'SIGKILL'),
        reject,
      );
    });
    expect(await reason).to.contain('SIGKILL');
  });

  it('says which port is in use and how to choose another', async () => {
    const squatter = createServer().listen(0, '127.0.0.1');
    await once(squatter, 'listening');
    try {
      const { port } = squatter.address() as AddressInfo;
      const error = await spawnSandbox(options({ rpcPort: port })).then(
        () => null,
        (cause: unknown) => cause as Error,
      );
      expect(error?.message).to.contain(`Port ${port}`).and.to.contain('SANDBOX_RPC_PORT');
    } finally {
      squatter.close();
    }
  });

  it('refuses invalid settings with a readable error', async () => {
    const child = spawn(process.execPath, [fileURLToPath(MAIN)], {
      env: { STATE_DIR: folder, SANDBOX_RPC_PORT: 'http' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number];
    expect(code).to.equal(1);
    expect(said).to.contain('SANDBOX_RPC_PORT').and.to.contain("'http'");
  });
});
