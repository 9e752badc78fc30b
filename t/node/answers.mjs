// Compares answers of the service with the OpenAPI document: reads each answer as a line of JSON from
// stdin, { path, method, status, headers, body }, and writes an array of its faults as a line of JSON.
//
//   node t/node/answers.mjs openapi.json
import { createInterface } from 'node:readline';

import { read } from './schemas.mjs';

// Headers that httpd adds to every answer, which the document does not describe.
const HTTPD = ['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'server'];

const { look, misfits } = read(process.argv[2]);

function header(name, value, steps) {
    const { at, real } = look(steps);
    if (value === undefined) {
        return at.required ? [`the header ${name} is missing`] : [];
    }
    const schema = look([...real, 'schema']);
    const typed = schema.at.type === 'integer' && /^[0-9]+$/.test(value) ? Number(value) : value;
    return misfits(typed, [...real, 'schema'], `header ${name}:`);
}

function faults({ path, method, status, headers, body }) {
    const { at: response, real } = look(['paths', path, method, 'responses', String(status)]);
    if (!response) {
        return [`${status} is not declared`];
    }
    const declared = Object.keys(response.headers ?? {});
    const names = declared.map((name) => name.toLowerCase());
    const found = declared.flatMap((name) =>
        header(name, headers[name.toLowerCase()], [...real, 'headers', name]));
    for (const name of Object.keys(headers)) {
        if (!names.includes(name) && !HTTPD.includes(name)) {
            found.push(`the header ${name} is not declared`);
        }
    }
    if (!response.content) {
        return body === '' ? found : [...found, 'there is a body'];
    }
    const [type] = Object.keys(response.content);
    if (headers['content-type']?.split(';')[0] !== type) {
        return [...found, `the type is ${headers['content-type']}`];
    }
    if (type !== 'application/json') {
        return found;
    }
    try {
        return [...found,
            ...misfits(JSON.parse(body), [...real, 'content', 'application/json', 'schema'], 'body')];
    } catch (error) {
        return [...found, String(error)];
    }
}

for await (const line of createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(faults(JSON.parse(line))) + '\n');
}
