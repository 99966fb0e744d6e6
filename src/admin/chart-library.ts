import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** uPlot (MIT) from its package: read when the page is first opened, then cached. */
export class ChartLibrary {
  #script: Promise<string> | undefined;
  #style: Promise<string> | undefined;

  /** Defines `uPlot` in the page. */
  script(): Promise<string> {
    return (this.#script ??= textOf(import.meta.resolve('uplot/dist/uPlot.iife.min.js')));
  }

  style(): Promise<string> {
    return (this.#style ??= textOf(import.meta.resolve('uplot/dist/uPlot.min.css')));
  }
}

function textOf(url: string): Promise<string> {
  return readFile(fileURLToPath(url), 'utf8');
}
