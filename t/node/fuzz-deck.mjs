// The cards of the fuzzer: what no chance would give often enough, each dealt once before any comes again.
//
//   const deck = new Deck(document, operations, kept);
//   const card = deck.deal(choices);
//   deck.next(card)    one that has to follow soon
//
// A card is { operation, change, how }, something to do to a random request, or one whose answer is known:
// { operation, ids, body, headers, key, gives, then }.  That is about the things of t/lib/MDL/Kept.pm, which no random
// request changes.  Its answer begins with "gives", a status and a code.  What begins an upload has a "then": bytes are
// sent, in pieces or not, and { operation, gives } is asked of it.
import { UNKNOWN } from './fuzz-values.mjs';

export const OUTSIDERS = ['revoked', 'suspended', 'blocked', 'none', 'broken'];

function takes(operation, name) {
    return operation.parameters.some((parameter) => parameter.name === name);
}

// What every operation refuses, before it looks what there is.
function changes(operation) {
    return [
        ...OUTSIDERS.map((key) => ['key', key]),
        ['clear'],
        ['query', 'nonsense=1'],
        ...(takes(operation, 'cursor') ? [['query', 'cursor=AAAA']] : []),
        ...(operation.write ? [['key', 'deliver'], ['keyless'], ['idempotency'], ['type']] : []),
        ...(operation.write ? [['text', 'half'], ['text', 'large']] : []),
    ].map(([change, how]) => ({ operation, change, how }));
}

// Paths in which one id is of nothing.
function absent(operation, document) {
    const always = takes(operation, 'If-Match') ? { 'If-Match': '*' } : {};    // else POST may make what is not there
    return operation.parameters.filter((parameter) => parameter.in === 'path').map(({ name, steps }) =>
        ({ ids: { [name]: UNKNOWN[document.look(steps).at.type] }, headers: always, gives: '404' }));
}

// What it answers about things that are there.
function known(operation, document, kept) {
    return [
        ...absent(operation, document),
        ...(takes(operation, 'If-Match') ? [{ headers: { 'If-Match': '"x"' }, gives: '412' }] : []),
        ...(takes(operation, 'If-None-Match') ? [{ headers: { 'If-None-Match': '*' }, gives: '304' }] : []),
        ...(operation.write ? [{ headers: { 'Idempotency-Key': kept.spent }, gives: '409 idempotency_conflict' }] : []),
        ...kept.cards.filter((card) => card.operation === operation.id),
    ].map((card) => ({ ...card, operation }));
}

export class Deck {
    constructor(document, operations, kept) {
        this.cards = operations.flatMap((operation) => [...changes(operation), ...known(operation, document, kept)]);
        this.left = [];
        this.soon = [];
    }

    next(card) {
        this.soon.push(card);
    }

    deal(choices) {
        if (this.soon.length > 0) {
            return this.soon.shift();
        }
        this.left = this.left.length > 0 ? this.left : [...this.cards];
        return this.left.splice(choices.below(this.left.length), 1)[0];
    }
}
