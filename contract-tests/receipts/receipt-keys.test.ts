import { expect } from 'chai';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../src/config.js';
import { keptReceiptKey } from '../../src/config/receipt-key.js';
import { ConfigFault } from '../../src/config/setting-reader.js';
import type { Ledger } from '../../src/ledger/store.js';
import { didOf, publicKeyOf } from '../../src/receipts/did-document.js';
import { MAX_KEYS, PublishedKeys } from '../../src/receipts/published-keys.js';
import { Receipts } from '../../src/receipts/receipts.js';
import { onEachEngine } from '../support/ledger-places.js';
import { eachWithANewLedger, ledger, open } from '../support/ledger-suite.js';

type Document = { id: string; verificationMethod: { id: string; publicKeyJwk: { x: string } }[] };

const newKey = (type: 'ed25519' | 'x25519' = 'ed25519'): KeyObject =>
  type === 'ed25519' ? generateKeyPairSync('ed25519').privateKey : generateKeyPairSync('x25519').privateKey;
const pemOf = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();
const keysIn = ({ verificationMethod }: Document): string[] =>
  verificationMethod.map(({ publicKeyJwk }) => publicKeyJwk.x);

describe('the receipt key', () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'coinslot-key-'))));
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('is created once, in a file that only its owner can read', () => {
    const first = keptReceiptKey(folder);
    expect(publicKeyOf(keptReceiptKey(folder))).to.deep.equal(publicKeyOf(first));
    expect(readdirSync(folder)).to.deep.equal(['receipt-key.pem']);
    expect(statSync(join(folder, 'receipt-key.pem')).mode & 0o777).to.equal(0o600);
  });

  it("prevents startup if it can't be read, and the message says how to get another", () => {
    for (const text of ['', 'no key', pemOf(newKey('x25519'))]) {
      writeFileSync(join(folder, 'receipt-key.pem'), text);
      expect(() => keptReceiptKey(folder)).to.throw(ConfigFault, /receipt-key\.pem .*openssl genpkey/);
    }
  });

  it('can be set with RECEIPT_KEY_FILE, and must be an Ed25519 key', () => {
    const file = join(folder, 'own.pem');
    const key = newKey();
    writeFileSync(file, pemOf(key));
    const { receiptKey } = readConfig({ RECEIPT_KEY_FILE: file });
    expect(receiptKey && publicKeyOf(receiptKey)).to.deep.equal(publicKeyOf(key));
    writeFileSync(file, pemOf(newKey('x25519')));
    expect(() => readConfig({ RECEIPT_KEY_FILE: file })).to.throw(
      ConfigFault,
      /RECEIPT_KEY: .*openssl genpkey/,
    );
  });

  it('is identified by the host of PUBLIC_URL, with its port', () => {
    expect(didOf('https://api.example.com')).to.equal('did:web:api.example.com');
    expect(didOf('http://127.0.0.1:8402')).to.equal('did:web:127.0.0.1%3A8402');
  });
});

onEachEngine('the published keys of receipts', (make, engine) => {
  const opened: Receipts[] = [];
  eachWithANewLedger(make);
  afterEach(() => opened.splice(0).forEach(each => each.close()));

  const receiptsOf = async (key: KeyObject, over: Ledger = ledger, refreshMs = 60_000): Promise<Receipts> => {
    const receipts = await Receipts.open({
      key,
      publicUrl: 'https://api.example.com',
      network: 'solana:test',
      urlOf: () => 'https://api.example.com/a',
      published: new PublishedKeys(over),
      log: { info: () => {}, warn: () => {}, error: () => {} },
      refreshMs,
    });
    opened.push(receipts);
    return receipts;
  };
  const documentOf = (receipts: Receipts): Document => receipts.document as Document;

  it('include the keys of earlier runs, so that receipts signed with an old key stay valid', async () => {
    const [old, present] = [newKey(), newKey()];
    await receiptsOf(old);
    const document = documentOf(await receiptsOf(present));
    expect(keysIn(document)).to.have.members([old, present].map(key => publicKeyOf(key).x));
    expect(document.verificationMethod.map(({ id }) => id)).to.have.members(
      [old, present].map(key => `did:web:api.example.com#${publicKeyOf(key).name}`),
    );
    expect(await ledger.getMeta(`receipt key ${publicKeyOf(old).name}`)).to.not.include('PRIVATE');
  });

  it("include the keys of the ledger's other servers, even of one that starts later", async () => {
    const other = engine === 'SQLite' ? ledger : await open();
    const first = await receiptsOf(newKey(), ledger, 20);
    const told = new Promise<Document>(
      resolve => (first.onDocument = document => resolve(document as Document)),
    );
    const key = newKey();
    await receiptsOf(key, other);
    expect(keysIn(await told)).to.include(publicKeyOf(key).x);
  });

  it(`number at most ${MAX_KEYS}: the oldest are removed, never the one that signs`, async () => {
    let now = 1_000;
    const published = new PublishedKeys(ledger, () => (now += 1));
    const keys = Array.from({ length: MAX_KEYS + 2 }, () => publicKeyOf(newKey()));
    const forgotten: number[] = [];
    for (const key of keys) forgotten.push(await published.publish(key));
    expect(forgotten.filter(count => count > 0)).to.deep.equal([1, 1]);
    expect(await published.all()).to.have.deep.members(keys.slice(2));
    // Simulates a server whose clock is behind.
    now = 0;
    const late = publicKeyOf(newKey());
    await published.publish(late);
    expect(await published.all()).to.deep.include(late);
  });
});
