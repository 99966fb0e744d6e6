import { expect } from 'chai';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { audit, readAccepted, type Audited } from './audit.js';

const ID = 'GHSA-aaaa-bbbb-cccc';
const ADVISORY = {
  id: 1,
  url: `https://github.com/advisories/${ID}`,
  title: 'It opens every door',
  severity: 'high',
  vulnerable_versions: '<2.0.0',
};
const MANIFEST = { name: 'audited', version: '1.0.0', dependencies: { door: '1.0.0' } };

describe('make audit', function () {
  this.timeout(30_000);
  let folder: string;
  let registry: Server;
  let status = 200;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'audited-'));
    writeFileSync(join(folder, 'package.json'), JSON.stringify(MANIFEST));
    const packages = { '': MANIFEST, 'node_modules/door': { version: '1.0.0' } };
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ lockfileVersion: 3, packages }));
    registry = createServer((request, response) => {
      request.resume().on('end', () => {
        const isBulk = request.url?.endsWith('/advisories/bulk') === true;
        response.writeHead(isBulk ? status : 404, { 'content-type': 'application/json' });
        response.end(JSON.stringify(isBulk && status === 200 ? { door: [ADVISORY] } : {}));
      });
    }).listen(0, '127.0.0.1');
    await once(registry, 'listening');
  });
  afterEach(() => (status = 200));
  after(() => {
    registry.closeAllConnections();
    registry.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function run(until?: string): Promise<Audited> {
    const { port } = registry.address() as AddressInfo;
    const accepted = until === undefined ? [] : [{ id: ID, reason: 'nobody opens it', until }];
    const env = {
      ...process.env,
      npm_config_registry: `http://127.0.0.1:${port}/`,
      npm_config_fetch_retries: '0',
    };
    return audit(folder, accepted, '2026-11-24', env);
  }

  it('fails on an advisory that has not been accepted', async () => {
    const { kind, lines } = await run();
    expect([kind, lines.join()]).to.deep.equal(['failed', `${ID} door, high: It opens every door`]);
  });

  it('passes with an accepted advisory until its date, and gives the reason', async () => {
    const { kind, lines } = await run('2026-11-24');
    expect([kind, lines.join()]).to.deep.equal([
      'passed',
      `${ID} door, high: accepted until 2026-11-24: nobody opens it`,
    ]);
    expect((await run('2026-11-23')).kind).to.equal('failed');
  });

  it('is reported as skipped, with the reason, if the registry returns no advisories', async () => {
    status = 405;
    const { kind, lines } = await run();
    expect(kind).to.equal('skipped');
    expect(lines.join()).to.contain('405 Method Not Allowed');
  });

  it('reads a list in which every accepted advisory has a reason and a date', () => {
    for (const { id, reason, until } of readAccepted()) {
      expect(id).to.match(/^GHSA(-[23456789cfghjmpqrvwx]{4}){3}$/);
      expect(reason).to.have.length.greaterThan(20);
      expect(until).to.match(/^\d{4}-\d{2}-\d{2}$/);
    }
  });
});
