// Parses pages as browsers do: reads a JSON list of HTML texts from stdin, and writes a line of JSON
// for each: its parse errors, its elements with the names of their attributes, and its texts.
import { text } from 'node:stream/consumers';

import { parse } from 'parse5';

function walk(node, found) {
    if (node.nodeName === '#text') {
        found.texts.push(node.value);
    } else if (node.tagName) {
        found.elements.push([node.tagName, ...node.attrs.map((each) => each.name)].join(' '));
    }
    for (const child of node.childNodes ?? []) {
        walk(child, found);
    }
}

for (const html of JSON.parse(await text(process.stdin))) {
    const found = { errors: [], elements: [], texts: [] };
    walk(parse(html, { onParseError: (error) => found.errors.push(`${error.code}, line ${error.startLine}`) }), found);
    console.log(JSON.stringify(found));
}
