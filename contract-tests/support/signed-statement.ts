import { base58 } from '@scure/base';
import type { Keypair } from '@solana/web3.js';
import { createPrivateKey, randomBytes, sign } from 'node:crypto';
import { textToSign, type SignedFields } from '../../src/sign-in/sign-in-text.js';
import { TERMS } from './charge-world.js';

/** The statement that a wallet signs for one free call in the shops of these tests. */
export function statementInfo(now: number): SignedFields {
  return {
    domain: new URL(TERMS.publicUrl).host,
    uri: TERMS.publicUrl,
    version: '1',
    chainId: TERMS.network,
    nonce: randomBytes(16).toString('hex'),
    issuedAt: new Date(now).toISOString(),
    expirationTime: new Date(now + 300_000).toISOString(),
  };
}

/** The signed statement as JSON, as MCP carries it. */
export function signedStatement(wallet: Keypair, info: SignedFields): SignedFields {
  const address = wallet.publicKey.toBase58();
  const [d, x] = [wallet.secretKey.subarray(0, 32), wallet.publicKey.toBytes()].map(bytes =>
    Buffer.from(bytes).toString('base64url'),
  );
  const key = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' });
  const signature = base58.encode(sign(null, Buffer.from(textToSign(info, address)), key));
  return { ...info, type: 'ed25519', address, signature };
}

/** The signed statement as the SIGN-IN-WITH-X header. */
export function headerOf(statement: SignedFields): Record<string, string> {
  return { 'SIGN-IN-WITH-X': Buffer.from(JSON.stringify(statement)).toString('base64') };
}
