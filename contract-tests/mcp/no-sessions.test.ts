import { expect } from 'chai';
import { mcp } from '../support/mcp-call.js';
import { openWorld, type World } from '../support/world.js';

describe('MCP without sessions', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await openWorld();
  });
  after(() => world.close());

  it('a handshake leaves nothing behind: no session is named, and a made-up one changes nothing', async () => {
    const answer = await fetch(`${world.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
      }),
    });
    expect(answer.status).to.equal(200);
    expect(answer.headers.get('mcp-session-id')).to.equal(null);
    await answer.arrayBuffer();
    const made: Record<string, string> = { 'mcp-session-id': 'made-up' };
    for (const headers of [{}, made]) {
      const { status, message } = await mcp(world.url, 'tools/list', {}, headers);
      expect(status).to.equal(200);
      expect(message.result?.tools).to.have.length.greaterThan(0);
    }
  });
});
