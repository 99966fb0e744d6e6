import type { EditedShop } from './edited-shop.js';
import { startProgram, type Program } from './program.js';

/** How the deployment of the shop differs from its folder. */
export type Deployed = { prices?: 'doubled'; respondents?: 'absent' };

/** The process of the shop. It keeps its port and its ledger when the deployment changes. */
export class Deployment {
  readonly #shop: EditedShop;
  readonly #log: (line: string) => void;
  readonly #settings: Record<string, string>;
  #running: Program | undefined;
  #port = '0';
  #deployed: Deployed = {};

  constructor(shop: EditedShop, log: (line: string) => void, settings: Record<string, string>) {
    this.#shop = shop;
    this.#log = log;
    this.#settings = settings;
  }

  /** @returns the URL of the shop */
  async start(): Promise<string> {
    const { prices = 'own', respondents } = this.#deployed;
    this.#shop.write(prices);
    const { facts: url, ...program } = await startProgram({
      command: 'run',
      folder: this.#shop.folder,
      settings: {
        ...this.#settings,
        PORT: this.#port,
        SHOP_DIR: this.#shop.folder,
        ...(respondents === 'absent' ? { PEOPLE: 'panel' } : {}),
      },
      ready: ({ line }) => /ready to be paid at (http[^"\s]+)/.exec(line ?? '')?.[1],
      log: this.#log,
    });
    this.#running = program;
    this.#port = new URL(url).port;
    return url;
  }

  async become(deployed: Deployed): Promise<void> {
    if (JSON.stringify(deployed) === JSON.stringify(this.#deployed)) return;
    this.#deployed = deployed;
    await this.stop();
    await this.start();
  }

  async stop(): Promise<void> {
    await this.#running?.stop();
    this.#running = undefined;
  }
}
