#!/usr/bin/env node
// The command `coinslot`. It is plain JavaScript, so that it can report what is missing even if nothing else runs.
import launch from './launch.cjs';

await launch('cli/main');
