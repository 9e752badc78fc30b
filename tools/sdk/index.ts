import createFetchClient from 'openapi-fetch';
import type { Client } from 'openapi-fetch';

import type { paths } from './schema.js';

export type { components, operations, paths } from './schema.js';

/** A client of the API below baseUrl ("https://downloads.example.com/api/v1"), with a key's token. */
export function createClient(baseUrl: string, token: string): Client<paths> {
    return createFetchClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
}
