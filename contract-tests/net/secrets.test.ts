import { expect } from 'chai';
import { Secrets } from '../../src/net/secrets.js';

const KEY = 'sk-live/4f9aB+71c02e=d8';
const secrets = new Secrets([
  KEY,
  'Bearer 0123456789abcdef',
  Buffer.from('shop:hunter2hunter2').toString('base64'),
  'eu',
]);

describe('Secrets', () => {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const forms: [string, string][] = [
    ['as it is', KEY],
    ['in capital letters', KEY.toUpperCase()],
    ['percent-encoded', encodeURIComponent(KEY)],
    ['as a part of a JSON string', JSON.stringify(`key ${KEY}`)],
    ['with escaped slashes', KEY.replaceAll('/', '\\/')],
    ['in base64', base64(KEY)],
    ['in base64, one character in', base64(`:${KEY}`)],
    ['in base64, two characters in', base64(`a:${KEY}:b`)],
    ['in base64url', Buffer.from(KEY).toString('base64url')],
    ['in hexadecimal', Buffer.from(KEY).toString('hex')],
    ['without its scheme', '0123456789abcdef'],
    ['decoded', 'shop:hunter2hunter2'],
    ['decoded, the password alone', 'hunter2hunter2'],
  ];

  for (const [name, text] of forms) {
    it(`are concealed ${name}`, () => {
      const shown = secrets.conceal(`Your key ${text} is wrong`);
      expect(shown)
        .to.match(/^Your key.* is wrong$/)
        .and.to.contain('…');
      for (const at of Array(text.length - 5).keys()) expect(shown).not.to.contain(text.slice(at, at + 6));
    });
  }

  for (const [name, text] of forms.filter(([each]) => !each.includes('capital'))) {
    it(`are found ${name}`, async () => {
      expect(await secrets.foundIn(Buffer.from(`{"key":"${text}"}`))).to.equal(true);
    });
  }

  it('are concealed when a service shows only the first and last characters of a key', () => {
    expect(secrets.conceal('Incorrect key sk-live/****************2e=d8.')).to.equal(
      'Incorrect key …****************2e=d8.',
    );
    expect(secrets.conceal(`cut off: ${KEY.slice(0, 9)}`)).to.equal('cut off: …');
  });

  it('are the only text that is concealed, and are not searched for if they are short', async () => {
    for (const text of ['unknown symbol ABC', 'a euro, in the eu', '', 'İstanbul'.slice(1)])
      expect(secrets.conceal(text)).to.equal(text);
    expect(await secrets.foundIn(Buffer.from('a euro in the eu, sk-live'))).to.equal(false);
    expect(new Secrets([]).conceal('anything')).to.equal('anything');
    expect(await new Secrets(['', 'a']).foundIn(Buffer.from('a banana'))).to.equal(false);
  });

  it('are concealed together with the whole text if lower-casing changes its length', () => {
    expect(secrets.conceal(`İ${KEY}`)).to.equal('…');
  });

  it('of four or five characters are concealed entirely', () => {
    expect(new Secrets(['ab12']).conceal('is AB12 or ab12ab12')).to.equal('is … or …');
  });
});
