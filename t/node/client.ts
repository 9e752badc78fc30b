// The main job, by the client that tools/openapi2sdk makes of the served document: a name or a type that differs
// from the document does not compile.
//
//   node client.js BASE_URL TOKEN SOURCE_URL PRODUCT ORDER
//
// Prints the answers as JSON, one member for each step.
import { createClient } from './sdk/index.js';
import type { components, operations } from './sdk/index.js';

declare const process: { argv: string[]; exitCode: number };

const [baseUrl, token, source_url, storefront_product_id, storefront_order_id] =
    process.argv.slice(2) as [string, string, string, string, string];
const api = createClient(baseUrl, token);

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

type Page = operations['listAssignments']['responses'][200]['content']['application/json'];

// All assignments of an order, which come in pages, and how many pages there were.
async function assignments(path: { storefront_order_id: string }): Promise<{ ids: number[]; pages: number }> {
    const ids: number[] = [];
    for (let pages = 1, cursor: string | null = null; ; pages++) {
        const page: Page = data(await api.GET('/orders/{storefront_order_id}/assignments', {
            params: { path, query: cursor === null ? {} : { cursor } },
        }));
        ids.push(...page.data.map((each) => each.id));
        if (!page.has_more) {
            return { ids, pages };
        }
        cursor = page.next_cursor;
    }
}

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

// An order of 60 variants of the product.
const large = { storefront_order_id: `${storefront_order_id}0` };
data(await api.POST('/orders/{storefront_order_id}/assignments', {
    params: { path: large, header: once() },
    body: {
        storefront_customer_id: '77',
        items: Array.from({ length: 60 }, (_, i) => ({ storefront_product_id, storefront_variant_id: `${i + 1}` })),
    },
}));
const paged = await assignments(large);

const bytes = await (await fetch(urls.files[0]!.url)).text();

console.log(JSON.stringify({
    ping, imported, job, mapping, assigned, order, revoked, restored, urls, bytes, paged,
    replayed: repeated.response.headers.get('Idempotent-Replayed'),
    refused: refused.error?.error.code,
}));
