import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isDeepStrictEqual } from 'node:util';

type Json = Record<string, unknown>;
type Job = { jobId: string; secret: string; winners: number; description: string; transaction: string };

/** How the stand-in is paid: the facilitator, the network, and the addresses. */
export type Till = {
  facilitatorUrl: string;
  network: string;
  asset: string;
  payTo: string;
  feePayer: string;
};

/**
 * How far a request got. `price`: a task's price was requested; `connected`: a connection was opened after the price
 * was sent, but nothing has been read from it; `paid`: a payment arrived but is not settled yet; `settled`: it bought a
 * job, but no answer has been sent; `sold`: the job is being sent; `view`: submissions were requested; `viewed`: they
 * are being sent.
 */
export type WurkStep = 'price' | 'connected' | 'paid' | 'settled' | 'sold' | 'view' | 'viewed';

export type FakeWurk = {
  url: string;
  jobs: Job[];
  /** The texts that workers have submitted, by job. */
  submissions: Map<string, string[]>;
  /** Called with each new job, for instance to give it replies. */
  onJob: ((job: Job) => void) | undefined;
  /** The price in the challenge in atomic units, instead of winners × perUser. */
  amount: string | undefined;
  /** Whether the challenge has `extra: {}`, as documented. */
  namesFeePayer: boolean;
  /** Parts of the payment option that replace the usual ones. */
  option: Json;
  /** Whether a payment that is sent again gets the job that it bought; otherwise it is refused as already settled. */
  remembers: boolean;
  /** How many paid requests have arrived. `cut` closes the connection of the next one before or after its payment is settled. */
  paid: number;
  cut: 'before' | 'after' | undefined;
  /** Called at each step of a task; true cuts the connection there. */
  onStep: ((step: WurkStep, description: string) => boolean) | undefined;
  close(): Promise<void>;
};

/** WURK's agent-to-human route over x402, built from its documentation and paid through a facilitator on a real local chain. */
export async function startFakeWurk(till: Till): Promise<FakeWurk> {
  const fake: FakeWurk = {
    ...{ url: '', jobs: [], submissions: new Map(), onJob: undefined, amount: undefined },
    ...{ namesFeePayer: true, option: {}, remembers: true, paid: 0, cut: undefined, onStep: undefined },
    close: async () => {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
  const amountOf = (query: URLSearchParams): string =>
    fake.amount ?? String(Math.round(Number(query.get('winners')) * Number(query.get('perUser')) * 1e6));

  /** The documented v2 challenge, which has `maxAmountRequired` instead of `amount`. */
  const optionFor = (url: URL): Json => ({
    ...{ scheme: 'exact', network: till.network, maxAmountRequired: amountOf(url.searchParams) },
    ...{ resource: url.href, payTo: till.payTo, asset: till.asset, maxTimeoutSeconds: 60 },
    extra: fake.namesFeePayer ? { feePayer: till.feePayer } : {},
    ...fake.option,
  });

  let priced: URL | undefined;
  const cutAt = (step: WurkStep, url: URL): boolean =>
    fake.onStep?.(step, url.searchParams.get('description') ?? '') === true;

  function challenge(response: ServerResponse, url: URL, error = 'Payment required'): void {
    const body = {
      x402Version: 2,
      error,
      resource: { url: url.href },
      accepts: [optionFor(url)],
      extensions: {},
    };
    const text = JSON.stringify(body);
    response
      .writeHead(402, {
        'content-type': 'application/json',
        'payment-required': Buffer.from(text).toString('base64'),
        connection: 'close',
      })
      .end(text);
  }

  async function ask(path: string, body: Json): Promise<Json> {
    const answer = await fetch(till.facilitatorUrl + path, { method: 'POST', body: JSON.stringify(body) });
    return (await answer.json()) as Json;
  }

  async function sell(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    const header = String(request.headers['payment-signature']);
    const payment = JSON.parse(Buffer.from(header, 'base64').toString()) as Json & { payload: Json };
    fake.paid++;
    const { cut } = fake;
    fake.cut = undefined;
    if (cut === 'before' || cutAt('paid', url)) return void request.socket.destroy();
    const transaction = String(payment.payload['transaction']);
    const before = fake.jobs.find(job => job.transaction === transaction);
    if (before && fake.remembers) return send(response, 200, sold(before));
    if (!isDeepStrictEqual(payment['accepted'], optionFor(url)))
      return challenge(response, url, 'it accepts another offer');
    const { maxAmountRequired: amount, ...option } = optionFor(url);
    const requirements = { ...option, amount, extra: { feePayer: till.feePayer } };
    const paymentPayload = { ...payment, accepted: requirements };
    const settled = await ask('/settle', {
      x402Version: 2,
      paymentPayload,
      paymentRequirements: requirements,
    });
    if (settled['success'] !== true || before)
      return challenge(response, url, String(settled['errorReason']));
    const serial = fake.jobs.length + 1;
    const job = {
      ...{ jobId: `job${serial}`, secret: `secret-of-${serial}`, transaction },
      winners: Number(url.searchParams.get('winners')),
      description: url.searchParams.get('description') ?? '',
    };
    fake.jobs.push(job);
    fake.onJob?.(job);
    if (cut === 'after' || cutAt('settled', url)) return void request.socket.destroy();
    send(response, 200, sold(job));
    cutAt('sold', url);
  }

  const sold = ({ jobId, secret }: Job): Json => ({
    ok: true,
    paid: true,
    jobId,
    secret,
    statusUrl: `${fake.url}/x`,
  });

  function view(response: ServerResponse, secret: string | null): void {
    const job = fake.jobs.find(each => each.secret === secret);
    if (!job) return send(response, 404, { ok: false });
    const texts = fake.submissions.get(job.jobId) ?? [];
    const submissions = texts.map((text, at) => ({ id: `sub_${at + 1}`, content_text: text, winner: false }));
    send(response, 200, {
      ok: true,
      jobId: job.jobId,
      submissions,
      page: 1,
      pageSize: 50,
      total: texts.length,
      totalPages: 1,
    });
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', fake.url);
    if (request.method !== 'GET' || url.pathname !== '/solana/agenttohuman') return send(response, 404, {});
    if (url.searchParams.get('action') === 'view') {
      if (cutAt('view', url)) return void request.socket.destroy();
      view(response, url.searchParams.get('secret'));
      return void cutAt('viewed', url);
    }
    if (request.headers['payment-signature'] === undefined) {
      if (cutAt('price', url)) return void request.socket.destroy();
      priced = url;
      return challenge(response, url);
    }
    sell(request, response, url).catch(() => request.socket.destroy());
  });
  server.on('connection', socket => {
    const url = priced;
    priced = undefined;
    if (url && cutAt('connected', url)) socket.destroy();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  fake.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return fake;
}

function send(response: ServerResponse, status: number, value: Json): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}
