// Compares answers of the service with the OpenAPI document: reads each answer as a line of JSON from
// stdin, { path, method, status, headers, body }, and writes an array of its faults as a line of JSON.
//
//   node t/node/answers.mjs openapi.json
import { createInterface } from 'node:readline';

import { read } from './schemas.mjs';

const { faults } = read(process.argv[2]);

for await (const line of createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(faults(JSON.parse(line))) + '\n');
}
