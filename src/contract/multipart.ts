import { randomUUID } from 'node:crypto';
import { MULTIPART_TYPE } from './body-types.js';
import type { FormField } from './form-body.js';
import type { Json } from './json.js';
import { queryPairs } from './query-styles.js';
import { fileOf, type SentFile } from './sent-file.js';

/** A part of a multipart form: a text, JSON, or a file. */
export type Part = { name: string } & ({ text: string } | { json: unknown } | { file: SentFile });

/** The parts of a form: files last, because some servers require that. A value that is not a valid file becomes a text part. */
export function partsOf(fields: readonly FormField[], value: Json): Part[] {
  const parts = Object.entries(value).flatMap(([name, each]): Part[] => {
    const field = fields.find(known => known.name === name);
    if (field?.as === undefined) return queryPairs({ name }, each).map(([, text]) => ({ name, text }));
    const items = field.list && Array.isArray(each) ? (each as unknown[]) : [each];
    return items.map(item => (field.as === 'json' ? { name, json: item } : filePart(name, item)));
  });
  return [...parts.filter(part => !('file' in part)), ...parts.filter(part => 'file' in part)];
}

function filePart(name: string, item: unknown): Part {
  const file = typeof item === 'string' ? fileOf(item) : undefined;
  return file ? { name, file } : { name, text: String(item) };
}

/** A multipart form as it is sent. Its boundary is random, so that no content can contain it on purpose. */
export function multipartBody(parts: readonly Part[]): { type: string; body: Buffer } {
  const boundary = `coinslot-${randomUUID()}`;
  const written = parts.flatMap(part => [
    Buffer.from(`--${boundary}\r\n${headOf(part)}\r\n\r\n`),
    contentOf(part),
    Buffer.from('\r\n'),
  ]);
  return {
    type: `${MULTIPART_TYPE}; boundary=${boundary}`,
    body: Buffer.concat([...written, Buffer.from(`--${boundary}--\r\n`)]),
  };
}

function headOf(part: Part): string {
  const head = `Content-Disposition: form-data; name="${escaped(part.name)}"`;
  if ('json' in part) return `${head}\r\nContent-Type: application/json`;
  if (!('file' in part)) return head;
  const { name, type } = part.file;
  const named = name === undefined ? '' : `; filename="${escaped(name)}"`;
  return `${head}${named}\r\nContent-Type: ${type}`;
}

/** Escapes names as browsers do. */
function escaped(name: string): string {
  return name.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function contentOf(part: Part): Buffer {
  if ('file' in part) return part.file.bytes;
  return Buffer.from('json' in part ? JSON.stringify(part.json) : part.text);
}
