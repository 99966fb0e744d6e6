import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const SCRIPT = import.meta.resolve('uplot/dist/uPlot.iife.min.js');
const STYLE = import.meta.resolve('uplot/dist/uPlot.min.css');

/** uPlot (MIT), as its package has it: read when the page is first looked at, and kept. */
export class ChartLibrary {
  #script: Promise<string> | undefined;
  #style: Promise<string> | undefined;

  /** Defines `uPlot` in the page. */
  script(): Promise<string> {
    return (this.#script ??= readFile(fileURLToPath(SCRIPT), 'utf8'));
  }

  style(): Promise<string> {
    return (this.#style ??= readFile(fileURLToPath(STYLE), 'utf8'));
  }
}
