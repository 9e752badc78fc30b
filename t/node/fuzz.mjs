// Sends random requests, made from the OpenAPI document, to the service, and holds each answer against it.
//
//   node t/node/fuzz.mjs openapi.json plan.json
//
// The plan: { base, seed, requests, connections, keys: { name: token }, words: { member: [values] }, kept }, the last as
// t/lib/MDL/Kept.pm makes it.  Prints { seen: { "operation status code": count }, faults: [{ what, count, change, curl,
// answer }] } as JSON.
//
// Requests go out in rounds, some at once.  All choices of a round are made before it, from the seed and what was
// answered until then.  What an answer shows, its ids above all, is what later requests are about.
//
// A request is one that the document allows, or has one fault.  Of the first kind none may be refused as
// invalid_request, of the second none may succeed.  Some are cards of a deck, so that no answer is left to chance.
import { readFileSync } from 'node:fs';

import { Deck, OUTSIDERS } from './fuzz-deck.mjs';
import { BROKEN, Choices, UNKNOWN, Words, makeValue, mutate } from './fuzz-values.mjs';
import { Wire } from './fuzz-wire.mjs';
import { read } from './schemas.mjs';

const document = read(process.argv[2]);
const plan = JSON.parse(readFileSync(process.argv[3], 'utf8'));
const allows = (steps, value) => document.misfits(value, steps, '').length === 0;

// A body or a filter as the service reads it: texts without what nobody sees at their ends.  One that is empty then is null
// where null is allowed.
const UNSEEN = /^[\s\u0085\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]+|[\s\u0085\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]+$/gu;
function asRead(value, empty = '') {
    if (typeof value === 'string') {
        const text = value.replace(UNSEEN, '');
        return text === '' ? empty : text;
    }
    return Array.isArray(value) ? value.map((one) => asRead(one, empty))
        : value && typeof value === 'object'
            ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, asRead(one, empty)])) : value;
}
const words = new Words(plan.words);
const nothing = new Words({});
const wire = new Wire(plan);

// Sentences of the document that say more than a schema can: why a request that its schema allows may be refused.
const SAID = [
    /^((\/customer)?\/email|\/reply_to) invalid/,    // an address
    /^\/email required/,    // for what goes with a new address
    /^\/filename (invalid|wrong_length)/,    // neither "." nor "..", and at most 255 bytes
    /^\/keys\/\* wrong_length/,    // at most 1,024 bytes
    /^\/content_type invalid/,    // not multipart/…
    /^(\/items\/\*)?\/storefront_variant_ids?(\/\*)? invalid/,    // of the product's platform
    /^\/items\/\*\/quantity invalid: Together/,    // 1,000 of a product and variant
    /^\/items\/\*\/storefront_product_id duplicate/,    // each product and variant once
    /^\/client_ip invalid/,    // the IPv4 or IPv6 address
    /^\/storefront_variant_ids required/,    // have to be given with another product
    /^\/(source_)?url invalid/,    // with the name of a host, without user and password
];

// --- what the document has -------------------------------------------------------------------------

const paths = Object.keys(document.openapi.paths);
const uploadUrl = paths.find((path) => document.openapi.paths[path].servers);

function describe(path, method) {
    const steps = ['paths', path, method];
    const { at: operation } = document.look(steps);
    return {
        id: operation.operationId,
        path,
        method,
        steps,
        open: operation.security?.length === 0,
        write: method !== 'get',
        body: operation.requestBody && [...steps, 'requestBody', 'content', 'application/json', 'schema'],
        needsBody: operation.requestBody?.required,
        parameters: (operation.parameters ?? []).map((_, i) => {
            const { at, real } = document.look([...steps, 'parameters', i]);
            return { ...at, steps: [...real, 'schema'] };
        }),
    };
}

const operations = paths.filter((path) => path !== uploadUrl).flatMap((path) =>
    Object.keys(document.openapi.paths[path]).filter((name) => document.openapi.paths[path][name].operationId)
        .map((method) => describe(path, method)))
    // Those whose body is no JSON have suites of their own.
    .filter(({ body, needsBody }) => !needsBody || document.look(body).at);

// The names of the components that a schema is, or may be.
function components(node) {
    const parts = [...(node?.allOf ?? []), ...(node?.oneOf ?? []), ...(node?.anyOf ?? [])];
    return [node?.$ref?.split('/').pop(), ...parts.flatMap(components)].filter(Boolean);
}

