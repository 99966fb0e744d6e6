import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Labeler = { answer: string; id?: string; age?: string };
type FakeJob = {
  jobId: string;
  name: string;
  definitionId: string;
  state: string;
  votes: number;
  labelers: Labeler[];
  listed: boolean;
  createdAt: string;
};

export type FakeRapidata = {
  url: string;
  /** Method and path, without query, of every call but those for tokens. */
  calls: string[];
  jobs: FakeJob[];
  definitions: Map<string, { name: string; votes: number; question: string; datasetId: string }>;
  tokens: number;
  pricePerResponse: number;
  /** Answers of 409 before a definition has a price. */
  unpriced: number;
  /** Looked at before every call: an answer here is sent instead; `hang up` closes the connection. */
  before:
    | ((
        call: string,
        job: FakeJob | undefined,
      ) => { status: number; headers?: Record<string, string> } | 'hang up' | undefined)
    | undefined;
  /** Looked at after a call was carried out: true closes the connection instead of answering. */
  loseAnswer: ((call: string) => boolean) | undefined;
  /** What a new job finds when it starts. */
  onJob: ((job: FakeJob) => void) | undefined;
  expireTokens(): void;
  close(): Promise<void>;
};

function send(
  response: ServerResponse,
  status: number,
  value?: unknown,
  headers: Record<string, string> = {},
): void {
  const body = value === undefined ? '' : JSON.stringify(value);
  response
    .writeHead(status, { ...(body ? { 'content-type': 'application/json' } : {}), ...headers })
    .end(body);
}

async function readBody(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

function field(body: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], body);
}

/** Refuses what the published schemas would not allow. */
function wrong(body: unknown, shape: Record<string, string>): string | undefined {
  return Object.entries(shape).find(([path, wanted]) => {
    const value = field(body, path);
    return wanted.startsWith('=') ? value !== wanted.slice(1) : typeof value !== wanted;
  })?.[0];
}

const SHAPES: Record<string, Record<string, string>> = {
  'POST /dataset': { name: 'string' },
  'POST /dataset/:/datapoint': { 'asset._t': '=TextAssetInput', 'asset.text': 'string' },
  'POST /job/definition': {
    definitionName: 'string',
    datasetId: 'string',
    'workflow._t': '=SimpleWorkflow',
    'workflow.blueprint._t': '=FreeTextBlueprint',
    'workflow.blueprint.question': 'string',
    'referee._t': '=NaiveReferee',
    'referee.totalVotes': 'number',
  },
  'POST /job': { jobDefinitionId: 'string', audienceId: 'string', name: 'string' },
};

