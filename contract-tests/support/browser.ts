import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const CHROMIUM = '/usr/bin/chromium';
const AXE = fileURLToPath(new URL('../../../node_modules/axe-core/axe.min.js', import.meta.url));
const CALL_MS = 15_000;

/** The reason why browser tests can't run here, or undefined if they can. */
export const noBrowser = existsSync(CHROMIUM) ? undefined : `${CHROMIUM} is not installed`;

type Message = {
  id?: number;
  method?: string;
  params?: unknown;
  result?: Record<string, unknown>;
  error?: { message: string };
};

/** Debian's Chromium, driven by the DevTools protocol over a pipe. One page. */
export class Browser {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #waiting = new Map<number, (message: Message) => void>();
  /** Errors of the page: violations of its content security policy, failed scripts. */
  readonly complaints: string[] = [];
  /** Events of the DevTools domains that a test enables. */
  onEvent: ((method: string, params: unknown) => void) | undefined;
  #serial = 0;
  #session = '';

  private constructor(child: ChildProcess, folder: string) {
    this.#child = child;
    this.#folder = folder;
    let text = '';
    (child.stdio[4] as Readable).setEncoding('utf8').on('data', (chunk: string) => {
      const parts = (text + chunk).split('\0');
      text = parts.pop() ?? '';
      for (const part of parts) this.#receive(JSON.parse(part) as Message);
    });
  }

  /** @param folder the profile of an earlier browser, as `kill` returns it */
  static async start(folder?: string): Promise<Browser> {
    folder ??= await mkdtemp(join(tmpdir(), 'coinslot-browser-'));
    const flags = [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--hide-scrollbars',
    ];
    const child = spawn(
      CHROMIUM,
      [...flags, '--remote-debugging-pipe', `--user-data-dir=${folder}`, 'about:blank'],
      {
        stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
      },
    );
    const browser = new Browser(child, folder);
    const { targetId } = await browser.call('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await browser.call('Target.attachToTarget', { targetId, flatten: true });
    browser.#session = sessionId as string;
    for (const domain of ['Page', 'Runtime', 'Log']) await browser.call(`${domain}.enable`);
    return browser;
  }

  async call(method: string, params: object = {}): Promise<Record<string, unknown>> {
    const id = ++this.#serial;
    const answer = new Promise<Message>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${method}: no answer from the browser`)), CALL_MS);
      this.#waiting.set(id, message => {
        clearTimeout(timer);
        resolve(message);
      });
    });
    const session = this.#session ? { sessionId: this.#session } : {};
    (this.#child.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, ...session })}\0`);
    const { result, error } = await answer;
    if (error) throw new Error(`${method}: ${error.message}`);
    return result ?? {};
  }

  async open(url: string): Promise<void> {
    await this.call('Page.navigate', { url });
  }

  /** Evaluates an expression in the page. */
  async read(expression: string): Promise<unknown> {
    const { result, exceptionDetails } = await this.call('Runtime.evaluate', {
      expression,
      returnByValue: true,
    });
    if (exceptionDetails) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails).slice(0, 300)}`);
    return (result as { value?: unknown }).value;
  }

  /** Waits until an expression is true in the page. */
  async until(expression: string): Promise<void> {
    const end = Date.now() + CALL_MS;
    // While the page navigates, evaluation fails.
    while (!(await this.read(`Boolean(${expression})`).catch(() => false))) {
      if (Date.now() > end)
        throw new Error(
          `never true: ${expression}; the page says: ${String(await this.read('document.body.innerText'))}`,
        );
      await pause(50);
    }
  }

  /** The accessibility violations that axe-core finds in the page. */
  async violations(): Promise<unknown> {
    const expression = `${await readFile(AXE, 'utf8')}; axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
      JSON.stringify(violations.map(({ id, nodes }) => [id, nodes[0].html.slice(0, 150), nodes[0].failureSummary])))`;
    const { result } = await this.call('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    return JSON.parse((result as { value: string }).value) as unknown;
  }

  async type(text: string): Promise<void> {
    await this.call('Input.insertText', { text });
  }

  async press(key: string, code: number): Promise<void> {
    const common = { key, code: key === ' ' ? 'Space' : key, windowsVirtualKeyCode: code };
    await this.call('Input.dispatchKeyEvent', {
      type: 'keyDown',
      ...common,
      ...(key === ' ' ? { text: ' ' } : {}),
      ...(key === 'Enter' ? { text: '\r' } : {}),
    });
    await this.call('Input.dispatchKeyEvent', { type: 'keyUp', ...common });
  }

  async resize(width: number, height: number, dark = false): Promise<void> {
    await this.call('Emulation.setDeviceMetricsOverride', {
      width,
      height,
      deviceScaleFactor: 1,
      mobile: width < 500,
    });
    const features = [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }];
    await this.call('Emulation.setEmulatedMedia', { features });
  }

  async picture(): Promise<Buffer> {
    const { data } = await this.call('Page.captureScreenshot', {
      format: 'png',
      captureBeyondViewport: true,
    });
    return Buffer.from(data as string, 'base64');
  }

  /** Runs a script in every page before the page's own scripts. */
  async beforePages(source: string): Promise<void> {
    await this.call('Page.addScriptToEvaluateOnNewDocument', { source });
  }

  /** Ends the browser without warning, as a power cut does. @returns its profile folder */
  async kill(): Promise<string> {
    const gone = new Promise(resolve => this.#child.once('exit', resolve));
    this.#child.kill('SIGKILL');
    await gone;
    return this.#folder;
  }

  async close(): Promise<void> {
    const gone = new Promise(resolve => this.#child.once('exit', resolve));
    this.#session = '';
    await this.call('Browser.close').catch(() => this.#child.kill('SIGKILL'));
    await Promise.race([gone, pause(5_000, undefined, { ref: false })]);
    if (this.#child.exitCode === null) this.#child.kill('SIGKILL');
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }

  #receive(message: Message): void {
    if (message.id !== undefined) {
      this.#waiting.get(message.id)?.(message);
      this.#waiting.delete(message.id);
    } else if (message.method === 'Log.entryAdded' || message.method === 'Runtime.exceptionThrown') {
      this.complaints.push(JSON.stringify(message.params).slice(0, 500));
    } else if (message.method !== undefined) this.onEvent?.(message.method, message.params);
  }
}
