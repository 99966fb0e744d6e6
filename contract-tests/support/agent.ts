import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';

/*
 * An agent that knows only a server's URL and has a wallet. It reads /llms.txt and buys every operation listed there
 * once, with a stock x402 client. No path, field or price is hard-coded. To run it on its own:
 * KEYPAIR=.coinslot/buyer.json RPC_URL=http://127.0.0.1:8899 node dist/contract-tests/support/agent.js http://127.0.0.1:8402
 */

/** What /llms.txt says about one operation. */
export type Listed = { title: string; url: string; usdc: string; method: string; body: string | undefined };

/** The result of one purchase, or why it failed. `receipt` is the signature of the transfer. */
export type Bought = Listed & { status: number; type: string; bytes: number; receipt: string | undefined };

const PAID = /^## Paid operations$/m;
const LINE =
  /^- \[(?<title>[^\]]+)\]\((?<url>[^)\s]+)\): (?<usdc>[\d.]+) USDC\. .* Example: `(?<example>[^`]+)`\.$/;

/** Reads the list of operations in a shop's /llms.txt. */
export async function readOffers(address: string): Promise<Listed[]> {
  const answer = await fetch(new URL('/llms.txt', address), { signal: AbortSignal.timeout(10_000) });
  if (!answer.ok) throw new Error(`${address} has no /llms.txt: ${answer.status}`);
  const [, list = ''] = (await answer.text()).split(PAID);
  const [section = ''] = list.split(/^## /m);
  return section
    .split('\n')
    .filter(line => line.startsWith('- '))
    .map(line => {
      const { title = '', url = '', usdc = '', example = '' } = LINE.exec(line)?.groups ?? {};
      if (!url) throw new Error(`this line does not describe an operation: ${line}`);
      const [method = '', , ...body] = example.split(' ');
      return { title, url, usdc, method, body: body.length > 0 ? body.join(' ') : undefined };
    });
}

/** The buyer's key, and the RPC server of its wallet (the sandbox's is in sandbox.json). */
export type Wallet = { keypair: Uint8Array; rpcUrl: string };

/** Buys each operation once, with the shop's own examples. `waitMs` limits the wait for an operation that is paid before its work. */
export async function buyAll(
  address: string,
  { keypair, rpcUrl }: Wallet,
  waitMs: number,
): Promise<Bought[]> {
  const signer = await createKeyPairSignerFromBytes(keypair);
  const wallet = new x402Client().register('solana:*', new ExactSvmScheme(signer, { rpcUrl }));
  const pay = wrapFetchWithPayment(fetch, wallet);
  const bought: Bought[] = [];
  for (const listed of await readOffers(address)) {
    const { url, method, body } = listed;
    const json = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body };
    const first = await pay(url, { method, ...json, signal: AbortSignal.timeout(waitMs) });
    bought.push({ ...listed, ...(await finished(first, Date.now() + waitMs)) });
  }
  return bought;
}

/** Does what a 503 advises: fetches the answer from `Location`, free of charge. */
async function finished(first: Response, until: number): Promise<Omit<Bought, keyof Listed>> {
  let answer = first;
  const place = first.headers.get('location');
  while (answer.status === 503 && place !== null && Date.now() < until) {
    const seconds = Number(answer.headers.get('retry-after') ?? 1);
    await new Promise(resolve => setTimeout(resolve, seconds * 1000));
    answer = await fetch(place, { signal: AbortSignal.timeout(30_000) });
  }
  const header = answer.headers.get('payment-response') ?? first.headers.get('payment-response');
  const receipt = header ? (JSON.parse(atob(header)) as { transaction: string }).transaction : undefined;
  const bytes = (await answer.arrayBuffer()).byteLength;
  return { status: answer.status, type: answer.headers.get('content-type') ?? '', bytes, receipt };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { KEYPAIR = '.coinslot/buyer.json', RPC_URL: rpcUrl = 'http://127.0.0.1:8899' } = process.env;
  const keypair = Uint8Array.from(JSON.parse(readFileSync(KEYPAIR, 'utf8')) as number[]);
  const [, , address = 'http://127.0.0.1:8402'] = process.argv;
  for (const { title, usdc, status, type, bytes, receipt } of await buyAll(
    address,
    { keypair, rpcUrl },
    300_000,
  ))
    process.stdout.write(
      `${status}  ${usdc} USDC  ${title}: ${bytes} bytes of ${type}, ${receipt ?? 'no receipt'}\n`,
    );
}
