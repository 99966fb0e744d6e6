/** The v2 challenge of every paid operation that the server lists. */
export async function challenges() {
  const document = await (await fetch(`${process.env.COINSLOT_URL}/.well-known/x402`)).json();
  if (document.resources.length !== 5) throw new Error(`${document.resources.length} resources instead of 5`);
  return Promise.all(
    document.resources.map(async url => {
      const response = await fetch(url, { method: 'POST' });
      if (response.status !== 402) throw new Error(`${url}: status ${response.status} instead of 402`);
      return { url, header: response.headers.get('PAYMENT-REQUIRED'), body: await response.json() };
    }),
  );
}
