#!/usr/bin/env node
// The command `coinslot`. It is plain JavaScript, so that it can say what is missing where nothing else would run.
import { existsSync } from 'node:fs';
import process from 'node:process';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const program = new URL('../../dist/src/cli/main.js', import.meta.url);

if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`Node 20.19 or newer is needed, this is ${process.version}.\n`);
  process.exitCode = 1;
} else if (!existsSync(program)) {
  process.stderr.write('Coinslot is not compiled: run make build, or npm ci && npm run build.\n');
  process.exitCode = 1;
} else {
  await import(program.href);
}
