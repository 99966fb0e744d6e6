import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { readConfig } from '../../src/config.js';
import { ConfigFault } from '../../src/config/setting-reader.js';

const PAY_TO = '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4';

function faultsOf(env: NodeJS.ProcessEnv): string[] {
  try {
    readConfig(env);
  } catch (error) {
    expect(error).to.be.instanceOf(ConfigFault);
    return (error as Error).message
      .split('\n')
      .slice(1)
      .map(line => line.trim());
  }
  throw new Error('the configuration was accepted');
}

describe('The configuration', () => {
  it('is optional: the sandbox is the default', () => {
    const stateDir = resolve('.coinslot');
    const config = readConfig({});
    expect(config).to.include({
      host: '127.0.0.1',
      port: 8402,
      publicUrl: undefined,
      siteUrl: undefined,
      stateDir,
      databaseUrl: `file:${stateDir}/ledger.db`,
      payTo: undefined,
      sandboxRpcPort: 8899,
      sandboxFacilitatorPort: 8403,
      holdMs: 55_000,
      orderAttempts: 5,
      maxUnsettledPerPayer: 256,
      listed: true,
      allowPrivateUpstreams: false,
      logLevel: 'info',
    });
    expect(config.rpcUrls).to.deep.equal([]);
    expect(config.facilitators).to.deep.equal([]);
    expect(config).to.be.frozen;
  });

  it('treats empty and blank variables as unset', () => {
    const names = [
      ...['HOST', 'PORT', 'PUBLIC_URL', 'SITE_URL', 'NETWORK', 'STATE_DIR', 'DATABASE_URL', 'SOLANA_RPC_URL'],
      ...[
        'FACILITATOR_URL',
        'PAY_TO',
        'SANDBOX_RPC_PORT',
        'SANDBOX_FACILITATOR_PORT',
        'HOLD_SECONDS',
        'ORDER_ATTEMPTS',
        'LOG_LEVEL',
      ],
      ...['MAX_UNSETTLED_PER_PAYER', 'UNSOLD_CALLS_PER_HOUR', 'ALLOW_PRIVATE_UPSTREAMS', 'LISTED'],
    ];
    const { variable, reader, ...settings } = readConfig({ KEY: ' secret ' });
    for (const blank of ['', '  ']) {
      const config = readConfig(Object.fromEntries(names.map(name => [name, blank])));
      expect({ ...config, variable, reader }).to.deep.equal({ ...settings, variable, reader });
      expect(config.variable('HOST')).to.equal(undefined);
    }
    expect(variable('KEY')).to.equal('secret');
  });

  it('names the networks as x402 does', () => {
    const given = { PAY_TO, PUBLIC_URL: 'https://pay.example' };
    expect(readConfig({ ...given, NETWORK: 'mainnet' }).network).to.deep.equal({
      name: 'mainnet',
      caip2: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
      v1: 'solana',
      usdcMint: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
    });
    const devnet = {
      caip2: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
      v1: 'solana-devnet',
      usdcMint: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
    };
    expect(readConfig({ ...given, NETWORK: 'devnet' }).network).to.deep.equal({ name: 'devnet', ...devnet });
    expect(readConfig({}).network).to.deep.equal({ name: 'sandbox', ...devnet });
    for (const NETWORK of ['devnet', 'mainnet']) {
      const config = readConfig({ ...given, NETWORK });
      expect(config.rpcUrls).to.have.length(1);
      expect(config.facilitators).to.have.length(1);
      expect(config.facilitators[0])
        .to.have.property('url')
        .that.matches(/^https:/);
    }
  });

  it("reads the operator's contact", () => {
    const config = readConfig({
      PORT: ' 0 ',
      PUBLIC_URL: 'https://Pay.example/',
      SOLANA_RPC_URL: 'http://a:1/, https://b/key?x=1',
      FACILITATOR_URL: 'http://f/x402/, embedded,https://g:3/',
      PAY_TO,
      DATABASE_URL: 'postgres://u@h/db',
      HOLD_SECONDS: '7',
      ORDER_ATTEMPTS: '3',
      ALLOW_PRIVATE_UPSTREAMS: 'true',
    });
    expect(config).to.include({
      allowPrivateUpstreams: true,
      port: 0,
      publicUrl: 'https://pay.example',
      payTo: PAY_TO,
    });
    expect(config).to.include({ databaseUrl: 'postgres://u@h/db', holdMs: 7000, orderAttempts: 3 });
    expect(config.facilitators).to.deep.equal([
      { kind: 'http', url: 'http://f/x402' },
      { kind: 'embedded' },
      { kind: 'http', url: 'https://g:3' },
    ]);
    expect(config.rpcUrls).to.deep.equal(['http://a:1', 'https://b/key?x=1']);
  });

  const faulty: [string, string][] = [
    ['PORT', '65536'],
    ['PORT', '80.5'],
    ['PORT', '0x50'],
    ['PORT', '-1'],
    ['PORT', '1e3'],
    ['HOLD_SECONDS', '0'],
    ['ORDER_ATTEMPTS', '0'],
    ['MAX_UNSETTLED_PER_PAYER', 'many'],
    ['UNSOLD_CALLS_PER_HOUR', '0'],
    ['SANDBOX_RPC_PORT', 'auto'],
    ['SANDBOX_FACILITATOR_PORT', '99999999999'],
    ['PUBLIC_URL', 'pay.example'],
    ['PUBLIC_URL', 'https://pay.example/shop'],
    ['PUBLIC_URL', 'https://pay.example?a=1'],
    ['PUBLIC_URL', 'https://pay.example/#top'],
    ['PUBLIC_URL', 'https://user:word@pay.example'],
    ['SITE_URL', 'ftp://site.example'],
    ['DATABASE_URL', 'mysql://h/db'],
    ['DATABASE_URL', 'file:'],
    ['OWN_WALLETS', `${PAY_TO}, me`],
    ['BLOCKED_PAYERS', '/no/such/file'],
    ['REFUND_KEYPAIR', '/no/such/file'],
    ['REFUND_DAILY_CAP', '5 USDC'],
    ['CATALOGUE_FACILITATORS', 'embedded'],
    ['PAY_TO', '0x8ba1f109551bD432803012645Ac136ddd64DBA72'],
    ['PAY_TO', '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PP'],
    ['NETWORK', 'Mainnet'],
    ['LOG_LEVEL', 'loud'],
    ['ALLOW_PRIVATE_UPSTREAMS', 'yes'],
    ['SOLANA_RPC_URL', 'http://a:1'],
    ['FACILITATOR_URL', 'http://f'],
    ['FEE_PAYER_KEYPAIR', '/no/such/file'],
    ['FEE_PAYER_SECOND_KEYPAIR', '/no/such/file'],
    ['FEE_PAYER_FLOOR', '999999'],
    ['FEE_PAYER_FLOOR', '0.01'],
    ['FEE_PAYER_HOURLY_CAP', '29999'],
  ];
  for (const [name, value] of faulty) {
    it(`refuses ${name}=${value} with a single error`, () => {
      const faults = faultsOf({ [name]: value });
      expect(faults).to.have.length(1);
      expect(faults[0]).to.contain(name);
    });
  }

  it('requires a wallet and a cap if orders are refunded without the operator', () => {
    const faults = faultsOf({ REFUND_OWED_AFTER: '60' });
    expect(faults.map(fault => fault.split(':')[0])).to.deep.equal(['REFUND_KEYPAIR', 'REFUND_DAILY_CAP']);
    expect(readConfig({}).refunds).to.equal(undefined);
  });

  it("requires the receiver's address and the public URL on mainnet and devnet", () => {
    for (const NETWORK of ['devnet', 'mainnet']) {
      const faults = faultsOf({ NETWORK });
      expect(faults.map(fault => fault.split(':')[0])).to.deep.equal(['PAY_TO', 'PUBLIC_URL']);
    }
  });

  it("requires the receiver's address if somebody else runs the sandbox", () => {
    const faults = faultsOf({ SOLANA_RPC_URL: 'http://a:1', FACILITATOR_URL: 'http://f' });
    expect(faults).to.have.length(1);
    expect(faults[0]).to.match(/^PAY_TO: /);
  });

  it('does not also report an invalid value as unset', () => {
    expect(faultsOf({ NETWORK: 'mainnet', PAY_TO: 'me', PUBLIC_URL: 'x' })).to.have.length(2);
    expect(faultsOf({ SOLANA_RPC_URL: 'x', FACILITATOR_URL: 'http://f', PAY_TO })).to.have.length(1);
  });

  it('runs the embedded facilitator in the sandbox without further settings, and requires its key pair elsewhere', () => {
    const { facilitators, feePayer, rpcUrls, payTo } = readConfig({ FACILITATOR_URL: 'embedded' });
    expect(facilitators).to.deep.equal([{ kind: 'embedded' }]);
    expect({ rpcUrls, payTo }).to.deep.equal({ rpcUrls: [], payTo: undefined });
    expect(feePayer).to.deep.equal({
      keyPair: undefined,
      second: undefined,
      limits: { floor: 10_000_000n, hourlyCap: 500_000_000n },
    });
    const faults = faultsOf({
      NETWORK: 'mainnet',
      PAY_TO,
      PUBLIC_URL: 'https://pay.example',
      FACILITATOR_URL: 'https://f,embedded',
    });
    expect(faults).to.have.length(1);
    expect(faults[0]).to.match(/^FEE_PAYER_KEYPAIR: must be set/);
  });

  describe('the key pair that pays the fees', () => {
    const folder = mkdtempSync(join(tmpdir(), 'coinslot-key-'));
    const file = join(folder, 'fee-payer.json');
    const pair = Keypair.generate();
    const numbers = [...pair.secretKey];
    after(() => rmSync(folder, { recursive: true }));

    function write(content: unknown, mode = 0o600): NodeJS.ProcessEnv {
      writeFileSync(file, JSON.stringify(content));
      chmodSync(file, mode);
      return { FACILITATOR_URL: 'embedded', FEE_PAYER_KEYPAIR: file };
    }

    it('is read, with its limits in lamports', () => {
      const { feePayer } = readConfig({
        ...write(numbers),
        FEE_PAYER_FLOOR: '2000000',
        FEE_PAYER_HOURLY_CAP: '30000',
      });
      expect(feePayer.keyPair?.address).to.equal(pair.publicKey.toBase58());
      expect(feePayer.limits).to.deep.equal({ floor: 2_000_000n, hourlyCap: 30_000n });
      expect(Object.keys(feePayer.keyPair ?? {}), 'nothing to log').to.deep.equal([
        'address',
        'sign',
        'signAsFeePayer',
      ]);
      expect(readConfig(write(numbers, 0o400)).feePayer.keyPair?.address).to.equal(pair.publicKey.toBase58());
    });

    for (const mode of [0o640, 0o604, 0o620, 0o666, 0o644]) {
      it(`is refused if others can read it (mode ${mode.toString(8)})`, () => {
        const [fault, ...others] = faultsOf(write(numbers, mode));
        expect(others).to.deep.equal([]);
        expect(fault).to.match(
          new RegExp(`^FEE_PAYER_KEYPAIR: .*mode ${mode.toString(8)}.*chmod 600 ${file}`),
        );
      });
    }

    it('is refused if it is invalid, or if its public key does not belong to its private key', () => {
      const wrongs: [unknown, RegExp][] = [
        ['abc', /not a list of 64 numbers/],
        [numbers.slice(1), /not a list of 64 numbers/],
        [
          [...numbers.slice(0, 32), ...Keypair.generate().publicKey.toBytes()],
          /public key .* does not belong/,
        ],
      ];
      for (const [content, says] of wrongs) expect(faultsOf(write(content)).join()).to.match(says);
      expect(faultsOf({ FACILITATOR_URL: 'embedded', FEE_PAYER_KEYPAIR: folder }).join()).to.match(/EISDIR/);
    });
  });

  it('reports all errors at once', () => {
    // FACILITATOR_URL is wrong only if SOLANA_RPC_URL is unset.
    const alone = faulty.filter(([name]) => name !== 'FACILITATOR_URL');
    const env = { ...Object.fromEntries(alone), SOLANA_RPC_URL: 'ws://a,,x' };
    const message = faultsOf({ ...env, FACILITATOR_URL: 'http://f' }).join('\n');
    for (const name of Object.keys(env)) expect(message).to.contain(name);
  });
});
