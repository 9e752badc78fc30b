// A shop's system that is told of events by webhooks.  The specification's own library verifies them.
//
//   node t/node/receiver.mjs FOLDER
//
// Prints its port on 127.0.0.1 and ends when its input does.  FOLDER/plan.json says, for each path, what it does
// with a webhook (MDL::Receiver); each is a line of JSON in FOLDER/received, with whether the secret of its path
// verifies it.
import { appendFileSync, readFileSync } from 'node:fs';
import http from 'node:http';

import { Webhook } from 'standardwebhooks';

const folder = process.argv[2];
const seen = new Map();

function verified(secret, body, headers) {
    try {
        return new Webhook(secret).verify(body, headers) !== undefined;
    } catch {
        return false;
    }
}

function answer(response, how) {
    if (how.hold) {
        return;    // until the other side has had enough
    }
    response.writeHead(how.status ?? 200, how.headers ?? {});
    if (how.cut) {
        response.write('{"half":');
        setTimeout(() => response.destroy(), 50);
    } else {
        response.end((how.body ?? '').repeat(how.repeat ?? 1));
    }
}

const server = http.createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
        const body = Buffer.concat(parts).toString();
        const plan = JSON.parse(readFileSync(`${folder}/plan.json`))[request.url] ?? { answers: [{ status: 404 }] };
        const count = seen.get(request.url) ?? 0;
        seen.set(request.url, count + 1);
        appendFileSync(`${folder}/received`, JSON.stringify({
            path: request.url,
            method: request.method,
            id: request.headers['webhook-id'],
            signatures: (request.headers['webhook-signature'] ?? '').split(' ').length,
            verified: (plan.secrets ?? []).map((secret) => verified(secret, body, request.headers)),
            type: request.headers['content-type'],
            body,
        }) + '\n');
        const answers = plan.answers ?? [{}];
        answer(response, answers[Math.min(count, answers.length - 1)]);
    });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
