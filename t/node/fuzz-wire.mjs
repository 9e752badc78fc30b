// How the fuzzer sends a request, and how a person can send it by hand.
//
//   const wire = new Wire(plan);    { base, connections, keys }
//   const { status, headers, body } = await wire.send(request);
//   const { status, headers, body } = await wire.exchange(url, 'PUT', headers, bytes);
//   wire.curl(request)    the same request as a command
//   wire.close()
import http from 'node:http';

const PATIENCE = 60_000;    // ms

function quoted(text) {
    return `'${String(text).replaceAll("'", `'\\''`)}'`;
}

// Whether the machine is so busy that a client is to come again: a lock was waited for in vain.
function isToRepeat({ status, headers, body }) {
    return headers['retry-after'] && (status === 503 || body.includes('"idempotency_conflict_in_progress"'));
}

export class Wire {
    constructor({ base, connections, keys }) {
        this.base = base;
        this.keys = keys;
        this.agent = new http.Agent({ keepAlive: true, maxSockets: connections });
    }

    close() {
        this.agent.destroy();
    }

    authorization({ operation, key }) {
        const token = this.keys[key] ?? 'adk_live_nonsense';
        return operation.open || key === 'none' ? {} : { Authorization: `Bearer ${token}` };
    }

    target({ url, path, query }) {
        return (url ?? this.base + path) + (query ? `?${query}` : '');
    }

    // The server may close an idle connection in the moment in which it is used again.
    async exchange(url, method, headers, body) {
        for (;;) {
            try {
                return await this.once(url, method, headers, body);
            } catch (error) {
                if (!['ECONNRESET', 'EPIPE'].includes(error.code) || !error.reused) {
                    throw error;
                }
            }
        }
    }

    once(url, method, headers, body) {
        return new Promise((resolve, reject) => {
            const length = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };
            const sent = http.request(url, { method, agent: this.agent, headers: { ...headers, ...length } });
            sent.on('response', (answer) => {
                const parts = [];
                answer.on('data', (part) => parts.push(part));
                answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers,
                    body: Buffer.concat(parts).toString() }));
                answer.on('error', reject);
            });
            sent.on('error', (error) => reject(Object.assign(error, { reused: sent.reusedSocket })));
            sent.end(body);
        });
    }

    async send(request) {
        const given = Object.fromEntries(Object.entries(request.headers).filter(([, value]) => value !== undefined));
        const began = performance.now();
        const headers = { ...this.authorization(request), ...given };
        try {
            for (;;) {
                const answer = await this.exchange(this.target(request), request.method, headers, request.body);
                if (!isToRepeat(answer) || performance.now() - began > PATIENCE) {
                    return answer;
                }
                await new Promise((resolve) => { setTimeout(resolve, 1000 * answer.headers['retry-after']); });
            }
        } catch (error) {
            const ms = Math.round(performance.now() - began);
            return { status: 0, headers: {}, body: `${error} (${error.code}) after ${ms} ms` };
        }
    }

    // The key is in a variable, since logs hold none.
    curl(request) {
        const lines = [`curl -i -X ${request.method} ${quoted(this.target(request))}`];
        if (this.keys[request.key] && !request.operation.open) {
            lines.push(`-H "Authorization: Bearer $${request.key.toUpperCase()}"`);
        }
        for (const [name, value] of Object.entries(request.headers)) {
            [value].flat().forEach((one) => lines.push(`-H ${quoted(`${name}: ${one}`)}`));
        }
        if (request.body !== undefined) {
            const text = request.body.toString();
            const shown = text.length > 4000 ? `${text.slice(0, 4000)} … (${text.length})` : text;
            lines.push(`--data-binary ${quoted(shown)}`);
        }
        return lines.join(' \\\n    ');
    }
}
