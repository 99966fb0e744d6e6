import { spawn } from 'node:child_process';
import { chownSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../support/free-port.js';
import { asPostgres, POSTGRES_BIN } from '../support/postgres-programs.js';
import { cuttableProxy, type CuttableProxy } from './cuttable-proxy.js';

/** The lease of the primary: without renewal, the machine counts as lost. */
export const TTL_SECONDS = 10;

type Ports = { postgres: number; rest: number };
type Outer = Record<'postgres' | 'front' | 'rest' | 'etcd', CuttableProxy>;

/**
 * One machine with PostgreSQL and Patroni, simulated by processes. Connections from other machines, and from its
 * Patroni to etcd, go through proxies that can be cut.
 */
export class Machine {
  readonly name: string;
  readonly #folder: string;
  readonly #inner: Ports;
  readonly #outer: Outer;
  /** A route to its PostgreSQL that stays open when the machine is cut off from the others. */
  readonly aside: CuttableProxy;
  #patroni: number | undefined;

  private constructor(name: string, folder: string, inner: Ports, outer: Outer, aside: CuttableProxy) {
    this.name = name;
    this.#folder = folder;
    this.#inner = inner;
    this.#outer = outer;
    this.aside = aside;
  }

  static async open(name: string, folder: string, etcd: number): Promise<Machine> {
    const inner = { postgres: await freePort(), rest: await freePort() };
    const outer = {
      postgres: await cuttableProxy(inner.postgres),
      front: await cuttableProxy(inner.postgres),
      rest: await cuttableProxy(inner.rest),
      etcd: await cuttableProxy(etcd),
    };
    const machine = new Machine(name, join(folder, name), inner, outer, await cuttableProxy(inner.postgres));
    machine.#configure();
    machine.start();
    return machine;
  }

  /** The address at which the shop's servers reach its PostgreSQL unless it is cut off. */
  get port(): number {
    return this.#outer.front.port;
  }

  /** The status of its Patroni, by a route that is never cut. @returns undefined if it does not answer */
  async state(): Promise<
    { role?: string; replication?: { sync_state?: string; state?: string }[] } | undefined
  > {
    try {
      const answer = await fetch(`http://127.0.0.1:${this.#inner.rest}/patroni`, {
        signal: AbortSignal.timeout(1_000),
      });
      return (await answer.json()) as { role?: string };
    } catch {
      return undefined;
    }
  }

  start(): void {
    const log = openSync(join(this.#folder, 'patroni.log'), 'a');
    const child = spawn('patroni', [join(this.#folder, 'patroni.json')], {
      stdio: ['ignore', log, log],
      env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C.UTF-8' },
      detached: true,
      cwd: this.#folder,
      ...asPostgres(),
    });
    this.#patroni = child.pid;
  }

  kill(): void {
    // The first round kills parents before their children. The second round kills what they started during the first.
    for (let time = 0; time < 2; time += 1) this.#signal('SIGKILL');
  }

  freeze(): void {
    for (let time = 0; time < 2; time += 1) this.#signal('SIGSTOP');
  }

  thaw(): void {
    this.#signal('SIGCONT');
  }

  cut(): void {
    for (const proxy of Object.values(this.#outer)) proxy.cut();
  }

  heal(): void {
    for (const proxy of Object.values(this.#outer)) proxy.heal();
  }

  close(): void {
    this.kill();
    for (const proxy of [...Object.values(this.#outer), this.aside]) proxy.close();
  }

  #signal(signal: NodeJS.Signals): void {
    const roots = [this.#patroni, this.#postmaster()].filter(pid => pid !== undefined);
    for (const pid of familyOf(roots))
      try {
        process.kill(pid, signal);
      } catch {
        // It has ended.
      }
  }

  #postmaster(): number | undefined {
    try {
      const pid = Number(
        readFileSync(join(this.#folder, 'data', 'postmaster.pid'), 'utf8').split('\n', 1)[0],
      );
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(this.#folder) ? pid : undefined;
    } catch {
      return undefined;
    }
  }

  #configure(): void {
    mkdirSync(this.#folder, { mode: 0o700 });
    const file = join(this.#folder, 'patroni.json');
    writeFileSync(file, JSON.stringify(this.#settings(), null, 1));
    const { uid, gid } = asPostgres();
    if (uid !== undefined && gid !== undefined)
      for (const path of [this.#folder, file]) chownSync(path, uid, gid);
  }

  /** JSON is YAML. */
  #settings(): object {
    const { postgres, rest, etcd } = this.#outer;
    const local = (port: number): string => `127.0.0.1:${port}`;
    const parameters = {
      max_connections: 100,
      shared_buffers: '32MB',
      unix_socket_directories: '',
      wal_log_hints: 'on',
    };
    return {
      scope: 'coinslot',
      name: this.name,
      restapi: { listen: local(this.#inner.rest), connect_address: local(rest.port) },
      etcd: { hosts: [local(etcd.port)], use_proxies: true },
      bootstrap: {
        dcs: {
          ttl: TTL_SECONDS,
          loop_wait: 2,
          retry_timeout: 3,
          synchronous_mode: true,
          postgresql: { use_pg_rewind: true, parameters },
        },
        initdb: [{ encoding: 'UTF8' }, { 'auth-host': 'trust' }],
      },
      postgresql: {
        listen: local(this.#inner.postgres),
        connect_address: local(postgres.port),
        data_dir: join(this.#folder, 'data'),
        bin_dir: POSTGRES_BIN,
        pgpass: join(this.#folder, 'pgpass'),
        pg_hba: ['host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust'],
        authentication: {
          superuser: { username: 'postgres' },
          replication: { username: 'replicator', password: 'replicator' },
        },
      },
    };
  }
}

/** Processes, and all their descendants. */
function familyOf(roots: number[]): number[] {
  const parents = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(name => [Number(name), parentOf(name)] as const);
  const family = [...roots];
  for (const member of family)
    for (const [pid, parent] of parents) if (parent === member && !family.includes(pid)) family.push(pid);
  return family;
}

function parentOf(pid: string): number {
  try {
    return Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  } catch {
    return 0;
  }
}
