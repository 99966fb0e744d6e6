import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { rows } from '../support/extent.js';
import { chainOf, generatedBusiness, type Business, type Landed } from '../support/generated-business.js';
import { jsonOf, ledgerCommand, type Outcome } from '../support/ledger-command.js';

const [FROM, TO] = [Date.UTC(2026, 5, 1), Date.UTC(2026, 6, 1)];

/** Computed without the code under test. */
const usdc = (atomic: bigint): string => {
  const digits = String(atomic < 0n ? -atomic : atomic).padStart(7, '0');
  const text = `${digits.slice(0, -6)}.${digits.slice(-6)}`.replace(/0{1,4}$/, '');
  return atomic < 0n ? `-${text}` : text;
};
const sol = (lamports: bigint): number => Number(lamports) / 1e9;

type Statement = {
  opening: string;
  closing: string;
  sales: { count: number; usdc: string; value?: string };
  refunds: { count: number; usdc: string };
  networkFees: { feePayer: string; transactions: number; sol: string }[];
  chain: {
    opening: string;
    closing: string;
    otherTransfers: { usdc: string; counterparty: string }[];
    bookedHereOnly: { count: number; usdc: string };
    landedHereOnly: { count: number; usdc: string };
    missing: object[];
    unexplained: string;
  };
};

