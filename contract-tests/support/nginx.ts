import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from './free-port.js';

const NGINX = '/usr/sbin/nginx';
const START_MS = 10_000;

/** Why there is no nginx; undefined if there is one. */
export const noNginx = existsSync(NGINX) ? undefined : `there is no ${NGINX} (apt-get install nginx-light)`;

/** nginx in front of a server, with its defaults. */
export async function openNginx(target: string): Promise<{ url: string; close: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'nginx-'));
  const port = await freePort();
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off;
pid ${folder}/pid;
error_log ${folder}/error.log;
events {}
http {
  access_log off;
${places.map(each => `  ${each}_temp_path ${folder}/${each};`).join('\n')}
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass ${target}; }
  }
}
`,
  );
  const child = spawn(NGINX, ['-e', join(folder, 'error.log'), '-c', join(folder, 'nginx.conf')], {
    stdio: 'ignore',
  });
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
    throw new Error('nginx does not start');
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
