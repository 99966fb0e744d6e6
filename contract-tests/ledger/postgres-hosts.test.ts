import { expect } from 'chai';
import type pg from 'pg';
import { PostgresHosts } from '../../src/ledger/engines/postgres-hosts.js';
import { fakePostgres, type FakePostgres } from '../support/fake-postgres.js';
import { freePort } from '../support/free-port.js';
import { until } from '../support/faults.js';

const KEPT = { connectionTimeoutMillis: 4_000 };
const portOf = ({ host }: FakePostgres): number => Number(host.split(':')[1]);

describe('several PostgreSQL servers in one URL', () => {
  let one: FakePostgres;
  let two: FakePostgres;
  let clients: pg.Client[];

  beforeEach(async () => {
    one = await fakePostgres(true);
    two = await fakePostgres(false);
    clients = [];
  });
  afterEach(async () => {
    for (const client of clients) client.connection.stream.destroy();
    await Promise.all([one.close(), two.close()]);
  });

  const urlOf = (...hosts: string[]): string => `postgres://user@${hosts.join(',')}/ledger`;
  const connected = async (hosts: PostgresHosts): Promise<pg.Client> => {
    const client = new hosts.Client(KEPT);
    client.on('error', () => undefined);
    clients.push(client);
    return client.connect();
  };
  const failure = async (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'it did not fail',
      (error: Error) => error.message,
    );

  for (const [place, urls] of [
    ['first', () => urlOf(one.host, two.host)],
    ['last', () => urlOf(two.host, one.host)],
    ['only', () => urlOf(one.host)],
  ] as const)
    it(`lead to the primary if it is the ${place} of them`, async () => {
      const { port } = await connected(new PostgresHosts(`${urls()}?target_session_attrs=read-write`));
      expect(port).to.equal(portOf(one));
    });

  it('lead to the primary if another one is down', async () => {
    const hosts = new PostgresHosts(urlOf(`127.0.0.1:${await freePort()}`, one.host));
    expect((await connected(hosts)).port).to.equal(portOf(one));
  });

  it('lead to the primary immediately if another one accepts connections but does not answer', async () => {
    two.isFrozen = true;
    const began = performance.now();
    expect((await connected(new PostgresHosts(urlOf(two.host, one.host)))).port).to.equal(portOf(one));
    expect(performance.now() - began).to.be.below(1_000);
  });

  it('are all named, each with its error, if none can be written to', async () => {
    const gone = `127.0.0.1:${await freePort()}`;
    one.isFrozen = true;
    const said = await failure(connected(new PostgresHosts(urlOf(gone, two.host, one.host))));
    expect(said).to.match(new RegExp(`${gone}: .*; ${two.host}: is read-only; ${one.host}: timeout`));
  });

  it('lead to the server that took over, and no connection to a frozen primary is kept', async () => {
    const hosts = new PostgresHosts(urlOf(one.host, two.host));
    await connected(hosts);
    const [asking] = [await connected(hosts)];
    one.isFrozen = true;
    two.isPrimary = true;
    const query = { text: 'select', query_timeout: 200 };
    expect(await failure(asking.query(query))).to.match(/timeout/);
    asking.connection.stream.destroy();
    await until('both connections were cut', () => one.connections() === 0);
    one.isFrozen = false;
    expect((await connected(hosts)).port).to.equal(portOf(two));
  });

  it('keep their other connections when one connection breaks, if the primary is still the same', async () => {
    const hosts = new PostgresHosts(urlOf(one.host, two.host));
    await connected(hosts);
    (await connected(hosts)).connection.stream.destroy();
    await until('it is gone', () => one.connections() === 1);
    expect((await connected(hosts)).port).to.equal(portOf(one));
    expect(one.connections()).to.equal(2);
  });

  it('work for a connection of a pool, which passes a callback', async () => {
    const hosts = new PostgresHosts(urlOf(two.host, one.host));
    const client = new hosts.Client(KEPT);
    clients.push(client);
    await new Promise<void>((resolve, reject) =>
      client.connect((error: Error) => (error ? reject(error) : resolve())),
    );
    expect(client.port).to.equal(portOf(one));
    two.isPrimary = false;
    one.isPrimary = false;
    const other = new PostgresHosts(urlOf(two.host, one.host));
    const late = new other.Client(KEPT);
    const said = await new Promise<Error>(resolve => late.connect((error: Error) => resolve(error)));
    expect(said.message).to.include('read-only');
  });

  it('are refused with an attribute that is wrong for a ledger', () => {
    const standby = (): unknown =>
      new PostgresHosts(`${urlOf(one.host, two.host)}?target_session_attrs=standby`);
    expect(standby).to.throw('The ledger needs target_session_attrs=read-write, not standby.');
  });
});