function answerOf(path, method, status) {
    const { at } = document.look(['paths', path, method, 'responses', String(status), 'content', 'application/json']);
    return at?.schema;
}

// { component: parameter } of things that have an id: what is at /things/{thing_id}, in the list at /things, or made there.
const nouns = {};
const toThings = paths.flatMap((path) =>
    [...path.matchAll(/\/\{\w+\}/g)].map((match) => path.slice(0, match.index + match[0].length)));
for (const path of [...new Set(toThings)].sort((one, other) => one.length - other.length)) {
    const [, above, parameter] = path.match(/^(.*)\/\{(\w+)\}$/);
    for (const schema of [answerOf(path, 'get', 200), answerOf(above, 'get', 200), answerOf(above, 'post', 201)]) {
        components(schema?.properties?.data?.items ?? schema).forEach((name) => (nouns[name] ??= parameter));
    }
}
const parameters = new Set(Object.values(nouns));

// Whether an operation makes what its path names, unless it is there.
function makes({ path, method }) {
    return components(answerOf(path, method, 201)).some((name) => path.includes(`{${nouns[name]}}`));
}
operations.forEach((operation) => (operation.makes = makes(operation)));

// --- what exists -----------------------------------------------------------------------------------

const things = new Map([...parameters].map((name) => [name, []]));    // each { parameter: id } with those above it
const tags = new Map();    // path => [entity tags], the latest last

function remember(parameter, above, id) {
    const thing = { ...above, [parameter]: id };
    const known = things.get(parameter);
    if (!known.some((one) => Object.keys(thing).every((name) => one[name] === thing[name]))) {
        things.set(parameter, [...known.slice(-100), thing]);
    }
    words.learn(parameter, id);
    return thing;
}

function forget(parameter, id) {
    things.set(parameter, things.get(parameter).filter((thing) => thing[parameter] !== id));
    words.forget(parameter, id);
}

// Remembers what is in an answer, which its schema tells.
function learn(node, value, above) {
    if (node === undefined || value === null || typeof value !== 'object') {
        return;
    }
    const behind = (part) => (part.$ref ? document.look(part.$ref.slice(2).split('/')).at : part);
    const parts = [node, ...(node.allOf ?? []), ...(node.oneOf ?? []), ...(node.anyOf ?? [])];
    const noun = parts.flatMap(components).find((name) => nouns[name]);
    const schemas = parts.map(behind).flatMap((part) => [part, ...(part.allOf ?? [])]).map(behind);
    if (Array.isArray(value)) {
        const items = schemas.find((schema) => schema.items)?.items;
        value.forEach((one) => learn(items, one, above));
        return;
    }
    const id = noun && (value[nouns[noun]] ?? value.id);
    const around = id === undefined ? above : remember(nouns[noun], above, id);
    for (const [name, member] of Object.entries(value)) {
        if (['string', 'number'].includes(typeof member)) {
            words.learn(name, member);
        } else {
            learn(schemas.find((schema) => schema.properties?.[name])?.properties[name], member, around);
        }
    }
}

// --- requests --------------------------------------------------------------------------------------

const STRANGE_IDS = ['0', '-1', '1.0', '9007199254740992', '99999999999999999999999', 'x', '%20', '%F0%9F%98%80', '+1',
    '1%27', '01', 'a'.repeat(3000), 'job_', 'upl_00000000000000000000000000'];
const STRANGE_QUERIES = ['nonsense=1', '=', 'a', 'limit=', 'limit=0', 'limit=101', 'limit=x', 'limit=1&limit=1', 'limit=1e1',
    'cursor=AAAA', 'cursor=', 'status=nonsense', '%zz=1', 'x=%ff', 'x=%00', 'shop_id=1', 'view=', 'created_since=now',
    'after=-1', 'type=%F0%9F%98%80'];
const OTHER_TYPES = ['text/plain', 'application/jsonx', 'multipart/form-data', 'x', 'application/xml; a=b'];
const OTHER_VERSIONS = ['x', '"', '', ',', 'W/"x"', '"a" "b"', Array(101).fill('"a"').join(',')];
const READERS = ['deliver', 'read'];
let unique = 0;

