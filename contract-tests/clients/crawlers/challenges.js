/** Path, method and URL of every operation with a price in the served contract. */
export async function operationsForSale() {
  const { paths } = await (await fetch(`${process.env.COINSLOT_URL}/openapi.json`)).json();
  return Object.entries(paths).flatMap(([path, item]) =>
    ['get', 'post']
      .filter(method => item[method]?.['x-price'])
      .map(method => ({ path, method: method.toUpperCase() })),
  );
}

/** Whether a listed URL matches a path of the contract; a path parameter matches any text without a slash. */
function isAt(url, path) {
  const { pathname } = new URL(url);
  const pattern = path.split(/\{[^{}]*\}/).map(text => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${pattern.join('[^/]+')}$`).test(decodeURI(pathname));
}

/** The v2 challenge of every paid operation, at the URL where the server lists it. */
export async function challenges() {
  const { resources } = await (await fetch(`${process.env.COINSLOT_URL}/.well-known/x402`)).json();
  const sold = await operationsForSale();
  if (resources.length !== sold.length)
    throw new Error(`${resources.length} resources instead of ${sold.length}`);
  return Promise.all(
    sold.map(async ({ path, method }) => {
      const url = resources.find(each => isAt(each, path));
      if (!url) throw new Error(`${method} ${path} is not listed`);
      const response = await fetch(url, { method });
      if (response.status !== 402) throw new Error(`${url}: status ${response.status} instead of 402`);
      return { url, method, header: response.headers.get('PAYMENT-REQUIRED'), body: await response.json() };
    }),
  );
}
