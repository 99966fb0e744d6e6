import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { encodedHeader, signedJws } from '../../../src/receipts/jws.js';
import { didDocument, publicKeyOf } from '../../../src/receipts/did-document.js';
import { signedReceipt } from '../../../src/methods/x402/signed-receipt.js';

const COINSLOT = fileURLToPath(new URL('../../../src/cli/main.js', import.meta.url));

type Ran = { code: number | null; out: string; err: string };

/** Each test verifies a receipt of a shop that publishes its key on this machine. */
describe('coinslot verify-receipt', () => {
  const { privateKey: key } = generateKeyPairSync('ed25519');
  let folder: string;
  let server: Server;
  let host: string;
  let asked: string[];
  let published: { status: number; body: string };

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'coinslot-receipt-'));
    server = createServer(({ url = '' }, response) => {
      asked.push(url);
      response.writeHead(published.status, { location: 'http://127.0.0.1:1/' }).end(published.body);
    });
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.close();
    server.closeAllConnections();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(() => {
    asked = [];
    published = { status: 200, body: JSON.stringify(didDocument(did(), [publicKeyOf(key)])) };
  });

  const did = (of = host): string => `did:web:${of.replace(':', '%3A')}`;
  const receipt = (signer = did(), about = `http://${host}/v1/a`, more: object = {}): string =>
    signedJws(
      encodedHeader({ alg: 'EdDSA', kid: `${signer}#${publicKeyOf(key).name}` }),
      { version: 1, network: 'solana:a', resourceUrl: about, payer: 'Payer', issuedAt: 1767225600, ...more },
      key,
    );

  const run = (args: string[], input = ''): Promise<Ran> =>
    new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [COINSLOT, 'verify-receipt', ...args], { cwd: folder });
      const ran: Ran = { code: null, out: '', err: '' };
      child.stdout.on('data', data => (ran.out += String(data)));
      child.stderr.on('data', data => (ran.err += String(data)));
      child.on('error', reject);
      child.on('close', code => resolve({ ...ran, code }));
      child.stdin.on('error', () => {});
      child.stdin.end(input);
    });

  it('says who signed what, from a file or stdin, in every form of receipt that a buyer can have', async function () {
    this.timeout(60_000);
    const settlement = { success: true, extensions: signedReceipt(receipt()) };
    const header = Buffer.from(JSON.stringify(settlement)).toString('base64');
    writeFileSync(join(folder, 'receipt.jws'), receipt());
    const forms = [
      run(['receipt.jws', '--allow-private']),
      run(['--allow-private'], `HTTP/1.1 200 OK\r\nPAYMENT-RESPONSE: ${header}\r\nX-Other: a.b.c\r\n`),
      run(['--allow-private', '-'], JSON.stringify({ _meta: { 'x402/payment-response': settlement } })),
    ];
    for (const { code, out, err } of await Promise.all(forms)) {
      expect(err).to.equal('');
      expect(out).to.match(/^ok {6}receipt, signed with did:web:127\.0\.0\.1%3A\d+#/);
      expect(out)
        .to.match(/payer +Payer\n/)
        .and.to.match(/issuedAt +2026-01-01T00:00:00\.000Z\n/);
      expect(code).to.equal(0);
    }
    expect(asked).to.deep.equal(Array<string>(3).fill('/.well-known/did.json'));
  });

  it('fetches from no private address unless allowed, and only from the host of the receipt', async () => {
    const { code, out } = await run([], receipt());
    expect(out).to.match(/^FAILED {2}.*private address.*--allow-private/);
    expect(code).to.equal(1);
    expect(asked).to.deep.equal([]);
    published.status = 302;
    const redirected = await run(['--allow-private'], receipt());
    expect(redirected.out).to.include('answered 302');
  });

  it('rejects a signer that is not the shop, a key that is not published, and one that did not sign', async () => {
    const other = await run(['--allow-private'], receipt(did(), 'https://api.example.com/v1/a'));
    expect(other).to.include({ code: 1 });
    expect(other.out).to.include('it is about api.example.com: the signer is not that shop');
    expect(asked).to.deep.equal([]);
    const madeUp = await run(['--allow-private'], receipt('did:key:z6Mk'));
    expect(madeUp.out).to.include('names no host');
    published.body = JSON.stringify(didDocument(did(), []));
    expect((await run(['--allow-private'], receipt())).out).to.include('has no key');
    const [{ x }] = [publicKeyOf(generateKeyPairSync('ed25519').privateKey)];
    published.body = JSON.stringify(didDocument(did(), [{ ...publicKeyOf(key), x }]));
    expect((await run(['--allow-private'], receipt())).out).to.include('did not sign it');
  });

  it('takes a key from a file, and then fetches nothing', async () => {
    const pem = createPublicKey(key).export({ type: 'spki', format: 'pem' });
    writeFileSync(join(folder, 'key.pem'), pem);
    writeFileSync(join(folder, 'did.json'), published.body);
    for (const file of ['key.pem', 'did.json']) {
      const { code, out } = await run(['--key', file, '--json'], receipt());
      expect(code).to.equal(0);
      expect(JSON.parse(out)).to.include({ kind: 'receipt' });
    }
    expect(asked).to.deep.equal([]);
  });

  it('fails with a message if there is nothing to verify', async () => {
    const empty = await run([], 'nothing');
    expect(empty).to.include({ code: 1 });
    expect(empty.out).to.include('the input contains no receipt');
    writeFileSync(join(folder, 'answer'), 'the answer');
    const unbound = await run(['--allow-private', '--answer', 'answer'], receipt());
    expect(unbound.code).to.equal(1);
    expect(unbound.out).to.include('the input contains no answer receipt');
    const missing = await run(['no-such-file']);
    expect(missing.code).to.equal(2);
    expect(missing.err).to.include('no-such-file cannot be read');
  });
});
