// What the fuzzer sends: values that a schema of the OpenAPI document allows, often those at its edges, and such
// values with one thing changed.  fast-check makes the strings and numbers.
//
//   const choices = new Choices(4711);
//   makeValue(choices, document, words, ['components', 'schemas', 'PackWrite'], '')
import fc from 'fast-check';

const TEXTS = ['', ' ', '\u0000', 'a\u0000b', '\u007f', '\ufeff', '\u202etxt.exe', 'e\u0301', '\ud800', '😀', '.', '..', 'a/b',
    '../../etc/passwd', 'a\\b', "' OR 1=1 --", '%00', '<script>', 'null', '0', '-1', '\r\nX: y', 'x'.repeat(256),
    'é'.repeat(128), 'x'.repeat(70000)];
const NUMBERS = [0, -0, -1, 0.5, 1.5, 2 ** 31 - 1, 2 ** 31, 2 ** 53 - 1, 2 ** 53, 2 ** 63, 1e300, -(2 ** 63)];
const NAMES = ['nonsense', '', 'a'.repeat(300), 'ключ', 'a/b~c', 'id', 'shop_id'];
const OTHERS = [null, true, false, [], {}, [null], { a: 1 }, [[]]];

// Ids of nothing.
export const UNKNOWN = { integer: '9007199254740991', string: '99999999999999999999' };

// Random choices that a seed decides (mulberry32).
export class Choices {
    constructor(seed) {
        this.state = seed >>> 0;
    }

    bits() {
        this.state = (this.state + 0x6d2b79f5) >>> 0;
        let t = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
        t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
        return (t ^ (t >>> 14)) >>> 0;
    }

    below(n) {
        return this.bits() % n;
    }

    chance(part) {
        return this.bits() < part * 2 ** 32;
    }

    one(list) {
        return list[this.below(list.length)];
    }

    // A key of { key: weight }.
    weighed(weights) {
        const entries = Object.entries(weights);
        let at = this.below(entries.reduce((sum, [, weight]) => sum + weight, 0));
        return entries.find(([, weight]) => (at -= weight) < 0)[0];
    }

    from(arbitrary) {
        return fc.sample(arbitrary, { seed: this.bits() | 0, numRuns: 1 })[0];
    }
}

// The values that were sent or answered under a name before, so that requests meet things that exist.
export class Words {
    constructor(given) {
        this.known = new Map();
        for (const [name, values] of Object.entries(given)) {
            values.forEach((value) => this.learn(name, value));
        }
        this.given = new Set(Object.keys(given));
    }

    learn(name, value) {
        const values = this.known.get(name) ?? [];
        if (!values.includes(value) && !this.given?.has(name)) {
            this.known.set(name, [...values.slice(-60), value]);
        }
    }

    forget(name, value) {
        this.known.set(name, (this.known.get(name) ?? []).filter((one) => one !== value));
    }

    isReference(name) {
        return this.given?.has(name) || /_ids?$|^customer$/.test(name);
    }

    // The list of one thing has its name: file_ids has file_id, which is an asset_id.
    of(name) {
        const ALIASES = { file_id: 'asset_id', license_key_tag_id: 'tag_id', customer: 'storefront_customer_id' };
        const one = this.known.has(name) ? name : name.replace(/s$/, '');
        return this.known.get(ALIASES[one] ?? one) ?? [];
    }
}

function text(choices, schema) {
    const most = schema.maxLength ?? 100;
    if (choices.chance(0.08)) {
        const unit = choices.one(['x', 'é', '€', '😀']);
        const length = choices.one([most, most + 1, schema.minLength ?? 1]);
        return length > 5000 && choices.chance(0.9) ? unit : unit.repeat(length);
    }
    if (schema.format === 'idn-email') {
        return choices.from(fc.emailAddress());
    }
    if (schema.format === 'uri') {
        return choices.from(fc.webUrl({ validSchemes: ['https'], withQueryParameters: true, withFragments: true }));
    }
    if (schema.format === 'date-time') {
        return new Date(choices.from(fc.integer({ min: Date.UTC(2020), max: Date.UTC(2031) }))).toISOString();
    }
    if (schema.pattern && !schema.pattern.includes('[^') && schema.pattern !== '\\S') {
        const made = choices.from(fc.stringMatching(new RegExp(schema.pattern, 'u')));
        return made.slice(0, most);
    }
    const unit = choices.one(['grapheme-ascii', 'grapheme', 'binary']);
    return choices.from(fc.string({ unit, minLength: schema.minLength ?? 0, maxLength: Math.min(most, 40) }));
}

function integer(choices, { minimum = 0, maximum = 2 ** 53 - 1 }) {
    return choices.chance(0.7)
        ? minimum + choices.below(Math.min(maximum - minimum, 20) + 1)
        : Number(choices.from(fc.bigInt({ min: BigInt(minimum), max: BigInt(maximum) })));
}

