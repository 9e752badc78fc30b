// What a small program on Fastify and pg does for GET /ping and POST /mappings, for `make bench`: it
// checks key, rate and body, and stores the answer with its Idempotency-Key in the same transaction.
// Two processes; PORT, API_TOKEN and libpq's variables are in the environment.
import cluster from 'node:cluster';
import { createHash, timingSafeEqual } from 'node:crypto';
import Fastify from 'fastify';
import pg from 'pg';

const pool = new pg.Pool({ max: 8 });
const digest = (text) => createHash('sha256').update(text).digest();
const keyOf = (token) => token.split('_')[2] ?? '';

const SCHEMA = `
  CREATE SCHEMA IF NOT EXISTS peer;
  CREATE TABLE IF NOT EXISTS peer.shop (id bigint PRIMARY KEY, name text NOT NULL);
  CREATE TABLE IF NOT EXISTS peer.api_key (id text PRIMARY KEY, shop_id bigint NOT NULL REFERENCES peer.shop, digest bytea NOT NULL);
  CREATE TABLE IF NOT EXISTS peer.asset (id bigint PRIMARY KEY, shop_id bigint NOT NULL REFERENCES peer.shop);
  CREATE TABLE IF NOT EXISTS peer.mapping (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    shop_id bigint NOT NULL REFERENCES peer.shop, product text NOT NULL, variants text NOT NULL,
    download_type text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(), UNIQUE (shop_id, product, variants));
  CREATE TABLE IF NOT EXISTS peer.mapping_file (mapping_id bigint NOT NULL REFERENCES peer.mapping,
    asset_id bigint NOT NULL REFERENCES peer.asset, position integer NOT NULL, PRIMARY KEY (mapping_id, asset_id));
  CREATE TABLE IF NOT EXISTS peer.idempotency (shop_id bigint NOT NULL, key bytea NOT NULL, fingerprint bytea NOT NULL,
    status smallint NOT NULL, body text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (shop_id, key));`;

async function prepareSchema(token) {
  await pool.query(SCHEMA);
  await pool.query("INSERT INTO peer.shop VALUES (1, 'Peer') ON CONFLICT DO NOTHING");
  await pool.query('INSERT INTO peer.asset VALUES (1, 1) ON CONFLICT DO NOTHING');
  await pool.query('INSERT INTO peer.api_key VALUES ($1, 1, $2) ON CONFLICT DO NOTHING', [keyOf(token), digest(token)]);
}

// Keys are remembered for as long as ours are without a question to the database.
const keys = new Map();

async function authenticate(token) {
  const id = keyOf(token);
  let known = keys.get(id);
  if (!known || known.at < Date.now() - 250) {
    const found = await pool.query({ name: 'key',
      text: 'SELECT k.shop_id, k.digest, s.name FROM peer.api_key k JOIN peer.shop s ON s.id = k.shop_id WHERE k.id = $1',
      values: [id] });
    if (found.rows.length === 0) return null;
    known = { ...found.rows[0], at: Date.now(), tokens: known?.tokens ?? 1e6 };
    keys.set(id, known);
  }
  return timingSafeEqual(known.digest, digest(token)) && known.tokens-- > 0 ? known : null;
}

const problem = (reply, status, code) => reply.code(status).send({ error: { code, status } });

async function write(client, shop, body, key, fingerprint) {
  const run = (name, text, values) => client.query({ name, text, values });
  const stored = await run('answer', 'SELECT fingerprint, status, body FROM peer.idempotency WHERE shop_id = $1 AND key = $2', [shop, key]);
  if (stored.rows.length > 0) {
    return stored.rows[0].fingerprint.equals(fingerprint) ? stored.rows[0] : { status: 409, body: '{"error":{"code":"idempotency_conflict"}}' };
  }
  const files = await run('files', 'SELECT id FROM peer.asset WHERE shop_id = $1 AND id = ANY ($2::bigint[])', [shop, body.file_ids]);
  if (files.rows.length !== body.file_ids.length) return { status: 422, body: '{"error":{"code":"unknown_reference"}}' };
  const { rows: [mapping] } = await run('mapping', `INSERT INTO peer.mapping (shop_id, product, variants, download_type)
    VALUES ($1, $2, '', $3) ON CONFLICT (shop_id, product, variants)
    DO UPDATE SET download_type = excluded.download_type, updated_at = now()
    RETURNING id, created_at, updated_at, xmax = 0 AS created`, [shop, body.storefront_product_id, body.download_type]);
  if (!mapping.created) await run('clear', 'DELETE FROM peer.mapping_file WHERE mapping_id = $1', [mapping.id]);
  await run('list', `INSERT INTO peer.mapping_file SELECT $1, f, i FROM unnest($2::bigint[]) WITH ORDINALITY AS t (f, i)`, [mapping.id, body.file_ids]);
  const answer = { status: mapping.created ? 201 : 200, body: JSON.stringify({ mapping: { id: Number(mapping.id),
    storefront_product_id: body.storefront_product_id, storefront_variant_ids: [], file_ids: body.file_ids,
    pack_ids: [], link_ids: [], license_key_tag_ids: [], download_type: body.download_type, is_active: true,
    download_limit: null, access_days: null, content: 'live', created_at: mapping.created_at, updated_at: mapping.updated_at } }) };
  await run('store', 'INSERT INTO peer.idempotency (shop_id, key, fingerprint, status, body) VALUES ($1, $2, $3, $4, $5)',
    [shop, key, fingerprint, answer.status, answer.body]);
  return answer;
}

async function transaction(effect) {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const answer = await effect(client);
    await client.query(answer.status < 300 ? 'COMMIT' : 'ROLLBACK');
    return answer;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

const BODY = { type: 'object', additionalProperties: false, required: ['storefront_product_id'], properties: {
  storefront_product_id: { type: 'string', pattern: '^gid://[a-z0-9-]{1,40}/Product/[0-9]+$' },
  file_ids: { type: 'array', items: { type: 'integer' }, default: [] },
  download_type: { enum: ['ZIP', 'FILES'], default: 'ZIP' } } };

async function serve() {
  const app = Fastify();
  app.addHook('onRequest', async (request, reply) => {
    request.shop = await authenticate((request.headers.authorization ?? '').replace(/^Bearer /, ''));
    if (!request.shop) return problem(reply, 401, 'unauthorized');
  });
  app.get('/api/v1/ping', async (request) => ({ ok: true, shop: { id: Number(request.shop.shop_id), name: request.shop.name } }));
  app.post('/api/v1/mappings', { schema: { body: BODY } }, async (request, reply) => {
    const idem = request.headers['idempotency-key'];
    if (!idem) return problem(reply, 400, 'idempotency_key_required');
    const shop = request.shop.shop_id;
    const answer = await transaction((client) => write(client, shop, request.body, digest(idem), digest(JSON.stringify(request.body))));
    return reply.code(answer.status).type('application/json').send(answer.body);
  });
  await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
}

if (cluster.isPrimary) {
  await prepareSchema(process.env.API_TOKEN);
  cluster.fork();
  cluster.fork();
  process.on('SIGTERM', () => process.exit());
} else {
  await serve();
}
