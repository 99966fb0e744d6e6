import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Json } from '../contract/json.js';
import { fileNameOf } from '../contract/file-name.js';
import { objectOf } from '../contract/references.js';
import { linkIn, type ToolResult } from './tool-result.js';

const LIMITS = { files: 500, bytes: 1024 ** 3 };
const MAX_NAME = 60;
/** How many file names to try. One may be taken, because wallets that share the folder may choose the same one in the same millisecond. */
const MAX_TRIES = 100;

/** A file with bytes that were bought. */
type Saved = { file: string; mimeType: string; size: number };

/** The folder for binary answers, which models can't read. Its size is limited; the oldest files are deleted first. */
export class AnswerFiles {
  readonly folder: string;
  readonly #limits: typeof LIMITS;

  constructor(folder: string, limits = LIMITS) {
    this.folder = folder;
    this.#limits = limits;
  }

  /** @throws Error from the file system */
  save(tool: string, mimeType: string, bytes: Buffer): Saved {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    this.#makeRoom(bytes.length);
    const time = new Date().toISOString().replace(/[:.]/g, '-');
    const start = `${tool.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, MAX_NAME)}-${time}`;
    for (let tries = 0; ; tries++) {
      const file = join(this.folder, fileNameOf(tries === 0 ? start : `${start}-${tries}`, mimeType));
      try {
        writeFileSync(file, bytes, { mode: 0o600, flag: 'wx', flush: true });
        return { file, mimeType, size: bytes.length };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || tries === MAX_TRIES) throw error;
      }
    }
  }

  #makeRoom(bytes: number): void {
    const stats = readdirSync(this.folder).flatMap(name => {
      const file = join(this.folder, name);
      const found = statSync(file, { throwIfNoEntry: false });
      return found?.isFile() ? [{ file, size: found.size, time: found.mtimeMs }] : [];
    });
    const oldest = stats.sort((a, b) => a.time - b.time);
    let [count, total] = [oldest.length + 1, bytes + oldest.reduce((sum, { size }) => sum + size, 0)];
    for (const { file, size } of oldest) {
      if (count <= this.#limits.files && total <= this.#limits.bytes) return;
      rmSync(file, { force: true });
      count -= 1;
      total -= size;
    }
  }
}

/**
 * Saves the bytes of a result to files, and puts descriptions in their place.
 * @throws Error from the file system
 */
export function withoutBytes(result: ToolResult, tool: string, files: AnswerFiles): ToolResult {
  const saved: Saved[] = [];
  const content = result.content.map(block => {
    const bytes = bytesIn(block);
    if (!bytes) return block;
    const one = files.save(tool, bytes.mimeType, Buffer.from(bytes.base64, 'base64'));
    saved.push(one);
    return { type: 'text', text: sentenceOf(one) };
  });
  const [first] = saved;
  return first
    ? { ...result, content, structuredContent: { ...first, ...result.structuredContent } }
    : result;
}

/**
 * Saves the answer that a result links to in a file, and replaces the link. The answer is read over MCP from the shop itself, so that a
 * shop can't make this machine fetch other URLs.
 * @param read returns the result of `resources/read`
 */
export async function withLinkedFile(
  result: ToolResult,
  tool: string,
  files: AnswerFiles,
  read: (uri: string) => Promise<Json>,
): Promise<ToolResult> {
  const link = result.isError ? undefined : linkIn(result);
  if (link === undefined) return result;
  try {
    const { contents } = await read(link);
    const resource = Array.isArray(contents) ? (contents as unknown[])[0] : undefined;
    const bytes = bytesIn({ type: 'resource', resource });
    if (!bytes) return result;
    const saved = files.save(tool, bytes.mimeType, Buffer.from(bytes.base64, 'base64'));
    const content = [{ type: 'text', text: sentenceOf(saved) }];
    return { ...result, content, structuredContent: { ...result.structuredContent, ...saved } };
  } catch {
    // The result keeps the link, and the shop still has the answer.
    return result;
  }
}

function bytesIn(block: Json): { mimeType: string; base64: string } | undefined {
  const { blob, mimeType: inner } = objectOf(block.resource);
  const [data, type] = block.type === 'resource' ? [blob, inner] : [block.data, block.mimeType];
  if (typeof data !== 'string') return undefined;
  return { mimeType: typeof type === 'string' ? type.toLowerCase() : '', base64: data };
}

function sentenceOf({ file, mimeType, size }: Saved): string {
  return `The answer is in the file ${file} (${mimeType || 'bytes'}, ${size} bytes).`;
}