function filled({ path }, ids) {
    return path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(ids[name]));
}

function idempotencyKey({ write }) {
    return write ? { 'Idempotency-Key': `fuzz-${plan.seed}-${process.pid}-${++unique}` } : {};
}

function pathOf(choices, operation) {
    const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const known = things.get(names.at(-1)) ?? [];
    const chosen = known.length > 0 && !choices.chance(operation.makes ? 0.5 : 0.12)
        ? { ...choices.one(choices.chance(0.5) ? known.slice(-8) : known) } : {};
    if (names.length > 0 && choices.chance(0.04)) {
        delete chosen[names.at(-1)];
    }
    const request = { known: names.length > 0 && names.every((name) => name in chosen) };
    const missing = operation.parameters.filter((parameter) => parameter.in === 'path' && !(parameter.name in chosen));
    for (const { name, steps } of missing) {
        const made = makeValue(choices, document, nothing, steps, name);
        chosen[name] = choices.chance(0.3) || !allows(steps, made) ? UNKNOWN[document.look(steps).at.type] : made;
    }
    request.ids = chosen;
    request.path = filled(operation, chosen);
    return request;
}

function queryOf(choices, operation) {
    let valid = true;
    const chosen = operation.parameters.filter((parameter) => parameter.in === 'query' && choices.chance(0.25));
    const pairs = chosen.flatMap(({ name, steps }) => {
        const value = name === 'cursor'
            ? words.of(`${operation.id} cursor`).at(-1 - choices.below(2))
            : makeValue(choices, document, words, steps, name);
        if (value === undefined) {
            return [];
        }
        valid &&= name === 'cursor' || allows(steps, asRead(value));
        return [`${name}=${encodeURIComponent(String(value).replace(/\p{Surrogate}/gu, ''))}`];
    });
    // A cursor belongs to the filters that it came with.
    const cursor = pairs.some((pair) => pair.startsWith('cursor='));
    return { query: pairs.join('&'), valid, cursor };
}

function versionHeader(choices, operation, path) {
    const known = tags.get(path) ?? ['"1-20260131120000000.n4bQgYhMfWWaL-qg"'];
    const name = operation.write ? 'If-Match' : 'If-None-Match';
    if (!operation.parameters.some((parameter) => parameter.name === name) || !choices.chance(0.25)) {
        return {};
    }
    return { [name]: choices.one([known.at(-1), known.at(-1), known[0], '*', `"x", ${known.at(-1)}`, '"x"']) };
}

// A request that the document allows, but for what is unlikely, such as a value at its edge.
function plain(choices, operation) {
    const { query, valid, cursor } = queryOf(choices, operation);
    const request = { operation, key: 'full', method: operation.method.toUpperCase(), headers: idempotencyKey(operation),
        query, cursor, faults: valid ? [] : ['query'], ...pathOf(choices, operation) };
    if (operation.body && (operation.needsBody || choices.chance(0.7))) {
        setBody(request, makeValue(choices, document, words, operation.body, ''));
    }
    Object.assign(request.headers, versionHeader(choices, operation, request.path));
    return request;
}

function setBody(request, value) {
    request.faults = request.faults.filter((fault) => fault !== 'body');
    if (value === undefined) {
        delete request.body;
        delete request.headers['Content-Type'];
    } else {
        request.json = value;
        request.body = JSON.stringify(value);
        request.headers['Content-Type'] = 'application/json';
    }
    // An escape of half a character is no UTF-8.
    const fits = value === undefined ? !request.operation.needsBody
        : allows(request.operation.body, asRead(value)) && !/\\ud[89a-f]/.test(request.body);
    // An empty text is null, but not one that is in the place of a number.
    if (!fits && value !== undefined && allows(request.operation.body, asRead(value, null))) {
        request.unsure = true;
    } else if (!fits) {
        request.faults.push('body');
    }
}

