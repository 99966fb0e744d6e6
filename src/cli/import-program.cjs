'use strict';
/** Separate from launch.cjs, because old versions of Node can't read `import()`. */
module.exports = program => import(program);
