import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { createPrivateKey, sign } from 'node:crypto';
import { TransactionChecker } from '../../src/rails/solana/transaction.js';
import { BROWSER, CONTRACTS, serveSite, TERMS } from '../support/site.js';

type Build = (offer: object, payer: Uint8Array, memo: string) => Promise<Uint8Array>;
const BUILDER = new URL('../../../src/site/assets/solana-payment.js', import.meta.url).href;
const { unsignedTransaction } = (await import(BUILDER)) as { unsignedTransaction: Build };

function signMessage({ secretKey }: Keypair, message: Uint8Array): Buffer {
  const [d, x] = [secretKey.subarray(0, 32), secretKey.subarray(32)].map(part =>
    Buffer.from(part).toString('base64url'),
  );
  return sign(null, message, createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' }));
}

const HTML = 'text/html; charset=utf-8';
const JSON_TYPE = 'application/json; charset=utf-8';

describe('A paid URL', () => {
  let site: Awaited<ReturnType<typeof serveSite>>;
  before(async () => {
    site = await serveSite(CONTRACTS['any shop']!);
  });
  after(() => site.close());

  const ask = (path: string, accept: string, method = 'GET'): Promise<Response> =>
    fetch(site.url + path, { method, headers: { accept } });
  const [byGet, byPost] = ['/quotes/SOL', '/print'];

  it('answers a browser with a page, status 402 and the challenge in the headers, if the operation is a GET', async () => {
    const answer = await ask(byGet, BROWSER);
    expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([402, HTML]);
    const challenge = await ask(byGet, '*/*');
    expect(answer.headers.get('payment-required')).to.equal(challenge.headers.get('payment-required'));
    expect(answer.headers.get('payment-required')).to.match(/^\w/);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    expect(answer.headers.get('vary')).to.match(/^Accept\b/);
    const html = await answer.text();
    expect(html).to.contain('Price of a symbol').and.to.contain('0.002 USDC');
    expect(await challenge.json()).to.have.property('accepts');
  });

  it('gives a browser, but not a program, the same page with status 200 if the contract has no GET', async () => {
    const answer = await ask(byPost, BROWSER);
    expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, HTML]);
    expect(await answer.text()).to.contain('A picture');
    const head = await ask(byPost, BROWSER, 'HEAD');
    expect([head.status, await head.text()]).to.deep.equal([200, '']);
    expect((await ask(byPost, '*/*')).headers.get('content-type')).not.to.equal(HTML);
  });

  it('answers POST with the JSON 402, whatever the Accept header is', async () => {
    for (const accept of [BROWSER, 'text/html']) {
      const answer = await ask(byPost, accept, 'POST');
      expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([402, JSON_TYPE]);
    }
  });

  it('runs only scripts from this server', async () => {
    const answer = await ask(byPost, BROWSER);
    expect(answer.headers.get('content-security-policy'))
      .to.match(/^default-src 'none'; script-src 'self';/)
      .and.not.to.contain('unsafe');
    const html = await answer.text();
    expect(html).not.to.match(/<script(?![^>]* src="\/)|<style| on[a-z]+="| style="|javascript:/);
    for (const [, path = ''] of html.matchAll(/<(?:script|link)[^>]* (?:src|href)="(\/site[^"]*)"/g))
      expect((await ask(path, '*/*')).status, path).to.equal(200);
    const script = await (await ask('/site/buy.js', '*/*')).text();
    for (const [, path = ''] of script.matchAll(/^import .*'(\/[^']+)'/gm))
      expect((await ask(path, '*/*')).status, path).to.equal(200);
  });

  for (const [name, contract] of Object.entries(CONTRACTS))
    it(`has a field for each parameter and each member of the body, with the contract's example: ${name}`, async () => {
      const shop = await serveSite(contract);
      try {
        for (const { id, method, examplePath, parameters, request } of contract.paid) {
          const answer = await fetch(shop.url + examplePath, { headers: { accept: BROWSER } });
          expect(answer.status, id).to.equal(method === 'GET' ? 402 : 200);
          const html = await answer.text();
          if (!html.includes(`data-operation="${id}"`)) continue; // The page belongs to another method of the path.
          for (const parameter of parameters)
            expect(html, id).to.contain(`name="${parameter.in} ${parameter.name}"`);
          if (request?.kind === 'binary') expect(html, id).to.contain('type="file"');
          else if (request) expect(html, id).to.match(/data-place="(?:member|whole)"/);
        }
      } finally {
        shop.close();
      }
    });
});

describe('The transaction that a page builds', () => {
  const offer = {
    asset: TERMS.asset,
    payTo: TERMS.payTo,
    amount: '25000',
    extra: {
      feePayer: 'GVJJ7rdGiXr5xaYbRwRbjfaJL7fmwRygFi1H6aGqDveb',
      recentBlockhash: 'EkSnNWid2cvwEVnVx9aBqawnmiCNiDgp3gUdkDPTKN1N',
      decimals: 6,
    },
  };

  it('pays exactly the offer, for any payer', async () => {
    for (let payers = 0; payers < 20; payers++) {
      const payer = Keypair.generate();
      const transaction = await unsignedTransaction(offer, payer.publicKey.toBytes(), 'a memo');
      transaction.set(signMessage(payer, transaction.slice(129)), 65);
      const expected = { asset: offer.asset, payTo: offer.payTo, amount: 25_000n };
      const checked = await new TransactionChecker().check(
        Buffer.from(transaction).toString('base64'),
        expected,
      );
      expect(checked.ok || checked.error).to.equal(true);
      expect(checked.checked).to.deep.include({
        payer: payer.publicKey.toBase58(),
        feePayer: offer.extra.feePayer,
        hasNonce: true,
      });
    }
  });

  it("takes the money from the payer's own token account, as other clients do", async () => {
    const { getAssociatedTokenAddressSync } = await import('@solana/spl-token');
    const { PublicKey } = await import('@solana/web3.js');
    for (let payers = 0; payers < 50; payers++) {
      const { publicKey } = Keypair.generate();
      const transaction = await unsignedTransaction(offer, publicKey.toBytes(), 'x');
      const source = getAssociatedTokenAddressSync(new PublicKey(offer.asset), publicKey);
      expect(Buffer.from(transaction).includes(source.toBuffer())).to.equal(true);
    }
  });

  it('is not built for an invalid address', async () => {
    const wrong = { ...offer, payTo: '0OIl' };
    const failed = await unsignedTransaction(wrong, new Uint8Array(32), 'x').catch(
      (error: Error) => error.message,
    );
    expect(failed).to.contain('not an address');
  });
});
