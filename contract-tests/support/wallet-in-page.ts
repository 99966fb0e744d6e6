/**
 * A wallet for tests that registers itself in pages by the Wallet Standard, as browser extensions do. It signs with a
 * key pair of 64 bytes without asking, and counts its signatures in `signed`. It waits for `held` before it signs, as a
 * wallet waits for its owner; `putInto` registers it in another tab.
 */
export function walletInPage(keypair: Uint8Array, address: string, chain: string): string {
  const jwk = {
    ...{ kty: 'OKP', crv: 'Ed25519' },
    d: Buffer.from(keypair.subarray(0, 32)).toString('base64url'),
    x: Buffer.from(keypair.subarray(32)).toString('base64url'),
  };
  return `(() => {
    const publicKey = Uint8Array.from(${JSON.stringify([...keypair.subarray(32)])});
    const account = { address: '${address}', publicKey, chains: ['${chain}'], features: ['solana:signTransaction'] };
    window.signed = 0;
    async function sign({ transaction }) {
      await window.held;
      const key = await crypto.subtle.importKey('jwk', ${JSON.stringify(jwk)}, 'Ed25519', false, ['sign']);
      const signature = await crypto.subtle.sign('Ed25519', key, transaction.slice(129));
      const signedTransaction = transaction.slice();
      signedTransaction.set(new Uint8Array(signature), 65);
      window.signed += 1;
      return { signedTransaction };
    }
    const wallet = {
      version: '1.0.0',
      name: 'Test wallet',
      icon: 'data:image/svg+xml,%3Csvg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/%3E',
      chains: ['${chain}'],
      accounts: [account],
      features: {
        'standard:connect': { version: '1.0.0', connect: async () => ({ accounts: [account] }) },
        'solana:signTransaction': {
          version: '1.0.0',
          supportedTransactionVersions: ['legacy', 0],
          signTransaction: (...inputs) => Promise.all(inputs.map(sign)),
        },
      },
    };
    const register = ({ register }) => register(wallet);
    window.putInto = tab => {
      tab.addEventListener('wallet-standard:app-ready', ({ detail }) => register(detail));
      tab.dispatchEvent(new tab.CustomEvent('wallet-standard:register-wallet', { detail: register }));
    };
    window.putInto(window);
  })()`;
}