for (const sales of rows([2_000, 100_000]))
  describe(`the statement of a month with ${sales} sales`, function () {
    this.timeout(600_000);
    let folder: string;
    let business: Business;
    let rpc: Awaited<ReturnType<typeof chainOf>>;
    let env: Record<string, string>;
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'coinslot-books-'));
      const file = join(folder, 'ledger.db');
      business = await generatedBusiness(file, { sales, from: FROM, to: TO });
      rpc = await chainOf(business);
      env = { DATABASE_URL: `file:${file}`, SOLANA_RPC_URL: rpc.url };
    });
    after(async () => {
      await rpc.close();
      await rm(folder, { recursive: true, force: true });
    });

    it('equals the balance on the chain to the last unit, except for the differences that it names', async () => {
      const found = await jsonOf<Statement>(env, 'statement', '2026-06');
      expect(found.sales).to.deep.equal({ count: business.sales, usdc: usdc(business.sold) });
      expect(found.refunds).to.deep.equal({ count: business.refunds, usdc: usdc(business.refunded) });
      expect(found.opening).to.equal(usdc(business.opening));
      const [fees] = found.networkFees;
      expect(fees?.feePayer).to.equal(business.feePayer);
      expect(Number(fees?.sol)).to.equal(sol(business.fees));
      const { chain } = found;
      expect(chain.closing).to.equal(usdc(business.closing));
      expect(chain.missing).to.deep.equal([]);
      expect(chain.unexplained).to.equal('0.00');
      expect([chain.bookedHereOnly.count, chain.landedHereOnly.count]).to.deep.equal([1, 1]);
      const moved = { 'an exchange': -business.withdrawn, 'a giver': business.given };
      const sums = chain.otherTransfers.reduce<Record<string, number>>(
        (all, each) => ({ ...all, [each.counterparty]: (all[each.counterparty] ?? 0) + Number(each.usdc) }),
        {},
      );
      for (const [name, amount] of Object.entries(moved))
        expect(sums[name] ?? 0).to.be.closeTo(Number(amount) / 1e6, 1e-7);
      const [late, early] = [chain.bookedHereOnly.usdc, chain.landedHereOnly.usdc].map(text => atomic(text));
      expect(usdc(atomic(found.closing) - (late ?? 0n) + (early ?? 0n))).to.equal(chain.closing);
    });

    it('has every movement exactly once in the export, and its sums equal those of the chain', async () => {
      const { stdout } = await ledgerCommand(
        env,
        'export',
        '--format',
        'movements',
        '--from',
        '2026-06-01',
        '--to',
        '2026-06-30',
      );
      const [titles = '', ...lines] = stdout.trimEnd().split('\r\n');
      expect(titles).to.equal('date,kind,amount,asset,transaction,payment,operation,account,counterparty');
      const of = (kind: string): string[][] =>
        lines.map(line => line.split(',')).filter(cells => cells[1] === kind);
      const sum = (kind: string): bigint =>
        of(kind).reduce((total, cells) => total + atomic(cells[2] ?? '', kind === 'network fee' ? 9 : 6), 0n);
      expect(sum('sale')).to.equal(business.sold);
      expect(sum('refund')).to.equal(-business.refunded);
      expect(sum('network fee')).to.equal(-business.fees);
      expect(new Set(of('sale').map(cells => cells[4])).size).to.equal(business.sales);
      expect(lines).to.deep.equal(
        lines.toSorted((a, b) =>
          a.slice(0, 24) < b.slice(0, 24) ? -1 : a.slice(0, 24) > b.slice(0, 24) ? 1 : 0,
        ),
      );
    });

    const against = async (chain: Landed[]): Promise<Outcome> => {
      const other = await chainOf({ ...business, chain });
      const outcome = await ledgerCommand({ ...env, SOLANA_RPC_URL: other.url }, 'statement', '2026-06');
      await other.close();
      return outcome;
    };
    const aSale = (): Landed => {
      const sale = business.chain.find(each => each.change > 0n && each.blockTime * 1_000 > FROM + 3_600_000);
      if (!sale) throw new Error('there are no sales');
      return sale;
    };

    it('names a sale that is not on the chain, and fails', async () => {
      const lost = aSale();
      const { status, stdout } = await against(business.chain.filter(each => each !== lost));
      expect(status).to.equal(1);
      expect(stdout)
        .to.include(`Not on chain: ${usdc(lost.change)} USDC of payment`)
        .and.include(lost.signature);
      expect(stdout).not.to.include('not explained');
    });

    it('names a transfer that is not in the ledger, and includes it in the balance', async () => {
      const sale = aSale();
      const signature = sale.signature.replace(/.$/, last => (last === '2' ? '3' : '2'));
      const given = { ...sale, signature, change: 3n, counterparty: 'someone else' };
      const { status, stdout } = await against(
        business.chain.flatMap(each => (each === sale ? [each, given] : [each])),
      );
      expect(status).to.equal(0);
      expect(stdout).to.match(new RegExp(`0\\.000003 +someone else +${signature}`));
    });

    it('states the difference if the chain has another amount, and fails', async () => {
      const wrong = aSale();
      const less = { ...wrong, change: wrong.change - 1n };
      const { status, stdout } = await against(business.chain.map(each => (each === wrong ? less : each)));
      expect(status).to.equal(1);
      expect(stdout).to.include('-0.000001 USDC is not explained');
    });

    it('can be made without the chain, and in another currency', async () => {
      const rates = join(folder, 'rates.csv');
      const days = Array.from({ length: 30 }, (_, day) => `2026-06-${String(day + 1).padStart(2, '0')}`);
      await writeFile(
        rates,
        `day,asset,currency,rate\n${days.map(day => `${day},USDC,EUR,0.5\n${day},SOL,EUR,100\n`).join('')}`,
      );
      const found = await jsonOf<Statement>(env, 'statement', '2026-06', '--no-chain', '--rates', rates);
      expect(found.chain).to.equal(null);
      expect(Number(found.sales.value)).to.be.closeTo(
        Number(business.sold) / 2e6,
        0.000_001 * business.sales,
      );
      const missing = await ledgerCommand(env, 'statement', '2026-07', '--no-chain', '--rates', rates);
      expect(missing.status).to.equal(0);
    });
  });

function atomic(text: string, decimals = 6): bigint {
  const [whole = '', fraction = ''] = text.replace('-', '').split('.');
  const size = BigInt(whole + fraction.padEnd(decimals, '0'));
  return text.startsWith('-') ? -size : size;
}
