import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** uPlot (MIT), as its package has it: read when the page is first looked at, and kept. */
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
