import { expect } from 'chai';
import { askPrices } from '../../../src/cli/import/ask-prices.js';
import type { Row } from '../../../src/contract/import/import-contract.js';
import { ImportFault } from '../../../src/contract/import/source-document.js';

const row = (path: string, leftOut?: string): Row => ({
  ...{ method: 'GET', path, id: path, notes: path === '/old' ? ['deprecated'] : [] },
  ...(leftOut === undefined ? {} : { leftOut }),
});
const ROWS = [row('/a'), row('/old'), row('/stream', 'is a stream'), row('/b'), row('/c')];

async function talk(...answers: string[]): Promise<{ prices: string[]; said: string }> {
  let said = '';
  const ask = (question: string): Promise<string> => {
    said += question;
    const answer = answers.shift();
    return answer === undefined ? Promise.reject(new Error('asked too much')) : Promise.resolve(answer);
  };
  const prices = await askPrices(ROWS, ask, text => (said += text));
  expect(answers).to.deep.equal([]);
  return { prices, said };
}

describe('coinslot import at a terminal', () => {
  it('lists the operations that can be sold, and by default sells each of them for a cent', async () => {
    const { prices, said } = await talk('', '', '');
    expect(prices).to.deep.equal(['GET /a=0.01', 'GET /old=0.01', 'GET /b=0.01', 'GET /c=0.01']);
    expect(said).to.contain('   2  GET /old; deprecated\n   3  GET /b').and.not.contain('/stream');
  });

  it('sells what is chosen by number or range, at the given prices', async () => {
    const { prices } = await talk('1, 3-4', '0.2', '3=1', '4 = 0.05', '');
    expect(prices).to.deep.equal(['GET /a=0.20', 'GET /b=1.00', 'GET /c=0.05']);
  });

  it('says what is wrong with an unreadable answer and asks again, a limited number of times', async () => {
    const { prices, said } = await talk('0', 'a', '3-9', '1', '0', '0.1', '1=free', '');
    expect(prices).to.deep.equal(['GET /a=0.10']);
    expect(said)
      .to.contain("'3-9' is neither a number from 1 to 4")
      .and.contain('a price must be more than 0');
    const endless = await talk('x', 'x', 'x', 'x', 'x').catch((error: unknown) => error);
    expect(endless).to.be.instanceOf(ImportFault);
  });
});
