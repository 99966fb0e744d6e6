import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from './free-port.js';

const START_MS = 10_000;

export type Proxy = { url: string; close: () => Promise<void> };
export type ProxyName = 'nginx' | 'haproxy' | 'caddy';

/** How to run a proxy from Debian in the foreground with a configuration file. */
const PROGRAMS: Record<ProxyName, { binary: string; pack: string; args: (file: string) => string[] }> = {
  nginx: {
    binary: '/usr/sbin/nginx',
    pack: 'nginx-light',
    args: file => ['-e', `${file}.log`, '-c', file],
  },
  haproxy: { binary: '/usr/sbin/haproxy', pack: 'haproxy', args: file => ['-db', '-f', file] },
  caddy: {
    binary: '/usr/bin/caddy',
    pack: 'caddy',
    args: file => ['run', '--adapter', 'caddyfile', '--config', file],
  },
};

/** Why this proxy can't run here, or undefined. */
export function noProxy(name: ProxyName): string | undefined {
  const { binary, pack } = PROGRAMS[name];
  return existsSync(binary) ? undefined : `there is no ${binary} (apt-get install ${pack})`;
}

/** nginx with its defaults, in front of a server. */
export function openNginx(target: string): Promise<Proxy> {
  return openProxy('nginx', (port, folder) =>
    nginxWith(folder, `server { listen 127.0.0.1:${port}; location / { proxy_pass ${target}; } }`),
  );
}

/** HAProxy with its defaults, in front of a server. */
export function openHaproxy(target: string): Promise<Proxy> {
  return openProxy(
    'haproxy',
    port => `defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
listen all
  bind 127.0.0.1:${port}
  server one ${new URL(target).host}
`,
  );
}

/** Servers that have different addresses and the same ports. */
export type Beside = { hosts: readonly string[]; port: number; ready: number };

/** HAProxy with the file from ops/, in front of several servers, whose readiness it checks at their admin listeners. */
export function openHaproxyOver({ hosts, port, ready }: Beside): Promise<Proxy> {
  const lines = hosts.map(
    (host, index) =>
      `  server s${index} ${host}:${port} check port ${ready}\n  server i${index} ${host}:${port} backup`,
  );
  return openProxy('haproxy', own =>
    opsFile('haproxy.cfg', own, { ...HAPROXY_PLACE, [HAPROXY_SERVERS]: lines.join('\n') }),
  );
}

/**
 * Caddy with the file that compose.yaml uses, in front of several servers, whose readiness it checks at their
 * admin listeners.
 */
export function openCaddyOver({ hosts, port, ready }: Beside): Promise<Proxy> {
  const servers = hosts.map(host => `${host}:${port}`).join(' ');
  return openProxy('caddy', own =>
    opsFile('compose/Caddyfile', own, {
      '{$DOMAIN}': 'http://127.0.0.1:PORT',
      'reverse_proxy server-1:8402 server-2:8402': `reverse_proxy ${servers}`,
      'reverse_proxy @none server-1:8402 server-2:8402': `reverse_proxy @none ${servers}`,
      'health_port 8404': `health_port ${ready}`,
    }),
  );
}

/** Caddy configured to forward each byte immediately, and not to pass hang-ups on to the server. */
export function openFlushingCaddy(target: string): Promise<Proxy> {
  return openProxy(
    'caddy',
    port =>
      `{\n\tadmin off\n}\nhttp://127.0.0.1:${port} {\n\treverse_proxy ${new URL(target).host} {\n\t\tflush_interval -1\n\t}\n}\n`,
  );
}

/**
 * A proxy in front of a server, configured by its file in ops/, but on a free port, without TLS and without the
 * readiness check. @throws Error if the file no longer has the text to replace
 */
export function openWithOps(name: ProxyName, target: string): Promise<Proxy> {
  const at = { '127.0.0.1:8402': new URL(target).host };
  return openProxy(name, (port, folder) => {
    if (name === 'nginx')
      return nginxWith(
        folder,
        opsFile('nginx.conf', port, {
          ...at,
          '  listen 80;': `  listen unix:${folder}/redirect;`,
          '  listen 443 ssl http2;': '  listen 127.0.0.1:PORT;',
          '  ssl_certificate /etc/letsencrypt/live/api.example.com/fullchain.pem;\n': '',
          '  ssl_certificate_key /etc/letsencrypt/live/api.example.com/privkey.pem;\n': '',
        }),
      );
    if (name === 'haproxy')
      return opsFile('haproxy.cfg', port, {
        ...HAPROXY_PLACE,
        [HAPROXY_SERVERS]: `  server first ${at['127.0.0.1:8402']}`,
      });
    return `{\n\tadmin off\n}\n${opsFile('Caddyfile', port, { ...at, '\napi.example.com {': '\nhttp://127.0.0.1:PORT {' })}`;
  });
}

const HAPROXY_SERVERS = `  server first 127.0.0.1:8402 check port 8404
  server first-itself 127.0.0.1:8402 backup`;
const HAPROXY_PLACE = {
  ':443 ssl crt /etc/haproxy/api.example.com.pem alpn h2,http/1.1': '127.0.0.1:PORT',
};

/** A file from ops/ with some strings replaced. @throws Error if the file no longer contains one of them */
function opsFile(file: string, port: number, replaced: Record<string, string>): string {
  let text = readFileSync(fileURLToPath(new URL(`../../../ops/${file}`, import.meta.url)), 'utf8');
  for (const [from, to] of Object.entries(replaced)) {
    if (!text.includes(from)) throw new Error(`ops/${file} no longer has: ${from}`);
    text = text.replace(from, to.replace('PORT', String(port)));
  }
  return text;
}

function nginxWith(folder: string, servers: string): string {
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return `daemon off;
pid ${folder}/pid;
events {}
http {
  access_log off;
${places.map(each => `  ${each}_temp_path ${folder}/${each};`).join('\n')}
${servers}
}
`;
}

async function openProxy(
  name: ProxyName,
  configuration: (port: number, folder: string) => string,
): Promise<Proxy> {
  const { binary, args } = PROGRAMS[name];
  const folder = await mkdtemp(join(tmpdir(), `${name}-`));
  const port = await freePort();
  const file = join(folder, 'configuration');
  await writeFile(file, configuration(port, folder));
  const child = spawn(binary, args(file), {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  });
  let said = '';
  child.stderr.on('data', chunk => (said = `${said}${String(chunk)}`.slice(-2_000)));
  const close = async (): Promise<void> => {
    if (child.exitCode === null) {
      child.kill();
      await once(child, 'exit');
    }
    await rm(folder, { recursive: true, force: true });
  };
  for (const end = Date.now() + START_MS; !(await answers(port)); await pause(50)) {
    if (Date.now() < end && child.exitCode === null) continue;
    await close();
    throw new Error(`${name} does not start: ${said}`);
  }
  return { url: `http://127.0.0.1:${port}`, close };
}

function answers(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(socket.destroy() !== undefined));
    socket.once('error', () => resolve(false));
  });
}
