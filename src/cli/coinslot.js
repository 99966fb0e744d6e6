#!/usr/bin/env node
// The command `coinslot`. It is plain JavaScript, so that it can say what is missing where nothing else would run.
import launch from './launch.cjs';

await launch('cli/main');