// What may be done to a request that the document allows.
const CHANGES = {
    nothing() {},
    body(choices, request) {
        if (request.json !== undefined && request.operation.body) {
            setBody(request, mutate(choices, request.json));
        }
    },
    number(_, request) {
        // The same number, in another form.
        request.body = request.body?.replace(/:([0-9]{1,9})([,}])/, (_all, digits, end) => `:${digits}.0${end}`);
    },
    text(choices, request, kind = choices.one(Object.keys(BROKEN))) {
        if (request.operation.write) {
            request.body = BROKEN[kind](request.body ?? '{}');
            request.headers['Content-Type'] = 'application/json';
            request.faults = ['text'];
        }
    },
    type(choices, request) {
        if (request.operation.write) {
            request.body ??= '{}';
            request.headers['Content-Type'] = choices.one(OTHER_TYPES);
            request.faults = ['type'];
        }
    },
    query(choices, request, strange = choices.one(STRANGE_QUERIES)) {
        request.query = [request.query, strange].filter(Boolean).join('&');
        request.faults = ['query'];
    },
    id(choices, request) {
        const at = request.operation.path.split('/').findLastIndex((part) => part.startsWith('{'));
        if (at > 0) {
            const strange = choices.one(STRANGE_IDS);
            const place = request.operation.path.split('/')[at];
            const { steps } = request.operation.parameters.find(({ name }) => place === `{${name}}`);
            const isNumber = document.look(steps).at.type === 'integer' && /^[1-9][0-9]*$/.test(strange);
            request.path = request.path.split('/').map((part, i) => (i === at ? strange : part)).join('/');
            request.known = false;
            request.unsure = true;
            request.faults = allows(steps, isNumber ? Number(strange) : strange) ? request.faults : ['id'];
        }
    },
    idempotency(choices, request, key = choices.one(['', 'x'.repeat(256), ['x'.repeat(200), 'x'.repeat(200)]])) {
        if (request.operation.write) {
            request.headers['Idempotency-Key'] = key;
            request.faults = ['idempotency'];
        }
    },
    keyless(_, request) {
        if (request.operation.write) {
            delete request.headers['Idempotency-Key'];
            request.faults = ['idempotency'];
        }
    },
    version(choices, request) {
        if (request.operation.write) {
            request.headers['If-Match'] = choices.one(OTHER_VERSIONS);
            request.unsure = true;
        }
    },
    key(choices, request, key = choices.one([...READERS, 'stranger'])) {
        request.key = key;
        if (request.operation.write && request.key !== 'stranger' && !request.operation.open) {
            request.faults = ['key'];
        }
    },
    clear(_, request) {
        request.headers['X-Forwarded-For'] = '203.0.113.9';
        request.faults = ['clear'];
    },
    head(_, request) {
        if (request.method === 'GET') {
            request.method = 'HEAD';
        }
    },
};
// How often each is done.
const WEIGHTS = { nothing: 64, body: 14, number: 1, text: 3, query: 3, id: 3, idempotency: 1, version: 1, key: 8, head: 2 };
const METHODS = { post: 24, put: 14, patch: 16, get: 14, delete: 5 };

const successes = [];    // writes with their answers, to be sent again

// Sends a write that has succeeded again.
function repeated(choices) {
    const [request, answer] = choices.one(successes.slice(-30));
    return { ...request, twin: undefined, replays: answer };
}

const successful = {};    // how many requests of an operation have succeeded
const deck = new Deck(document, operations, plan.kept);

// Of two operations the one that has succeeded less often for its weight, so that each comes as far as the others.
function chooseOperation(choices) {
    const weights = Object.fromEntries(operations.map(({ id, method }) => [id, METHODS[method]]));
    const behind = (id) => (successful[id] ?? 0) / weights[id];
    const [id] = [choices.weighed(weights), choices.weighed(weights)].sort((one, other) => behind(one) - behind(other));
    return operations.find((operation) => operation.id === id);
}

// A request about kept things.
function asked({ operation, ids, body, headers, key, gives, then }) {
    const named = { ...plan.kept.ids, ...ids };
    const request = { operation, key: key ?? 'kept', method: operation.method.toUpperCase(), headers: {}, faults: [],
        path: filled(operation, named), gives, then, change: 'kept' };
    if (operation.body) {
        setBody(request, body ?? plan.kept.bodies[operation.id] ?? {});
    }
    Object.assign(request.headers, idempotencyKey(operation), headers);
    return request;
}

function makeRequest(choices) {
    if (successes.length > 0 && choices.chance(0.03)) {
        return repeated(choices);
    }
    const card = choices.chance(0.2) ? deck.deal(choices)
        : { operation: chooseOperation(choices), change: choices.weighed(WEIGHTS) };
    if (card.gives) {
        return asked(card);
    }
    const request = plain(choices, card.operation);
    CHANGES[card.change](choices, request, card.how);
    request.change = card.change;
    return request;
}

