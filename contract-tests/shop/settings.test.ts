import { expect } from 'chai';
import { SettingReader } from '../../src/config/setting-reader.js';
import { openHandlers } from '../../src/shop/open-handlers.js';
import { readSettings, setting, settingsInWords, tokensSet, withSettings } from '../../src/shop/settings.js';
import { settingFaults } from '../support/setting-faults.js';

const SETTINGS = {
  url: setting.url('TEA_URL', 'who brews'),
  key: setting.text('TEA_KEY', 'the key', { secret: true, pattern: /^k/, form: 'a key' }),
  kind: setting.oneOf('TEA_KIND', 'the leaves', { values: ['green', 'black'], default: 'green' }),
  cups: setting.integer('TEA_CUPS', 'at a time', { min: 1, max: 9, default: 2 }),
};
type Values = { url: string | undefined; key: string | undefined; kind: string; cups: number };

const entryOf = (seen: Values[], closed: string[] = []) =>
  withSettings(
    SETTINGS,
    ({ settings, shared }) => {
      seen.push(settings);
      shared(made);
      return {
        call: async () => ({ status: 200, body: {} }),
        health: async () => {},
        close: async () => void closed.push('closed'),
      };
    },
    ({ url, key }) => (key !== undefined && url === undefined ? ['TEA_KEY: needs TEA_URL'] : []),
  );

let times = 0;
const made = (): number => (times += 1);
const CONTEXT = {} as Parameters<typeof openHandlers>[3];

function open(handlers: Parameters<typeof openHandlers>[1], env: Record<string, string> = {}) {
  const reader = new SettingReader(env);
  const settings = readSettings(handlers, reader, 'sandbox');
  reader.finish();
  return openHandlers({ paid: [], free: [{ id: 'sold', path: '/sold/{id}' }] }, handlers, settings, CONTEXT);
}

describe('The settings that an operation declares', () => {
  it('reach it with their types and defaults', async () => {
    const seen: Values[] = [];
    await open({ tea: entryOf(seen) });
    await open(
      { tea: entryOf(seen) },
      { TEA_URL: 'http://a/', TEA_KEY: 'k1', TEA_KIND: 'black', TEA_CUPS: '3' },
    );
    expect(seen).to.deep.equal([
      { url: undefined, key: undefined, kind: 'green', cups: 2 },
      { url: 'http://a', key: 'k1', kind: 'black', cups: 3 },
    ]);
  });

  it('are all reported at once if they are invalid, each by name, and without the values of secrets', () => {
    const env = { TEA_URL: 'nowhere', TEA_KEY: 'password', TEA_KIND: 'red', TEA_CUPS: '10' };
    const faults = settingFaults(entryOf([]), env);
    expect(faults.map(fault => fault.split(':')[0])).to.deep.equal([
      ...['TEA_URL', 'TEA_KEY', 'TEA_KIND', 'TEA_CUPS', 'TEA_KEY'],
    ]);
    expect(faults.join()).not.to.contain('password');
  });

  it('are shown to the operator without secrets', () => {
    const reader = new SettingReader({ TEA_URL: 'https://me:password@a/b', TEA_KEY: 'kept' });
    const [line] = settingsInWords({ tea: entryOf([]), plain: () => ({}) } as never, reader);
    expect(line).to.deep.equal({
      id: 'tea',
      found: 'TEA_URL=https://a/b, TEA_KEY is set, TEA_KIND is not set, TEA_CUPS is not set',
    });
  });
});

describe('The token of a page', () => {
  const entry = withSettings({ token: setting.token('PAGE_TOKEN', 'signs people in') }, () => ({
    call: async () => ({ status: 200, body: {} }),
  }));
  const LONG = 'a-token-that-nobody-guesses';

  it("is long, and differs from the operator's", () => {
    expect(settingFaults(entry, { PAGE_TOKEN: 'short' }).join()).to.include(
      'PAGE_TOKEN: must have at least 16 characters',
    );
    expect(settingFaults(entry, { PAGE_TOKEN: LONG, ADMIN_TOKEN: LONG }).join()).to.include(
      'ADMIN_TOKEN: must differ from PAGE_TOKEN',
    );
    expect(settingFaults(entry, { PAGE_TOKEN: LONG, ADMIN_TOKEN: `${LONG}-other` })).to.deep.equal([]);
    expect(tokensSet({ entry }, new SettingReader({ PAGE_TOKEN: LONG }))).to.deep.equal(['PAGE_TOKEN']);
    expect(tokensSet({ entry }, new SettingReader({}))).to.deep.equal([]);
  });
});

describe('The pages of a shop', () => {
  const pagesAt = (path: string) => () => ({
    call: async () => ({ status: 200, body: {} }),
    pages: { path, name: 'Tea', routes: [] },
  });

  for (const path of ['tea', '/', '/tea/cups', '/mcp', '/docs', '/sold'])
    it(`can't be at ${path}, where they or an operation could not be reached`, async () => {
      const fault = await open({ tea: pagesAt(path) }).catch((error: Error) => error.message);
      expect(fault)
        .to.match(/^The pages of tea are at /)
        .and.include(path);
    });

  it('each have a path of their own', async () => {
    const both = await open({ tea: pagesAt('/tea'), coffee: pagesAt('/tea') }).catch(
      (error: Error) => error.message,
    );
    expect(both).to.include('where the pages of tea already are');
    expect((await open({ tea: pagesAt('/tea'), coffee: pagesAt('/coffee') })).pages).to.have.length(2);
  });
});

describe('The entries of a shop', () => {
  it('share their common resources, are closed, and are probed under the names of their operations', async () => {
    times = 0;
    const closed: string[] = [];
    const shop = await open({ tea: entryOf([], closed), coffee: entryOf([], closed) });
    expect(times).to.equal(1);
    expect(Object.keys(shop.probes)).to.deep.equal(['tea', 'coffee']);
    await shop.close();
    expect(closed).to.have.length(2);
  });

  it('are closed if one of them fails, and opening the shop fails with its error', async () => {
    const closed: string[] = [];
    const fails = () => Promise.reject(new Error('no leaves'));
    const failed = await open({ fails, tea: entryOf([], closed) }).catch((error: unknown) => error);
    expect(failed).to.have.property('message', 'no leaves');
    expect(closed).to.have.length(1);
  });
});
