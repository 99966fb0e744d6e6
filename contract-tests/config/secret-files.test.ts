import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { readConfig } from '../../src/config.js';
import { SettingReader } from '../../src/config/setting-reader.js';

const TOKEN = 'a-token-of-the-operator';
const OUTSIDE = { FACILITATOR_URL: 'https://facilitator.example', SOLANA_RPC_URL: 'https://rpc.example' };
const folder = mkdtempSync(join(tmpdir(), 'secrets-'));

function fileWith(text: string, name = 'secret'): string {
  const path = join(mkdtempSync(join(folder, 'f-')), name);
  writeFileSync(path, text);
  return path;
}

/** The message with which these settings are refused; empty if they are valid. */
function faultOf(env: NodeJS.ProcessEnv): string {
  try {
    readConfig(env);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

describe('A secret in a file', () => {
  it('is the value of the setting, without the trailing line break that editors add', () => {
    expect(readConfig({ ADMIN_TOKEN_FILE: fileWith(`${TOKEN}\n`) }).admin.token).to.equal(TOKEN);
    expect(readConfig({ DATABASE_URL_FILE: fileWith('postgres://u:p@db/x') }).databaseUrl).to.equal(
      'postgres://u:p@db/x',
    );
  });

  it('can be the secret of an API that the contract names', () => {
    expect(readConfig({ API_TOKEN_FILE: fileWith('abc') }).variable('API_TOKEN')).to.equal('abc');
  });

  it('is read from the credentials folder that systemd names', () => {
    const credentials = mkdtempSync(join(folder, 'c-'));
    writeFileSync(join(credentials, 'ADMIN_TOKEN'), TOKEN);
    mkdirSync(join(credentials, 'PORT'));
    const config = readConfig({ CREDENTIALS_DIRECTORY: credentials });
    expect([config.admin.token, config.port]).to.deep.equal([TOKEN, 8402]);
  });

  it('is refused if the setting also has another value, so that it is clear which one counts', () => {
    const file = fileWith(TOKEN);
    const env = { ADMIN_TOKEN: 'another-token-of-the-operator', ADMIN_TOKEN_FILE: file };
    expect(faultOf(env)).to.contain(
      'ADMIN_TOKEN: set by ADMIN_TOKEN and by ADMIN_TOKEN_FILE; keep one of them',
    );
    const credentials = mkdtempSync(join(folder, 'c-'));
    writeFileSync(join(credentials, 'ADMIN_TOKEN'), TOKEN);
    expect(faultOf({ CREDENTIALS_DIRECTORY: credentials, ADMIN_TOKEN_FILE: file })).to.contain(
      'set by ADMIN_TOKEN_FILE and by the credential ADMIN_TOKEN',
    );
  });

  it('prevents startup if it is missing, empty or too long, with a message that names the file', () => {
    const missing = join(folder, 'nothing-here');
    expect(faultOf({ ADMIN_TOKEN_FILE: missing })).to.contain(
      `ADMIN_TOKEN: the file ${missing} can't be read: ENOENT`,
    );
    expect(faultOf({ ADMIN_TOKEN_FILE: fileWith(' \n') })).to.match(/ADMIN_TOKEN: the file \S+ is empty/);
    expect(faultOf({ ADMIN_TOKEN_FILE: fileWith('x'.repeat(70_000)) })).to.contain('it is larger than 64 KB');
    expect(faultOf({ ADMIN_TOKEN_FILE: folder })).to.contain("can't be read");
  });

  it('never appears in an error message', () => {
    expect(faultOf({ ADMIN_TOKEN_FILE: fileWith('hush') }))
      .to.contain('at least 16')
      .and.not.contain('hush');
  });

  it('is reported, like its variable, if it belongs to a facilitator that is not configured', () => {
    const file = fileWith('Authorization: Bearer x');
    expect(faultOf({ ...OUTSIDE, FACILITATOR_7_HEADER_FILE: file })).to.contain('FACILITATOR_7_HEADER');
  });

  it('is read once, so a changed file does not change a running server', () => {
    const file = fileWith(TOKEN);
    const reader = new SettingReader({ ADMIN_TOKEN_FILE: file });
    expect(reader.text('ADMIN_TOKEN')).to.equal(TOKEN);
    writeFileSync(file, 'changed-while-it-runs');
    expect(reader.text('ADMIN_TOKEN')).to.equal(TOKEN);
  });
});