// A few requests at once; now and then one of them twice.
function makeRound(choices, most) {
    const size = Math.min(most, choices.one([1, 1, 2, 3, plan.connections]));
    const round = Array.from({ length: size }, () => makeRequest(choices));
    const write = round.find(({ operation, faults: wrong, replays, gives }) =>
        operation.write && wrong.length === 0 && !replays && !gives);
    if (write && size < most && choices.chance(0.2)) {
        const twin = { ...write };
        write.twin = twin;
        round.push(twin);
    }
    return round;
}

// --- verdicts --------------------------------------------------------------------------------------

const seen = {};
const faults = new Map();

function fault(what, request, answer) {
    const known = faults.get(what) ?? { what, count: 0, change: request.change, curl: wire.curl(request),
        answer: `${answer.status} ${answer.body.slice(0, 1500)}` };
    known.count++;
    faults.set(what, known);
}

function errorOf(answer) {
    try {
        return JSON.parse(answer.body).error ?? {};
    } catch {
        return {};
    }
}

// Messages and pointers without what differs from one request to another.
function alike(text) {
    return String(text).replaceAll(/\/\d+(?=\/|$)/g, '/*').replaceAll(/\b(upl|job|evt)_\w+/g, '$1').replaceAll(/\d+/g, '0')
        .slice(0, 300);
}

// Why a request of the document's was refused, unless the document says it.
function unsaid(request, error) {
    return (error.details ?? [{ pointer: null, code: error.code, message: error.message }])
        .map(({ pointer, code, message }) => `${pointer === null ? '' : alike(pointer)} ${code}: ${alike(message)}`)
        .filter((reason) => !SAID.some((said) => said.test(reason)));
}

const OUTSIDE = { revoked: 401, none: 401, broken: 401, suspended: 403, blocked: 403, deliver: 403, read: 403 };

function isReplay(answer, { status, body }) {
    return answer.status === status && answer.body === body && answer.headers['idempotent-replayed'] === 'true';
}

// What is wrong about the status, given what was wrong about the request.
function verdicts(request, answer) {
    const { operation } = request;
    const done = answer.status < 400;
    const error = errorOf(answer);
    if (request.gives) {
        const told = `${answer.status} ${error.code ?? ''}`;
        return told.startsWith(request.gives) ? [] : [`it should be ${request.gives}`];
    }
    if (!operation.open && (request.faults.includes('key') || OUTSIDERS.includes(request.key))) {
        return OUTSIDE[request.key] === answer.status ? [] : [`the key "${request.key}" gets ${answer.status}`];
    }
    if (request.key === 'stranger' && request.known && !('storefront_order_id' in request.ids) && done) {
        return ['another shop gets it'];
    }
    if (request.faults.length > 0) {
        return done ? [`${request.faults} is against the document, and it is answered with ${answer.status}`] : [];
    }
    if (request.replays && !isReplay(answer, request.replays)) {
        return [`${request.replays.status} is replayed as ${answer.status} ${answer.headers['idempotent-replayed']}`];
    }
    return answer.status === 400 && !request.unsure && !request.cursor
        ? unsaid(request, error).map((reason) => `the document allows it: ${reason}`) : [];
}

function judge(request, answer) {
    const { operation } = request;
    const code = answer.status >= 400 ? errorOf(answer).code ?? '' : '';
    const name = `${operation.id} ${answer.status} ${code}`;
    if (request.method !== 'HEAD') {
        seen[name] = (seen[name] ?? 0) + 1;
    }
    const found = document.faults({ ...operation, status: answer.status, headers: answer.headers,
        body: request.method === 'HEAD' ? undefined : answer.body });
    for (const what of [...(answer.status >= 500 ? ['5xx'] : []), ...found.map(alike), ...verdicts(request, answer)]) {
        fault(`${operation.id} ${answer.status} ${code}: ${what}`, request, answer);
    }
}

// Of two that are the same, one is done and the other has its answer.
function judgeTwins(request, answer, other) {
    const answers = [answer, other].filter(({ status }) => status < 400);
    const first = answers.filter(({ headers }) => headers['idempotent-replayed'] === undefined);
    if (answers.length > 0 && (first.length !== 1 || answers[0].body !== answers.at(-1).body)) {
        const what = `two at once get ${answer.status} ${other.status}, ${first.length} of them first`;
        fault(`${request.operation.id}: ${what}`, request, other);
    }
}

