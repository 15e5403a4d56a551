#!/usr/bin/env node
'use strict';
// The process one starts here is the process one watches and kills: a daemon's command becomes the daemon (docs/adr/0005).
if (process.features.require_module !== true) {
  process.stderr.write(`reelhost needs Node 20.19, 22.12 or newer; this is ${process.versions.node}\n`);
  process.exit(78);
}
const { existsSync } = require('node:fs');
const { join } = require('node:path');

const launch = join(__dirname, '../dist/launch.cjs');
const { main } = existsSync(launch) ? require(launch).load() : require('../dist/main.js');
main(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
});
