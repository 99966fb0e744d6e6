import { readFileSync } from 'node:fs';

/** Buys every operation of the sandbox with its own example. */
export async function buyAll(pay, query, receipt) {
  const { paths } = JSON.parse(readFileSync('openapi.json', 'utf8'));
  const paid = Object.entries(paths).filter(([, { post }]) => post?.['x-price']);
  for (const [path, { post }] of paid) {
    const answer = await pay(`${process.env.COINSLOT_URL}${path}${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(post.requestBody.content['application/json'].example),
      signal: AbortSignal.timeout(60_000),
    });
    if (answer.status !== 200 || !answer.headers.get(receipt))
      throw new Error(`${path}${query}: status ${answer.status}: ${(await answer.text()).slice(0, 300)}`);
  }
  if (paid.length !== 5) throw new Error(`bought ${paid.length} operations instead of 5`);
}
