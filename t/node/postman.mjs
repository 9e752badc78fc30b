// Checks that a Postman collection has one request for each operation of the OpenAPI document.
//
//   node t/node/postman.mjs openapi.json collection.json
import { readFileSync } from 'node:fs';

const [openapi, collection] = process.argv.slice(2).map((path) => JSON.parse(readFileSync(path, 'utf8')));

const METHODS = ['get', 'head', 'post', 'put', 'patch', 'delete', 'options'];

const operations = Object.entries(openapi.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => `${method.toUpperCase()} ${path}`));

function requests(items) {
    return items.flatMap((item) => (item.item
        ? requests(item.item)
        : [`${item.request.method} /${item.request.url.path.join('/').replace(/:(\w+)/g, '{$1}')}`]));
}
const found = requests(collection.item);

const missing = operations.filter((operation) => !found.includes(operation));
const extra = found.filter((request) => !operations.includes(request));
if (missing.length || extra.length || found.length !== operations.length) {
    console.error(`The collection lacks: ${missing.join(', ') || 'nothing'}; has besides: ${extra.join(', ') || 'nothing'}.`);
    process.exitCode = 1;
} else {
    console.log(`${found.length} requests, one for each operation`);
}
