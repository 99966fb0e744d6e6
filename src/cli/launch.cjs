'use strict';
// Runs a compiled program, or explains in one sentence why it can't. It is ES5, so that even an old Node can run it and report that it is
// too old; `import()`, which an old Node can't read, is in a file of its own.
//   node src/cli/launch.cjs cli/buy/main …    runs dist/src/cli/buy/main.js
var fs = require('fs');
var path = require('path');
var url = require('url');

var ROOT = path.join(__dirname, '..', '..');
var NEEDED = [20, 19];

function programFile(name) {
  return path.join(ROOT, 'dist', 'src', name + '.js');
}

/** Why a program can't run, and what to do about it; undefined if it can. */
function faultOf(name) {
  var version = process.versions.node.split('.').map(Number);
  if (version[0] < NEEDED[0] || (version[0] === NEEDED[0] && version[1] < NEEDED[1])) {
    return (
      'Node ' +
      NEEDED.join('.') +
      ' or newer is needed, but this is ' +
      process.version +
      ': install a newer version from https://nodejs.org.'
    );
  }
  if (!fs.existsSync(programFile(name))) {
    return 'Coinslot is not compiled: run make build, or npm ci && npm run build.';
  }
  try {
    require.resolve('pino');
  } catch (error) {
    return 'The packages of Coinslot are not installed: run make build, or npm ci.';
  }
  return undefined;
}

function launch(name) {
  var fault = faultOf(name);
  if (fault) {
    process.stderr.write(fault + '\n');
    process.exitCode = 1;
    return undefined;
  }
  return require('./import-program.cjs')(url.pathToFileURL(programFile(name)).href);
}

module.exports = launch;

if (require.main === module) {
  var name = process.argv.splice(2, 1)[0];
  process.argv[1] = programFile(name);
  launch(name);
}
