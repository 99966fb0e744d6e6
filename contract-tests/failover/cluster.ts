import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { until } from '../support/faults.js';
import { freePort } from '../support/free-port.js';
import { POSTGRES_BIN } from '../support/postgres-programs.js';
import { Machine } from './machine.js';

const HEALTHY_MS = 120_000;
const NEEDED = {
  etcd: '/usr/bin/etcd',
  patroni: '/usr/bin/patroni',
  'PostgreSQL 15': join(POSTGRES_BIN, 'postgres'),
};

/** The programs that are missing on this machine. */
export const missing = (): string[] =>
  Object.entries(NEEDED).flatMap(([name, file]) => (existsSync(file) ? [] : [name]));

/** Two machines, a primary and its synchronous standby, and an etcd on a third. */
export class Cluster {
  readonly machines: [Machine, Machine];
  readonly #folder: string;
  readonly #etcd: ChildProcess;

  private constructor(folder: string, etcd: ChildProcess, machines: [Machine, Machine]) {
    this.#folder = folder;
    this.#etcd = etcd;
    this.machines = machines;
  }

  static async open(): Promise<Cluster> {
    const folder = await mkdtemp(join(tmpdir(), 'coinslot-failover-'));
    await chmod(folder, 0o755);
    const [client, peer] = [await freePort(), await freePort()];
    const at = (port: number): string => `http://127.0.0.1:${port}`;
    const etcd = spawn(
      '/usr/bin/etcd',
      [
        ...['--name', 'etcd', '--data-dir', join(folder, 'etcd'), '--log-level', 'error', '--enable-v2'],
        ...['--listen-client-urls', at(client), '--advertise-client-urls', at(client)],
        ...['--listen-peer-urls', at(peer), '--initial-advertise-peer-urls', at(peer)],
        ...['--initial-cluster', `etcd=${at(peer)}`],
      ],
      { stdio: 'ignore' },
    );
    await until('etcd answers', () =>
      fetch(`${at(client)}/health`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
    const one = await Machine.open('one', folder, client);
    await until('there is a primary', async () => (await one.state())?.role === 'master', HEALTHY_MS);
    const cluster = new Cluster(folder, etcd, [one, await Machine.open('two', folder, client)]);
    await cluster.healthy();
    return cluster;
  }

  /** A database of the cluster. @param aside whether to use the routes that stay open when a machine is cut off from the others */
  url(database: string, aside = false): string {
    const hosts = this.machines.map(machine => `127.0.0.1:${aside ? machine.aside.port : machine.port}`);
    return `postgres://postgres@${hosts.join(',')}/${database}?target_session_attrs=read-write`;
  }

  async primary(): Promise<Machine | undefined> {
    const states = await Promise.all(this.machines.map(machine => machine.state()));
    const primaries = this.machines.filter((_, at) => states[at]?.role === 'master');
    return primaries.length === 1 ? primaries[0] : undefined;
  }

  /** Waits until there is a primary with a synchronous standby. @returns both */
  async healthy(): Promise<{ primary: Machine; standby: Machine }> {
    let primary: Machine | undefined;
    await until(
      'a primary has its synchronous standby',
      async () => {
        primary = await this.primary();
        const standbys = (await primary?.state())?.replication ?? [];
        return standbys.some(({ sync_state, state }) => sync_state === 'sync' && state === 'streaming');
      },
      HEALTHY_MS,
    );
    const [one, two] = this.machines;
    return primary === one ? { primary: one, standby: two } : { primary: two, standby: one };
  }

  async createDatabase(name: string): Promise<void> {
    const { primary } = await this.healthy();
    const client = new pg.Client({
      connectionString: `postgres://postgres@127.0.0.1:${primary.port}/postgres`,
    });
    await client.connect();
    await client.query(`create database ${name}`);
    await client.end();
  }

  async close(): Promise<void> {
    for (const machine of this.machines) machine.close();
    this.#etcd.kill('SIGKILL');
    await rm(this.#folder, { recursive: true, force: true });
  }
}
