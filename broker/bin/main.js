'use strict';
/** The program: its bundle, or its single modules as long as the build has made no bundle (docs/adr/0013). */
const { existsSync } = require('node:fs');
const { join } = require('node:path');

const launch = join(__dirname, '../dist/launch.cjs');
const program = existsSync(launch) ? require(launch).load() : require('../dist/main.js');
exports.run = program.run;
