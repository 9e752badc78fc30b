// Finishes the Postman collection that openapi2postmanv2 has made of the OpenAPI document: optional parameters are off,
// each write has an Idempotency-Key of its own, and example answers are left out, which are most of its size.  In front
// comes a folder with the main job, whose requests pass their ids on.  Checks that there is one request for each
// operation.
//
//   node t/node/postman.mjs openapi.json converted.json collection.json
import { readFileSync, writeFileSync } from 'node:fs';

const [openapi, collection] = process.argv.slice(2, 4).map((path) => JSON.parse(readFileSync(path, 'utf8')));

const METHODS = ['get', 'head', 'post', 'put', 'patch', 'delete', 'options'];

// What a request of the main job sends in place of the document's example, and what it keeps of the answer.
const MAIN_JOB = [
    {
        operation: 'importAsset',
        body: '{"source_url": "{{source_url}}", "title": "Manual"}',
        keeps: { asset_id: 'asset.id', job_id: 'job.id' },
    },
    {
        operation: 'getJob',
        path: { job_id: '{{job_id}}' },
        // A runner asks again until the job has ended.
        script: `
if (['queued', 'running'].includes(pm.response.json().status)) {
    pm.execution.setNextRequest(pm.info.requestName);
} else {
    pm.test('the job has succeeded', () => pm.expect(pm.response.json().status).to.equal('succeeded'));
}`,
    },
    {
        operation: 'saveMapping',
        body: '{"storefront_product_id": "{{product_id}}", "file_ids": [{{asset_id}}], "download_type": "FILES"}',
    },
    {
        operation: 'assignOrder',
        path: { storefront_order_id: '{{order_id}}' },
        body: '{"storefront_customer_id": "77", "items": [{"storefront_product_id": "{{product_id}}"}], "send_email": true,\n'
            + ' "customer": {"email": "{{email}}"}}',
    },
];

const VARIABLES = {
    bearerToken: '',
    source_url: 'https://files.example.com/manual.pdf',
    product_id: 'gid://storefront/Product/123',
    order_id: '5001',
    email: 'ada@example.com',
};

function requests(items) {
    return items.flatMap((item) => (item.item ? requests(item.item) : [item]));
}

function place(item) {
    return `${item.request.method} /${item.request.url.path.join('/').replace(/:(\w+)/g, '{$1}')}`;
}

function optionalOff(parameters) {
    for (const each of parameters) {
        each.disabled = each.description !== undefined && !each.description.content.startsWith('(Required)');
    }
}

function tidy(item) {
    const { header, url } = item.request;
    item.response = [];
    optionalOff(header);
    optionalOff(url.query);
    for (const each of header.filter(({ key }) => key === 'Idempotency-Key')) {
        each.value = '{{$guid}}';
    }
}

function mainJob(items) {
    return MAIN_JOB.map(({ operation, path = {}, body, keeps = {}, script = '' }) => {
        const [at] = operations.filter(({ id }) => id === operation);
        const item = structuredClone(items.find((each) => place(each) === at.place));
        for (const each of item.request.url.variable) {
            each.value = path[each.key] ?? each.value;
        }
        if (body !== undefined) {
            item.request.body.raw = body;
        }
        const lines = Object.entries(keeps).map(([name, member]) => `pm.collectionVariables.set('${name}', pm.response.json().${member});`);
        item.event = [{
            listen: 'test',
            script: {
                type: 'text/javascript',
                exec: ["pm.test('it is answered by 2xx', () => pm.response.to.be.success);", ...lines, ...script.trim().split('\n')],
            },
        }];
        delete item.id;
        return item;
    });
}

const operations = Object.entries(openapi.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({ id: item[method].operationId, place: `${method.toUpperCase()} ${path}` })));
const items = requests(collection.item);
const found = items.map(place);

const missing = operations.filter((operation) => !found.includes(operation.place)).map((operation) => operation.place);
const extra = found.filter((request) => !operations.some((operation) => operation.place === request));
if (missing.length || extra.length || found.length !== operations.length) {
    console.error(`The collection lacks: ${missing.join(', ') || 'nothing'}; has besides: ${extra.join(', ') || 'nothing'}.`);
    process.exit(1);
}
items.forEach(tidy);
collection.item.unshift({ name: 'The main job', description: 'Fill in the variables of the collection, and run this folder.', item: mainJob(items) });
collection.variable.push(...Object.entries(VARIABLES).map(([key, value]) => ({ key, value })));
writeFileSync(process.argv[4], JSON.stringify(collection));
console.log(`${found.length} requests, one for each operation`);
