import { expect } from 'chai';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { x402Client, x402HTTPClient } from '@x402/core/client';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { readiness, scrape, type Samples } from './metrics.js';
import { buyer, proxied, sandbox, serve, type Environment } from './server-process.js';
import { call, post, type Answer } from './world.js';

export type Line = { level: number; msg: string; [field: string]: unknown };

type Section = 'headline' | 'came-in' | 'attention' | 'sales' | 'facilitators' | 'upstreams';

/** A server process, and what its operator can request and read. */
export class Watched {
  readonly lines: Line[] = [];
  readonly url: string;
  readonly admin: string;
  /** Begins its shutdown. */
  readonly stop: () => void;
  readonly #token: string;
  #cookie: string | undefined;

  private constructor(url: string, link: URL, stop: () => void) {
    this.url = url;
    this.stop = stop;
    this.admin = link.origin;
    this.#token = link.hash.slice(1);
  }

  /** @param under a command that runs the server, such as `faketime -f +2d` */
  static async start(name: string, env: Environment, under: string[] = []): Promise<Watched> {
    const all = proxied(name, env);
    const { url, child } = await serve(all, undefined, under);
    const link = await readFile(join(all['STATE_DIR'] ?? '', 'operator-page.url'), 'utf8');
    const server = new Watched(url, new URL(link.trim()), () => void child.kill('SIGTERM'));
    let rest = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      const parts = (rest + chunk.toString()).split('\n');
      rest = parts.pop() ?? '';
      for (const part of parts) server.lines.push(JSON.parse(part) as Line);
    });
    return server;
  }

  async buy(text: string): Promise<Answer> {
    return post(`${this.url}/v1/summarize`, { text }, await this.sign());
  }

  /** @returns the headers of a payment for a summary */
  async sign(): Promise<Record<string, string>> {
    const client = new x402HTTPClient(
      new x402Client().register(
        'solana:*',
        new ExactSvmScheme(await createKeyPairSignerFromBytes(buyer.secretKey), { rpcUrl: sandbox.rpc.url }),
      ),
    );
    const challenge = await post(`${this.url}/v1/summarize`, {});
    const required = client.getPaymentRequiredResponse(name => challenge.headers.get(name), challenge.json());
    return client.encodePaymentSignatureHeader(await client.createPaymentPayload(required));
  }

  metrics(): Promise<Samples> {
    return scrape(this.admin);
  }

  ready(): Promise<{ status: number; reasons: string[] }> {
    return readiness(this.admin);
  }

  async health(upstream: string): Promise<{ status: string; detail?: string }> {
    const { upstreams } = (await call(`${this.url}/health`)).json() as {
      upstreams: Record<string, { status: string; detail?: string }>;
    };
    return upstreams[upstream] ?? expect.fail(`no ${upstream}`);
  }

  /** The text of a section of the operator page, as a person reads it. */
  async page(section: Section): Promise<string> {
    this.#cookie ??= await this.#signIn();
    const answer = await call(`${this.admin}/overview`, { headers: { cookie: this.#cookie } });
    expect(answer.status).to.equal(200);
    const end = section === 'headline' ? 'div' : 'section';
    const [, html] = new RegExp(`id="${section}"[^>]*>([^]*?)</${end}>`).exec(String(answer.body)) ?? [];
    return (html ?? expect.fail(`no ${section}`)).replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
  }

  async #signIn(): Promise<string> {
    const { headers } = await call(`${this.admin}/login`, {
      method: 'POST',
      body: new URLSearchParams({ token: this.#token }),
      redirect: 'manual',
    });
    return (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  }

  said(pattern: RegExp): Line[] {
    return this.lines.filter(({ msg }) => pattern.test(msg));
  }
}

export async function until(
  what: string,
  done: () => Promise<boolean> | boolean,
  ms = 30_000,
): Promise<void> {
  const late = Date.now() + ms;
  while (!(await done())) {
    if (Date.now() > late) throw new Error(`it did not happen: ${what}`);
    await new Promise(resolve => setTimeout(resolve, 200));
  }
}
