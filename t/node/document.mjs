// Reads the OpenAPI document as people do: each operation, parameter, header, schema, member and code of
// an error needs a sentence and an example, and each example is what its schema says.  Writes a line for
// each fault.
//
//   node t/node/document.mjs openapi.json
import { read } from './schemas.mjs';

const { openapi, look, misfits } = read(process.argv[2]);
const METHODS = ['get', 'head', 'post', 'put', 'patch', 'delete', 'options'];

// What several operations share is looked at several times.
const faults = new Set();

function complain(steps, words) {
    faults.add(`${steps.join('/')}: ${words}`);
}

// A $ref inside keywords that combine schemas stands for the schema itself.
function branches(node) {
    return [node, ...[node.oneOf, node.anyOf].flatMap((list) => (list ?? []).flatMap((each) => branches(each))),
        ...(node.$ref ? branches(look(node.$ref.slice(2).split('/')).at) : [])];
}

// What a value of the schema looks like, by the schema itself.
function ownExamples(node) {
    return branches(node).flatMap((each) => [
        ...(each.examples ?? []), ...(each.enum ?? []), ...('const' in each ? [each.const] : []),
        ...(each.type === 'boolean' ? [true] : []), ...(each.type === 'null' && !node.oneOf ? [null] : []),
    ]);
}

function valid(values, steps) {
    for (const value of values) {
        misfits(value, steps, 'the example').forEach((fault) => complain(steps, fault));
    }
}

// Each code that a schema lists has a sentence, and no other has.
function sentences(node, steps) {
    const told = Object.keys(node['x-enumDescriptions'] ?? {});
    for (const code of node.enum.filter((each) => !told.includes(each))) {
        complain(steps, `${code} has no sentence`);
    }
    for (const code of told.filter((each) => !node.enum.includes(each))) {
        complain(steps, `there is no ${code}`);
    }
}

// Looks at a schema of which values are shown, and at what it consists of.
function schema(node, steps, values) {
    if (!branches(node).some((each) => each.description)) {
        complain(steps, 'there is no sentence');
    }
    valid(node.examples ?? [], steps);
    if (values.length === 0 && ownExamples(node).length === 0 && !node.properties && !node.items) {
        complain(steps, 'there is no example');
    }
    const shown = [...values, ...(node.examples ?? [])].filter((value) => value !== null);
    for (const [name, member] of Object.entries(node.properties ?? {})) {
        if (name === 'code' && member['x-extensible-enum']) {
            sentences(member, [...steps, 'properties', name]);
        }
        schema(member, [...steps, 'properties', name], shown.filter((value) => name in value).map((value) => value[name]));
    }
    if (node.items) {
        schema({ description: node.description, ...node.items }, [...steps, 'items'], shown.flat());
    }
    (node.oneOf ?? []).forEach((each, i) => {
        if (each.type !== 'null') {
            schema({ description: node.description, ...each }, [...steps, 'oneOf', i], shown);
        }
    });
}

function parameter(steps) {
    const { at, real } = look(steps);
    if (!at.description) {
        complain(real, 'there is no sentence');
    }
    if (at.example === undefined) {
        complain(real, 'there is no example');
    } else {
        valid([at.example], [...look([...real, 'schema']).real]);
    }
}

// The body of a request or an answer; an error has an example for each of its codes.
function content(steps) {
    const { at, real } = look(steps);
    for (const [type, media] of Object.entries(at.content ?? {})) {
        const values = media.examples ? Object.values(media.examples).map((each) => each.value) : [media.example];
        const here = [...real, 'content', type];
        if (values[0] === undefined) {
            complain(here, 'there is no example');
            continue;
        }
        if (media.schema) {
            valid(values, [...here, 'schema']);
        }
        const codes = media.schema?.allOf?.[1]?.properties?.error?.properties.code.enum ?? [];
        for (const code of codes.filter((each) => !values.some((value) => value.error.code === each))) {
            complain(here, `${code} has no example`);
        }
        if (media.schema && !media.schema.$ref && !media.schema.allOf) {
            schema({ description: at.description, ...media.schema }, [...here, 'schema'], values);
        }
    }
}

function operation(item, path, method) {
    const here = ['paths', path, method];
    const it = item[method];
    if (!it.summary || !it.description) {
        complain(here, 'there is no sentence');
    }
    (it.parameters ?? []).forEach((each, i) => parameter([...here, 'parameters', i]));
    if (it.requestBody) {
        content([...here, 'requestBody']);
    }
    for (const [status, response] of Object.entries(it.responses)) {
        content([...here, 'responses', status]);
        Object.keys(look([...here, 'responses', status]).at.headers ?? {}).forEach((name) =>
            parameter([...look([...here, 'responses', status]).real, 'headers', name]));
        if (!response.$ref && !response.description) {
            complain([...here, 'responses', status], 'there is no sentence');
        }
    }
}

for (const tag of openapi.tags.filter((each) => !each.description)) {
    complain(['tags', tag.name], 'there is no sentence');
}
for (const [path, item] of Object.entries(openapi.paths)) {
    (item.parameters ?? []).forEach((each, i) => parameter(['paths', path, 'parameters', i]));
    METHODS.filter((method) => item[method]).forEach((method) => operation(item, path, method));
}
for (const [name, node] of Object.entries(openapi.components.schemas)) {
    const here = ['components', 'schemas', name];
    if (ownExamples(node).length === 0) {
        complain(here, 'there is no example');
    }
    if (node['x-enumDescriptions']) {
        sentences(node, here);
    }
    schema(node, here, []);
}
faults.forEach((fault) => console.log(fault));
