import { chmod, copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { startWallet, type StdioWallet } from '../../support/stdio-wallet.js';
import { openWorld, type World } from '../../support/world.js';

type Notified = { progress: number; total?: number; message?: string };

describe('progress while people answer, through the wallet', function () {
  this.timeout(180_000);
  let world: World;
  let wallet: StdioWallet | undefined;
  before(async () => (world = await openWorld()));
  after(async () => {
    await wallet?.close();
    await world.close();
  });

  it('reaches the host as the number of people who have replied, followed by the answer', async () => {
    const keypair = join(world.stateDir, 'payer.json');
    await copyFile(join(world.stateDir, 'buyer.json'), keypair);
    await chmod(keypair, 0o600);
    wallet = await startWallet([
      ...['--url', world.url, '--keypair', keypair, '--state', join(world.stateDir, 'wallet')],
      ...['--rpc', world.sandbox.rpc.url, '--max-price', '0.50', '--timeout', '90'],
    ]);
    const told: Notified[] = [];
    const asked = { brand: 'Harbour Coffee', question: 'What do you think of the new cup?', n: 5 };
    const onProgress = (progress: unknown): void => void told.push(progress as Notified);
    const result = await wallet.call('brandFeedback', asked, { onProgress });
    expect(result.isError, result.content[0]?.text).not.to.equal(true);
    expect(result.structuredContent?.['responses']).to.have.lengthOf(5);
    expect(result._meta?.['coinslot/wallet']).to.include({ paid: '0.50', left: '0.50' });
    const ofPeople = told.filter(({ total }) => total !== undefined);
    expect(ofPeople.length).to.be.at.least(1);
    for (const { progress, total, message } of ofPeople) {
      expect(total).to.equal(5);
      expect(message).to.match(/^[0-5] of 5 done$/);
      expect(Math.floor(progress)).to.equal(Number(message?.[0]));
    }
    for (const [at, { progress }] of told.entries())
      if (at > 0) expect(progress).to.be.greaterThan(told[at - 1]?.progress ?? Infinity);
  });
});
