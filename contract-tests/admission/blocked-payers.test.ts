import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { BlockedPayers, BlockedPayersFault } from '../../src/admission/blocked-payers.js';
import { isAddress } from '../../src/rails/solana/address.js';

const [ONE, TWO] = [
  '7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU',
  '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM',
] as const;

describe('The file of blocked payers', () => {
  let folder: string;
  let file: string;
  let said: string[];
  let blocked: BlockedPayers;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'coinslot-blocked-'));
    file = join(folder, 'blocked.txt');
    said = [];
    const say = (fields: object, message: string): void =>
      void said.push(`${message} ${JSON.stringify(fields)}`);
    blocked = new BlockedPayers({ file, isPayer: isAddress, log: { info: say, warn: say, error: say } });
  });
  afterEach(() => {
    blocked.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Replaces the file as editors do: with a new one. */
  function replaceBy(text: string): void {
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
  }

  const both = (): boolean[] => [blocked.has(ONE), blocked.has(TWO)];

  it('is read again when it changes', async () => {
    writeFileSync(file, `# scrapers\n${ONE} # asked for slurs\n\n`);
    await blocked.start();
    expect(both()).to.deep.equal([true, false]);
    await blocked.look();
    expect(said).to.deep.equal([]);
    replaceBy(`${TWO}\r\n`);
    await blocked.look();
    expect(both()).to.deep.equal([false, true]);
    replaceBy('');
    await blocked.look();
    expect(both()).to.deep.equal([false, false]);
  });

  it('keeps its last valid entries in force while it is missing or has an error', async () => {
    writeFileSync(file, ONE);
    await blocked.start();
    replaceBy(`${TWO}\nnobody`);
    await blocked.look();
    expect(both()).to.deep.equal([true, false]);
    expect(said.join()).to.include("line 2 is not an address: 'nobody'");
    rmSync(file);
    await blocked.look();
    await blocked.look();
    expect(both()).to.deep.equal([true, false]);
    expect(said).to.have.length(2);
    replaceBy(TWO);
    await blocked.look();
    expect(both()).to.deep.equal([false, true]);
  });

  it('prevents startup if it has an error', async () => {
    writeFileSync(file, '7xKX');
    expect(await blocked.start().catch((error: unknown) => error)).to.be.instanceOf(BlockedPayersFault);
  });
});
