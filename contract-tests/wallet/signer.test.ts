import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createSigner } from '../../src/wallet/signer.js';
import type { Offer } from '../../src/wallet/offer.js';
import { answerRpc } from '../../src/cli/mock/stub-chain.js';
import { renderChallenge } from '../../src/methods/x402/challenge.js';
import { NETWORKS } from '../../src/rails/solana/networks.js';
import { FEE_PAYER, TERMS } from '../support/charge-world.js';
import { SOLD } from '../support/sold.js';

const { devnet } = NETWORKS;
const terms = { ...TERMS, network: devnet.caip2, v1Network: devnet.v1, asset: devnet.usdcMint };

describe('the signer of the wallet', () => {
  let rpc: Server;
  let rpcUrl: string;
  before(async () => {
    rpc = createServer((request, response) => {
      let text = '';
      request.on('data', (chunk: Buffer) => (text += chunk.toString()));
      request.on('end', () => {
        response.setHeader('Content-Type', 'application/json');
        response.end(JSON.stringify(answerRpc(terms.asset, JSON.parse(text))));
      });
    });
    await once(rpc.listen(0, '127.0.0.1'), 'listening');
    rpcUrl = `http://127.0.0.1:${(rpc.address() as AddressInfo).port}`;
  });
  after(() => rpc.close());

  const [operation] = SOLD.paid;
  function offer(): Offer {
    const live = { feePayer: FEE_PAYER, recentBlockhash: '11111111111111111111111111111112' };
    const required = JSON.parse(
      renderChallenge(operation!, terms, live).body.toString(),
    ) as Offer['required'];
    return { required, network: devnet, amount: operation!.price.atomic, payTo: terms.payTo };
  }

  it('signs the offer that the wallet agreed to', async () => {
    const signer = await createSigner(Keypair.generate().secretKey, rpcUrl);
    expect(await signer.sign(offer()))
      .to.have.property('id')
      .that.matches(/^[0-9a-f]{64}$/);
  });

  it('checks its signed transaction, and does not pay a challenge with a receiver that the wallet did not agree to', async () => {
    const signer = await createSigner(Keypair.generate().secretKey, rpcUrl);
    const other = { ...offer(), payTo: Keypair.generate().publicKey.toBase58() };
    const said = await signer.sign(other).then(String, String);
    expect(said).to.contain('the signed transaction does not pay the offer');
  });
});
