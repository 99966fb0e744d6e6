import { hangUpIsTold } from '../../net/hang-up.js';
import { bodyLimit } from '../../contract/body-limit.js';
import { readChallenge } from './challenge-checks.js';
import { unpaid, type Catalogue, type Sold } from './catalogue.js';
import { must, type Findings } from './findings.js';
import { call, expectError, expectHeader, expectStatus } from './http-call.js';

/** The size of the longest text that a large operation accepts: 100 000 characters of four bytes each. */
const LARGE_BYTES = 400_000;
const HEADER_BYTES = 12_000;
const ALLOWED_HEADERS = ['content-type', 'payment-signature', 'x-payment'];

/** Checks that a proxy in front of the server neither drops nor changes anything that buyers need. */
export async function checkFront({ base, sold }: Catalogue, findings: Findings): Promise<void> {
  const [operation] = sold.filter(({ method }) => method);
  if (!operation) return;
  await findings.should('a browser may pay: OPTIONS allows every origin and the payment headers', () =>
    checkPreflight(operation),
  );
  await findings.should('an unknown path gets a 404 that says so in JSON', async () =>
    expectError(await call(`${base}/no-such-path`), 404),
  );
  await findings.should('a wrong method gets a 405 that lists the allowed methods in JSON', async () => {
    const taken = new Set(sold.filter(({ path }) => path === operation.path).map(({ method }) => method));
    const wrong = ['DELETE', 'PATCH', 'PUT'].find(method => !taken.has(method)) ?? 'DELETE';
    const reply = await call(operation.url, { method: wrong });
    expectError(reply, 405);
    expectHeader(reply, 'allow', new RegExp(`\\b${operation.method}\\b`));
  });
  const [largest] = sold
    .filter(({ method, schema }) => method !== 'GET' && schema)
    .sort((a, b) => largestBody(b) - largestBody(a));
  if (largest) {
    const size = largestBody(largest);
    await findings.must(`${Math.round(size / 1000)} KB of request body get through`, async () => {
      const { method, url } = largest;
      readChallenge(await call(url, unpaid(method, { text: 'x'.repeat(size) })));
    });
  }
  await findings.must(`${HEADER_BYTES / 1000} KB of request headers get through`, async () => {
    const { method, url, body } = operation;
    readChallenge(await call(url, unpaid(method, body, { 'x-filler': 'x'.repeat(HEADER_BYTES) })));
  });
  const told = await hangUpIsTold(base);
  if (told !== undefined)
    await findings.must('the server notices a caller that hangs up, so that it is not charged', () =>
      must(
        told,
        'a proxy in front does not pass on the hang-up; compare its settings with the files in ops/',
      ),
    );
}

/** The body size that the schema allows, without the allowance for escapes and unknown fields. */
function largestBody({ schema }: Sold): number {
  return Math.min(LARGE_BYTES, Math.floor(bodyLimit({}, schema ?? {}) / 4));
}

async function checkPreflight({ method, url }: Sold): Promise<void> {
  const reply = await call(url, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://browser.example',
      'access-control-request-method': method,
      'access-control-request-headers': 'content-type,payment-signature',
    },
  });
  expectStatus(reply, 204, 200);
  expectHeader(reply, 'access-control-allow-origin', /^(\*|https:\/\/browser\.example)$/);
  expectHeader(reply, 'access-control-allow-methods', new RegExp(`\\b${method}\\b|\\*`));
  const allowed = reply.headers.get('access-control-allow-headers') ?? '';
  for (const name of ALLOWED_HEADERS)
    must(
      allowed === '*' || new RegExp(`\\b${name}\\b`, 'i').test(allowed),
      `access-control-allow-headers is ${allowed || 'missing'}: it lacks ${name}`,
    );
}
