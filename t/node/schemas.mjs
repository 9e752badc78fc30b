// The OpenAPI document for programs that hold values against it.
//
//   const { openapi, look, misfits, faults } = read('openapi.json');
//   look(steps)                   the object at a list of steps: { at, real }, where real are its own steps
//   misfits(value, steps, what)   what is wrong with a value, by the schema at those steps, as sentences
//   faults(answer)                what is wrong with an answer, { path, method, status, headers, body }; that to a HEAD
//                                 has no body
import { readFileSync } from 'node:fs';

import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

// Headers that httpd adds to every answer, which the document does not describe.
const HTTPD = ['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'server'];

const ROOT = 'openapi:document';

// The document leaves answers open, so that they can grow; this service has what it says and no more.
// What stands in an allOf is about a part of an object.
function close(node, part) {
    if (node === null || typeof node !== 'object') {
        return;
    }
    if (Array.isArray(node)) {
        node.forEach((item) => close(item, part));
        return;
    }
    if (node.properties && !part) {
        node.additionalProperties ??= false;
    }
    if (node['x-extensible-enum']) {
        node.enum = [...node['x-extensible-enum'], ...([node.type].flat().includes('null') ? [null] : [])];
    }
    for (const [name, value] of Object.entries(node)) {
        if (name !== 'example' && name !== 'examples') {
            close(value, part || name === 'allOf');
        }
    }
}

export function read(path) {
    const openapi = JSON.parse(readFileSync(path, 'utf8'));
    close(openapi, false);

    const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
    addFormats(ajv);
    ajv.addFormat('idn-email', (text) => /^[^@]+@[^@]+$/.test(text));
    ajv.addSchema(openapi, ROOT);

    const validators = new Map();

    // Follows every $ref on the way.
    function look(steps) {
        let at = openapi;
        let real = [];
        for (const step of steps) {
            at = at?.[step];
            real.push(step);
            while (at?.$ref) {
                real = at.$ref.slice(2).split('/').map((s) => s.replaceAll('~1', '/').replaceAll('~0', '~'));
                at = real.reduce((object, name) => object?.[name], openapi);
            }
        }
        return { at, real };
    }

    function validator(steps) {
        const escaped = steps.map((s) =>
            encodeURIComponent(String(s).replaceAll('~', '~0').replaceAll('/', '~1')));
        const ref = `${ROOT}#/${escaped.join('/')}`;
        if (!validators.has(ref)) {
            validators.set(ref, ajv.compile({ $ref: ref }));
        }
        return validators.get(ref);
    }

    function misfits(value, steps, what) {
        const validate = validator(steps);
        return validate(value)
            ? []
            : validate.errors.map((e) => `${what}${e.instancePath} ${e.message} ${JSON.stringify(e.params)}`);
    }

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
        if (body === undefined) {
            return found;
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

    return { openapi, look, misfits, faults };
}