// --- what follows ----------------------------------------------------------------------------------

async function upload(url, method, headers, bytes) {
    const operation = { id: `${method} ${uploadUrl}`, path: uploadUrl, method: method.toLowerCase() };
    const request = { operation, key: 'none', method, url, headers, body: bytes };
    const answer = await wire.exchange(url, method, headers, bytes);
    for (const what of document.faults({ ...operation, ...answer })) {
        fault(`${operation.id} ${answer.status}: ${alike(what)}`, request, answer);
    }
}

// Sends the bytes of an upload to its URL, at once or in two pieces.
async function bring({ upload_url: url, size }, pieces) {
    const bytes = 'x'.repeat(size !== null && size < 100000 ? size : 10);
    const half = bytes.length >> 1;
    if (!pieces || half === 0) {
        await upload(url, 'PUT', {}, bytes);
        return;
    }
    for (const [at, piece] of [[0, bytes.slice(0, half)], [half, bytes.slice(half)]]) {
        await upload(url, 'PATCH', { 'Tus-Resumable': '1.0.0', 'Upload-Offset': at,
            'Content-Type': 'application/offset+octet-stream',
            ...(size === null ? { 'Upload-Length': bytes.length } : {}) }, piece);
    }
}

// What a shop's system does with an upload's URL, and a customer with that of a file.
async function follow(choices, { operation }, answer) {
    if (operation.id === 'createUpload' && choices.chance(0.8)) {
        await bring(JSON.parse(answer.body), choices.chance(0.4));
    }
    if (operation.id === 'getDownloadUrls') {
        const { files } = JSON.parse(answer.body);
        await Promise.all(files.slice(0, 2).map(({ url }) => wire.exchange(url, 'GET', {}, undefined)));
    }
}

// Has one of the next cards be about the upload that this one has begun.
async function followCard({ then }, answer) {
    const made = JSON.parse(answer.body);
    await bring(made, then.pieces);
    deck.next({ operation: operations.find(({ id }) => id === then.operation), gives: then.gives,
        ids: { upload_id: made.id }, body: { upload_id: made.id } });
}

async function settle(choices, request, answer) {
    if (request.gives) {
        if (request.then && answer.status === 201) {
            await followCard(request, answer);
        }
        return;
    }
    const { operation, ids } = request;
    const last = operation.path.match(/\{(\w+)\}$/)?.[1];
    if (request.key === 'stranger' || request.unsure || request.method === 'HEAD') {
        return;
    }
    if (last && (answer.status === 404 || answer.status === 204) && parameters.has(last) && choices.chance(0.9)) {
        forget(last, ids[last]);
    }
    if (answer.status < 200 || answer.status >= 300) {
        return;
    }
    successful[operation.id] = (successful[operation.id] ?? 0) + 1;
    if (answer.headers.etag) {
        tags.set(request.path, [...(tags.get(request.path) ?? []).slice(-2), answer.headers.etag]);
    }
    const schema = answerOf(operation.path, operation.method, answer.status);
    if (schema && operation.id !== 'getOpenapi') {
        const value = JSON.parse(answer.body);
        const above = Object.fromEntries(Object.entries(ids).filter(([name]) => parameters.has(name)));
        learn(schema, value, above);
        if (value.next_cursor) {
            words.learn(`${operation.id} cursor`, value.next_cursor);
        }
    }
    if (operation.write && !request.replays) {
        successes.splice(0, successes.length - 200);
        successes.push([request, answer]);
    }
    await follow(choices, request, answer);
}

const choices = new Choices(plan.seed);
for (let left = plan.requests; left > 0;) {
    const round = makeRound(choices, left);
    left -= round.length;
    const answers = await Promise.all(round.map((request) => wire.send(request)));
    for (const [i, request] of round.entries()) {
        judge(request, answers[i]);
        if (request.twin) {
            judgeTwins(request, answers[i], answers[round.indexOf(request.twin)]);
        }
        await settle(choices, request, answers[i]);
    }
}
process.stdout.write(JSON.stringify({ seen, faults: [...faults.values()] }));
wire.close();
