import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { openLedger } from '../../src/ledger/store.js';
import { until } from '../support/faults.js';
import { freePort } from '../support/free-port.js';
import { faultOf, OWNER, payment } from '../support/ledgers.js';
import { PLACES } from '../support/ledger-places.js';
import { asPostgres, POSTGRES_BIN } from '../support/postgres-programs.js';

const isHere =
  PLACES.some(({ name, make }) => name === 'PostgreSQL' && make) &&
  existsSync(POSTGRES_BIN) &&
  spawnSync('openssl', ['version']).status === 0;

/** A new certificate authority, and the certificate that it issued to this machine's name, not to its address. */
function certify(folder: string): void {
  const openssl = (...options: string[]): void =>
    void execFileSync('openssl', options, { cwd: folder, stdio: 'ignore' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=an authority');
  openssl('req', ...key, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=localhost');
  writeFileSync(join(folder, 'names'), 'subjectAltName=DNS:localhost');
  const by = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names', '-days', '2'];
  openssl('x509', '-req', '-in', 'server.csr', ...by, '-out', 'server.crt');
}

(isHere ? describe : describe.skip)(
  `ledger on PostgreSQL over TLS${isHere ? '' : ' (set TEST_DATABASE_URL=postgres://…; needs PostgreSQL 15 and openssl)'}`,
  () => {
    let folder: string;
    let port: number;
    let server: ChildProcess;

    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'coinslot-tls-'));
      port = await freePort();
      certify(folder);
      const { uid, gid } = asPostgres();
      if (uid !== undefined && gid !== undefined)
        for (const name of ['.', ...readdirSync(folder)]) chownSync(join(folder, name), uid, gid);
      const data = join(folder, 'data');
      const own = { cwd: folder, stdio: 'ignore', ...asPostgres() } as const;
      execFileSync(join(POSTGRES_BIN, 'initdb'), ['-D', data, '-U', 'postgres', '--no-sync'], own);
      writeFileSync(
        join(data, 'pg_hba.conf'),
        'hostssl all all 127.0.0.1/32 trust\nhostssl all all ::1/128 trust\n',
      );
      const settings = {
        port,
        listen_addresses: 'localhost',
        unix_socket_directories: '',
        fsync: 'off',
        ssl: 'on',
        ssl_cert_file: join(folder, 'server.crt'),
        ssl_key_file: join(folder, 'server.key'),
      };
      const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
      server = spawn(join(POSTGRES_BIN, 'postgres'), ['-D', data, ...options], own);
      await until('it listens', () => existsSync(join(data, 'postmaster.pid')) && openable());
    });
    after(async () => {
      server.kill('SIGQUIT');
      if (server.exitCode === null) await once(server, 'exit');
      rmSync(folder, { recursive: true, force: true });
    });

    const url = (hosts: string, more: string): string => `postgres://postgres@${hosts}/postgres?${more}`;
    const verified = (): string => `sslmode=verify-full&sslrootcert=${join(folder, 'ca.crt')}`;
    const sold = async (at: string): Promise<string> => {
      const ledger = await openLedger({ url: at, ...OWNER });
      return (await ledger.claim(payment()).finally(() => ledger.close())).kind;
    };
    const openable = (): Promise<boolean> =>
      sold(url(`localhost:${port}`, verified())).then(
        () => true,
        () => false,
      );
    const refusal = async (at: string): Promise<string> =>
      (await faultOf(openLedger({ url: at, ...OWNER }))).message;

    it('sells if the certificate is from an authority that sslrootcert names', async () => {
      expect(await sold(url(`localhost:${port}`, verified()))).to.equal('claimed');
    });

    it('sells on the primary of several servers, and checks each certificate against the name of its server', async () => {
      const hosts = `localhost:${await freePort()},localhost:${port}`;
      expect(await sold(url(hosts, `${verified()}&target_session_attrs=read-write`))).to.equal('claimed');
    });

    it('refuses a certificate from an unknown authority', async () => {
      expect(await refusal(url(`localhost:${port}`, 'sslmode=verify-full'))).to.match(/certificate/);
    });

    it('refuses a certificate for another name', async () => {
      expect(await refusal(url(`127.0.0.1:${port}`, verified()))).to.match(/does not match certificate/);
    });

    it('is refused by a server that accepts only TLS, if TLS is not requested', async () => {
      expect(await refusal(url(`localhost:${port}`, ''))).to.match(/no encryption/);
    });
  },
);
