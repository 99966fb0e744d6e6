import { Keypair, type PublicKey } from '@solana/web3.js';
import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../src/config.js';
import { compose } from '../../src/compose.js';
import { until } from '../support/faults.js';
import { challengeOf, openWorld, post, receiptOf, signFor, TEXT, type World } from '../support/world.js';
import { priceOf } from '../support/sold.js';

const SOL = 1_000_000_000;

describe('a server with FACILITATOR_URL=embedded', function () {
  this.timeout(60_000);
  let world: World;
  let folder: string | undefined;
  afterEach(async () => {
    // The server that a test started in place of the first one.
    await world.server.stop();
    await world.close();
    if (folder) await rm(folder, { recursive: true });
    folder = undefined;
  });

  const feePayerOf = async (): Promise<string> =>
    (
      challengeOf(await post(`${world.url}/v1/summarize`, {})).accepts[0] as {
        extra: { feePayer: string };
      }
    ).extra.feePayer;
  const summarize = (headers: Record<string, string>) =>
    post(`${world.url}/v1/summarize`, { text: `${TEXT} ${randomBytes(4).toString('hex')}` }, headers);

  it('sells in the sandbox without further settings: it creates a funded fee payer for itself', async () => {
    world = await openWorld({ FACILITATOR_URL: 'embedded' });
    const file = join(world.stateDir, 'fee-payer.json');
    const key = Keypair.fromSecretKey(Uint8Array.from(JSON.parse(await readFile(file, 'utf8')) as number[]));
    expect((await stat(file)).mode & 0o777).to.equal(0o600);
    expect(await feePayerOf()).to.equal(key.publicKey.toBase58());
    const lamports = await world.connection.getBalance(key.publicKey);
    const sends = world.rpc.count('sendTransaction');
    for (const version of [2, 1, 2] as const) {
      const answer = await summarize(await signFor(world, '/v1/summarize', version));
      expect(answer.status, answer.body.toString()).to.equal(200);
      const { success, transaction } = receiptOf(answer);
      expect(success).to.equal(true);
      expect(world.sandbox.chain.find(transaction)?.err).to.equal(null);
    }
    expect(await world.earned()).to.equal(30_000n);
    expect(world.rpc.count('sendTransaction') - sends).to.equal(3);
    expect(lamports - (await world.connection.getBalance(key.publicKey))).to.be.within(30_000, 33_000);
    expect(world.facilitator.count()).to.equal(0);
    await world.server.stop();
    world.server = await compose(readConfig(world.env));
    world.url = world.server.url;
    expect(await feePayerOf(), 'after the next start').to.equal(key.publicKey.toBase58());
  });

  it('that runs out of SOL charges nobody: 503 until somebody sends SOL', async () => {
    const { file, key } = await keyFile();
    world = await openWorld();
    await airdrop(key.publicKey, SOL / 100);
    await world.server.stop();
    world.server = await compose(
      readConfig({
        ...world.env,
        FACILITATOR_URL: 'embedded',
        FEE_PAYER_KEYPAIR: file,
        FEE_PAYER_FLOOR: String(SOL / 100 - 35_000),
      }),
    );
    world.url = world.server.url;
    expect((await summarize(await signFor(world, '/v1/summarize'))).status).to.equal(200);
    const payment = await signFor(world, '/v1/summarize');
    const body = { text: TEXT };
    const refused = await post(`${world.url}/v1/summarize`, body, payment);
    expect(refused.status).to.equal(503);
    expect(refused.headers.get('retry-after')).to.equal('5');
    expect(refused.json().error).to.match(/not charged/);
    expect(refused.json().error, 'nobody else is told how much there is').to.not.match(/SOL|FLOOR/);
    expect(await world.earned()).to.equal(priceOf('summarize'));
    await airdrop(key.publicKey, SOL);
    await until('the same payment is taken', async () => {
      const { status } = await post(`${world.url}/v1/summarize`, body, payment);
      return status === 200;
    });
    expect(await world.earned()).to.equal(20_000n);
  });

  it('does not start with an empty fee payer: it says which address to send SOL to', async () => {
    const { file, key } = await keyFile();
    world = await openWorld();
    await world.server.stop();
    const started = await compose(
      readConfig({
        ...world.env,
        DATABASE_URL: `file:${world.stateDir}/other.db`,
        FACILITATOR_URL: 'embedded',
        FEE_PAYER_KEYPAIR: file,
      }),
    ).catch((error: unknown) => error);
    expect(started).to.be.instanceOf(Error);
    expect((started as Error).message)
      .to.contain(key.publicKey.toBase58())
      .and.to.match(/send SOL to it/);
  });

  it('continues to sell through another facilitator while its fee payer is empty', async () => {
    const { file, key } = await keyFile();
    world = await openWorld();
    const { url } = world.facilitator;
    await world.server.stop();
    world.server = await compose(
      readConfig({ ...world.env, FACILITATOR_URL: `embedded,${url}`, FEE_PAYER_KEYPAIR: file }),
    );
    world.url = world.server.url;
    expect(await feePayerOf()).to.equal(world.sandbox.info.feePayer);
    expect((await summarize(await signFor(world, '/v1/summarize'))).status).to.equal(200);
    expect(world.facilitator.count('/settle')).to.equal(1);
    expect(await world.connection.getBalance(key.publicKey)).to.equal(0);
  });

  it('changes its fee payer without refusing a payment: the old and the new one each sign the payments that name them', async () => {
    const [former, next] = [await keyFile(), await keyFile('next.json')];
    world = await openWorld();
    for (const { key } of [former, next]) await airdrop(key.publicKey, SOL);
    const restart = async (first: string, second?: string): Promise<void> => {
      await world.server.stop();
      const pair = { FEE_PAYER_KEYPAIR: first, ...(second && { FEE_PAYER_SECOND_KEYPAIR: second }) };
      world.server = await compose(readConfig({ ...world.env, FACILITATOR_URL: 'embedded', ...pair }));
      world.url = world.server.url;
    };
    await restart(former.file);
    const forFormer = await signFor(world, '/v1/summarize');
    await restart(next.file, former.file);
    expect(await feePayerOf()).to.equal(next.key.publicKey.toBase58());
    expect((await summarize(forFormer)).status, 'names the former one').to.equal(200);
    const forNext = await signFor(world, '/v1/summarize');
    // Simulates a server that still offers the old key while another server already offers the new one.
    await restart(former.file, next.file);
    expect(await feePayerOf()).to.equal(former.key.publicKey.toBase58());
    expect((await summarize(forNext)).status, 'names the next one').to.equal(200);
    const late = await signFor(world, '/v1/summarize');
    await restart(next.file);
    const refused = await summarize(late);
    expect(refused.status, 'names one that no key is left for').to.equal(402);
    expect(refused.json().error).to.match(/fee payer/);
    expect(await world.earned()).to.equal(2n * priceOf('summarize'));
    await airdrop(Keypair.generate().publicKey, SOL);
    const twice = { FEE_PAYER_KEYPAIR: next.file, FEE_PAYER_SECOND_KEYPAIR: next.file };
    const started = await compose(
      readConfig({
        ...world.env,
        ...twice,
        FACILITATOR_URL: 'embedded',
        DATABASE_URL: `file:${folder}/x.db`,
      }),
    ).catch((error: unknown) => error);
    expect((started as Error).message).to.contain(
      'FEE_PAYER_SECOND_KEYPAIR: is the same key pair as FEE_PAYER_KEYPAIR',
    );
  });

  async function keyFile(name = 'operator.json'): Promise<{ file: string; key: Keypair }> {
    folder ??= await mkdtemp(join(tmpdir(), 'coinslot-key-'));
    const file = join(folder, name);
    const key = Keypair.generate();
    await writeFile(file, JSON.stringify([...key.secretKey]), { mode: 0o600 });
    return { file, key };
  }

  async function airdrop(to: PublicKey, lamports: number): Promise<void> {
    await world.connection.requestAirdrop(to, lamports);
    expect(await world.connection.getBalance(to)).to.be.at.least(lamports);
  }
});
