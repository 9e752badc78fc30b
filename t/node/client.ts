// The main job, by a client whose types are generated from the served document: a name or a type that
// differs from the document does not compile.
//
//   node client.js BASE_URL TOKEN SOURCE_URL PRODUCT ORDER
//
// Prints the answers as JSON, one member for each step.
import createClient from 'openapi-fetch';

import type { components, paths } from './schema.js';

declare const process: { argv: string[]; exitCode: number };

const [baseUrl, token, source_url, storefront_product_id, storefront_order_id] =
    process.argv.slice(2) as [string, string, string, string, string];
const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

type Failure = components['schemas']['Error'];

// The data of an answer; anything else ends the program with the error's own words.
function data<T>(answer: { data?: T; error?: Failure; response: Response }): T {
    if (answer.data === undefined) {
        throw new Error(`${answer.response.status} ${answer.error?.error.code}: ${answer.error?.error.message}`);
    }
    return answer.data;
}

// Node 18 has no global crypto; a counter will do, since the token's shop is used by this run alone.
let writes = 0;

function once(): { 'Idempotency-Key': string } {
    return { 'Idempotency-Key': `client-${++writes}` };
}

async function finished(job_id: string): Promise<components['schemas']['Job']> {
    for (;;) {
        const answer = await api.GET('/jobs/{job_id}', { params: { path: { job_id } } });
        const job = data(answer);
        if (job.status !== 'queued' && job.status !== 'running') {
            return job;
        }
        const seconds = Number(answer.response.headers.get('Retry-After') ?? 1);
        await new Promise<void>((resolve) => { setTimeout(resolve, seconds * 1000); });
    }
}

const ping = data(await api.GET('/ping'));

const body = { source_url, title: 'The manual' };
const header = once();
const imported = data(await api.POST('/assets', { params: { header }, body }));
const repeated = await api.POST('/assets', { params: { header }, body });
const job = await finished(imported.job.id);

const mapping = data(await api.POST('/mappings', {
    params: { header: once() },
    body: { storefront_product_id, file_ids: [imported.asset.id], download_type: 'FILES', download_limit: 3 },
}));

const path = { storefront_order_id };
const assigned = data(await api.POST('/orders/{storefront_order_id}/assignments', {
    params: { path, header: once() },
    body: {
        storefront_customer_id: '77',
        items: [{ storefront_product_id, quantity: 1 }],
        customer: { email: 'ada@buyer.example', first_name: 'Ada' },
    },
}));
const assignment_id = assigned.assignments[0]!.id;

const order = data(await api.GET('/orders/{storefront_order_id}', { params: { path } }));
const revoked = data(await api.POST('/orders/{storefront_order_id}/revoke', {
    params: { path, header: once() },
    body: { reason: 'Refunded' },
}));
const refused = await api.GET('/orders/{storefront_order_id}/assignments/{assignment_id}/download-urls', {
    params: { path: { storefront_order_id, assignment_id } },
});
const restored = data(await api.POST('/orders/{storefront_order_id}/restore', { params: { path, header: once() } }));
const urls = data(await api.GET('/orders/{storefront_order_id}/assignments/{assignment_id}/download-urls', {
    params: { path: { storefront_order_id, assignment_id } },
}));
const bytes = await (await fetch(urls.files[0]!.url)).text();

console.log(JSON.stringify({
    ping, imported, job, mapping, assigned, order, revoked, restored, urls, bytes,
    replayed: repeated.response.headers.get('Idempotent-Replayed'),
    refused: refused.error?.error.code,
}));