/** Rapidata's API as far as `openapi/schemas/` of RapidataAI/rapidata-python-sdk describes what we use of it. */
export async function startFakeRapidata(): Promise<FakeRapidata> {
  let serial = 0;
  let valid = '';
  const fake: FakeRapidata = {
    url: '',
    calls: [],
    jobs: [],
    definitions: new Map(),
    tokens: 0,
    pricePerResponse: 0.02,
    unpriced: 0,
    before: undefined,
    loseAnswer: undefined,
    onJob: undefined,
    expireTokens: () => (valid = ''),
    close: async () => {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
  const next = (prefix: string) => `${prefix}_${++serial}`;

  function results(job: FakeJob): unknown {
    const detailedResults = job.labelers.map(({ answer, id, age = 'Unknown' }, index) => ({
      answer,
      userDetails: {
        ...(id ? { id } : {}),
        country: 'CH',
        language: 'en',
        age,
        userScores: { global: 0.4 + index / 1_000 },
      },
    }));
    return { info: { version: '3.0.0' }, results: [{ detailedResults }] };
  }

  function create(key: string, body: unknown): unknown {
    if (key === 'POST /dataset') return { datasetId: next('dat') };
    if (key === 'POST /dataset/:/datapoint') return { datapointId: next('dp') };
    if (key === 'POST /job/definition') {
      const definitionId = next('def');
      const text = (path: string) => field(body, path) as string;
      fake.definitions.set(definitionId, {
        name: text('definitionName'),
        votes: field(body, 'referee.totalVotes') as number,
        question: text('workflow.blueprint.question'),
        datasetId: text('datasetId'),
      });
      return { definitionId, pipelineId: next('pip') };
    }
    const definitionId = field(body, 'jobDefinitionId') as string;
    const job: FakeJob = {
      jobId: next('job'),
      name: field(body, 'name') as string,
      definitionId,
      state: 'Running',
      votes: fake.definitions.get(definitionId)?.votes ?? 0,
      labelers: [],
      listed: true,
      createdAt: new Date(1_700_000_000_000 + serial * 1_000).toISOString(),
    };
    fake.jobs.push(job);
    fake.onJob?.(job);
    return { jobId: job.jobId, recruitingStarted: false };
  }

  function read(
    key: string,
    id: string,
    query: URLSearchParams,
    job: FakeJob | undefined,
  ): [number, unknown?] {
    if (key === 'GET /job/definition/:/cost-estimate') {
      const definition = fake.definitions.get(id);
      if (!definition) return [404];
      if (fake.unpriced-- > 0) return [409];
      const costPerResponse = fake.pricePerResponse;
      return [
        200,
        {
          estimatedCost: costPerResponse * definition.votes,
          costPerResponse,
          datapointCount: 1,
          requiredResponses: definition.votes,
        },
      ];
    }
    if (key === 'GET /jobs') {
      const items = fake.jobs.filter(
        ({ listed, name }) => listed && name === (query.get('name[eq]') ?? name),
      );
      return [
        200,
        {
          total: items.length,
          page: 1,
          pageSize: 20,
          items: items.map(({ jobId, name, state, createdAt }) => ({ jobId, name, state, createdAt })),
        },
      ];
    }
    if (key === 'POST /pipeline/:/preliminary-download')
      return [200, { downloadId: id.replace('pip', 'dl') }];
    const owner = job ?? fake.jobs.find(({ jobId }) => jobId === id.replace(/^(dl|pip)-/, ''));
    if (!owner) return [404];
    if (key === 'GET /pipeline/preliminary-download/:') return [200, results(owner)];
    if (key === 'GET /job/:')
      return [
        200,
        { jobId: owner.jobId, name: owner.name, state: owner.state, pipelineId: `pip-${owner.jobId}` },
      ];
    if (key === 'GET /job/:/progress')
      return [
        200,
        {
          completionPercentage: (100 * owner.labelers.length) / owner.votes,
          total: 1,
          completed: 0,
          state: 'Labeling',
        },
      ];
    if (key === 'GET /job/:/download-results')
      return owner.state === 'Completed' ? [200, results(owner)] : [404];
    if (key === 'POST /job/:/pause') {
      if (owner.state !== 'Running') return [400, { title: 'not running' }];
      owner.state = 'Paused';
      return [204];
    }
    return [404];
  }

  function issueToken(text: string, response: ServerResponse): void {
    const form = new URLSearchParams(text);
    if (form.get('grant_type') !== 'client_credentials' || form.get('client_secret') !== 'secret')
      return send(response, 400, { error: 'invalid_client' });
    fake.tokens++;
    valid = next('token');
    send(response, 200, { access_token: valid, token_type: 'Bearer', expires_in: 3_600 });
  }

  function write(key: string, text: string): [number, unknown] {
    const body: unknown = JSON.parse(text);
    const bad = wrong(body, SHAPES[key] ?? {});
    return bad ? [400, { title: `${bad} is wrong` }] : [200, create(key, body)];
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://x');
    const text = await readBody(request);
    if (url.pathname === '/connect/token') return issueToken(text, response);
    const id = /\/((?:job|def|dat|dp|pip|dl)[_-][\w-]+)/.exec(url.pathname)?.[1] ?? '';
    const key = `${request.method} ${id ? url.pathname.replace(id, ':') : url.pathname}`;
    fake.calls.push(`${request.method} ${url.pathname}`);
    const job = fake.jobs.find(({ jobId }) => jobId === id);
    const instead = fake.before?.(key, job);
    if (instead === 'hang up') return void request.socket.destroy();
    if (instead) return send(response, instead.status, { title: 'no' }, instead.headers);
    if (request.headers.authorization !== `Bearer ${valid}`) return send(response, 401);
    const [status, value] = SHAPES[key] ? write(key, text) : read(key, id, url.searchParams, job);
    if (fake.loseAnswer?.(key)) return void request.socket.destroy();
    send(response, status, value);
  }

  const server: Server = createServer((request, response) => void handle(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  fake.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return fake;
}
