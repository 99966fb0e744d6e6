import { join } from 'node:path';
import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { readConfig } from '../../src/config.js';
import { ConfigFault } from '../../src/config/setting-reader.js';
import { LedgerFault } from '../../src/ledger/fault.js';
import { openLedger } from '../../src/ledger/store.js';
import { compose } from '../../src/compose.js';
import { paymentIn } from '../support/ledger-places.js';
import { call } from '../support/world.js';
import {
  allOnOneChain,
  folder,
  proxied,
  refusedStart,
  rpc,
  sandbox,
  serve,
  type Environment,
} from '../support/server-process.js';

describe("a server that can't start", function () {
  this.timeout(90_000);
  allOnOneChain();

  it('says why it must not be the second server of a ledger, or change the receiver once a payment has been made', async () => {
    const first = await serve(proxied('shared'));
    expect(await refusedStart(proxied('shared'))).to.match(
      /in use by another running server.*DATABASE_URL=postgres/s,
    );
    expect((await call(`${first.url}/health`)).status).to.equal(200);
    await first.kill();
    const { buyer: other, payTo } = sandbox.info;
    const otherReceiver = proxied('shared', { PAY_TO: other, LOG_LEVEL: 'silent' });
    expect(await attempt(otherReceiver)).to.equal(undefined);
    const { network } = sandbox.info;
    const ledger = await openLedger({ url: `file:${folder}/shared/ledger.db`, payTo, network });
    await paymentIn(ledger, 'settling');
    await ledger.close();
    expect(await attempt(otherReceiver))
      .to.be.instanceOf(LedgerFault)
      .with.property('message')
      .that.includes(payTo)
      .and.includes(other);
  });

  it('reports all errors of the configuration at once', async () => {
    const said = await refusedStart({
      NETWORK: 'moon',
      PORT: '99999',
      PUBLIC_URL: 'ftp://shop',
      PAY_TO: 'me',
      DATABASE_URL: 'mysql://x',
      LOG_LEVEL: 'loud',
      STATE_DIR: folder,
    });
    for (const name of ['NETWORK', 'PORT', 'PUBLIC_URL', 'PAY_TO', 'DATABASE_URL', 'LOG_LEVEL']) {
      expect(said).to.match(new RegExp(`^  ${name}: .*\\S`, 'm'));
    }
  });

  it('explains the error if the state folder is a file', async () => {
    const said = await refusedStart(proxied('', { STATE_DIR: join(folder, 'chain', 'buyer.json') }));
    expect(said).to.match(/^STATE_DIR: .*cannot be used as a folder/);
  });

  it('in the sandbox, logs errors that concern only sales, and starts', async () => {
    const nobody = Keypair.generate().publicKey.toBase58();
    const env = { PAY_TO: nobody, PUBLIC_URL: `https://${'a.'.repeat(600)}b` };
    const lines: string[] = [];
    const server = await serve(proxied('logged', env), line => lines.push(line));
    const errors = lines.filter(line => line.includes('"level":50')).join('\n');
    expect(errors)
      .to.match(/PAY_TO: .* no USDC token account/)
      .and.to.match(/PUBLIC_URL: this, or the path or summary of \w+ in openapi.yaml, is too long/);
    await server.kill();
  });

  const faults: [string, RegExp, typeof ConfigFault, () => Environment][] = [
    [
      'a facilitator that never answered',
      /FACILITATOR_URL: .* did not answer/,
      ConfigFault,
      () => ({ FACILITATOR_URL: 'http://127.0.0.1:1' }),
    ],
    [
      'a facilitator that is something else',
      /^FACILITATOR_URL: facilitator http/,
      ConfigFault,
      () => ({ FACILITATOR_URL: rpc.url }),
    ],
    ['a port that is in use', /PORT: \d+ is in use/, ConfigFault, () => ({ PORT: new URL(rpc.url).port })],
    ['half a sandbox', /set both or neither/, ConfigFault, () => ({ FACILITATOR_URL: '' })],
  ];
  for (const [name, says, kind, env] of faults) {
    it(`explains why: ${name}`, async () => {
      const error = await attempt(proxied('faulty', { LOG_LEVEL: 'silent', ...env() }));
      expect(error).to.be.instanceOf(kind).with.property('message').that.matches(says);
    });
  }
});

/** Tries to start, in this process, a server that should not start. `main` prints errors of these kinds unchanged. */
async function attempt(env: Environment): Promise<unknown> {
  try {
    await (await compose(readConfig(env))).stop();
    return undefined;
  } catch (error) {
    return error;
  }
}