// What makes one of a list different from another: of objects, what they refer to.
function identity(words, item) {
    return JSON.stringify(item, (name, value) =>
        (name === '' || words.isReference(name) ? value ?? undefined : undefined));
}

function list(choices, document, words, real, schema, name) {
    const most = Math.min(schema.maxItems ?? 5, 300);
    const few = Math.max(schema.minItems ?? 0, choices.one([0, 1, 1, 2, 3, 6]));
    const length = choices.chance(0.01) ? most : Math.min(most, few);
    const items = Array.from({ length }, () => makeValue(choices, document, words, [...real, 'items'], name));
    return [...new Map(items.map((item) => [identity(words, item), item])).values()];
}

function object(choices, document, words, real, schema, required) {
    const part = choices.one([0, 0.3, 0.6, 1]);
    const made = {};
    for (const name of Object.keys(schema.properties ?? {})) {
        if (required.includes(name) || choices.chance(part)) {
            made[name] = makeValue(choices, document, words, [...real, 'properties', name], name);
        }
    }
    return made;
}

// A value that the schema allows, almost always: whoever needs to know asks the document.
export function makeValue(choices, document, words, steps, name) {
    const { at: schema, real } = document.look(steps);
    if (schema.const !== undefined || schema.enum) {
        return schema.const ?? choices.one(schema.enum);
    }
    const branches = schema.oneOf ? 'oneOf' : schema.anyOf ? 'anyOf' : undefined;
    if (branches) {
        const branch = choices.below(schema[branches].length);
        const { at } = document.look([...real, branches, branch]);
        return at.type || at.properties || at.enum
            ? makeValue(choices, document, words, [...real, branches, branch], name)
            : object(choices, document, words, real, schema, [...(schema.required ?? []), ...(at.required ?? [])]);
    }
    const known = words.of(name);
    const type = choices.one([schema.type].flat());
    const isScalar = ['string', 'integer', 'boolean'].includes(type);
    if (known.length > 0 && isScalar && choices.chance(words.isReference(name) ? 0.85 : 0.3)) {
        return choices.chance(0.5) ? choices.one(known.slice(-6)) : choices.one(known);
    }
    if (type === 'integer' && words.isReference(name) && choices.chance(0.5)) {
        return schema.maximum;    // of nothing
    }
    switch (type) {
    case 'object': return object(choices, document, words, real, schema, schema.required ?? []);
    case 'array': return list(choices, document, words, real, schema, name);
    case 'string': return text(choices, schema);
    case 'integer': return integer(choices, schema);
    case 'boolean': return choices.chance(0.5);
    default: return null;
    }
}

// Every place in a value, as [holder, name of the member].
function places(value, found = []) {
    for (const name of value !== null && typeof value === 'object' ? Object.keys(value) : []) {
        found.push([value, name]);
        places(value[name], found);
    }
    return found;
}

// The body with one thing changed; undefined if it is gone.
export function mutate(choices, body) {
    const whole = { body: structuredClone(body) };
    const [holder, name] = choices.one(places(whole));
    const value = holder[name];
    switch (choices.weighed({ text: 4, number: 3, other: 3, remove: 2, add: 2, repeat: 1 })) {
    case 'text': holder[name] = choices.one(TEXTS); break;
    case 'number': holder[name] = choices.one(NUMBERS); break;
    case 'other': holder[name] = choices.one(OTHERS); break;
    case 'remove': Array.isArray(holder) ? holder.splice(Number(name), 1) : delete holder[name]; break;
    case 'add':
        if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
            value[choices.one(NAMES)] = choices.one(OTHERS);
        }
        break;
    default:
        if (Array.isArray(value) && value.length > 0) {
            value.push(...Array(choices.one([1, 300])).fill(value[0]));
        }
    }
    return whole.body;
}

// Texts that are no JSON by the document's rules, made from one that is.
export const BROKEN = {
    half: (json) => json.slice(0, json.length / 2) + '[',
    trailing: (json) => `${json} x`,
    second: (json) => json + json,
    mark: (json) => `\ufeff\ufeff${json}`,
    duplicate: (json) => (json === '{}' ? '{"a":1,"a":1}' : json.replace(/^\{("(?:[^"\\]|\\.)*":)/, '{$1null,$1')),
    bytes: () => Buffer.from('7b2261223a22c328ff227d', 'hex'),
    surrogate: () => '{"a":"\\ud800"}',
    control: () => '{"a":"\u0001"}',
    deep: () => `{"a":${'['.repeat(16)}${']'.repeat(16)}}`,
    deepest: () => '{"a":'.repeat(20000),
    many: () => `{"a":[${Array(10001).fill(0)}]}`,
    huge: () => `{"a":1e${'9'.repeat(400)}}`,
    zeros: () => '{"a":01}',
    nan: () => '{"a":NaN}',
    quotes: () => "{'a':1}",
    comment: (json) => `/* a */${json}`,
    list: () => '[1]',
    scalar: () => '"text"',
    large: (json) => json + ' '.repeat(9 * 1024 * 1024),
};
