// An HTTP/2 client that reads each stream as far as it is told, over any number of connections.
//
//   node t/node/http2-reader.mjs <certificate>
//
// Reads commands from stdin and writes events, each a line of JSON:
//   { "do": "get", "id": "a", "on": "one", "origin": "https://localhost:1234", "path": "/…",
//     "headers": { … }, "until": 1000, "rate": 100000 }
//                     opens a stream on the connection "one"; once the head of the answer has come,
//                     reads until so many bytes, or all, at rate bytes a second
//   { "do": "go", "id": "a", "until": …, "rate": … }    reads on
//   { "do": "reset", "id": "a" }                        ends the stream
//   { "do": "drop", "id": "a", "on": "one" }            ends the stream's connection
//   { "event": "paused" | "end" | "failed", "id": "a", "status", "bytes", "sha256", "arrived", "error" }
//                     end: all bytes of Content-Length have come; arrived: the bytes that came over
//                     the stream's connection, read or not, frames included
//   { "event": "closed", "on": "one" }
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, constants } from 'node:http2';
import { createInterface } from 'node:readline';

const PIECE = 16384;
const PATIENCE = 10_000; // ms
const ANSWER = 60_000; // to a ping: the server's machine may be busy

const ca = readFileSync(process.argv[2]);
const connections = {};
const streams = {};

function tell(event) {
    process.stdout.write(`${JSON.stringify(event)}\n`);
}

function connection(on, origin) {
    if (!connections[on]) {
        const session = connect(origin, { ca });
        session.on('error', () => {});
        session.on('connect', (_, socket) => { session.arrived = () => socket.bytesRead; });
        // Node 18 drops running streams when it closes a session because of GOAWAY; let the server
        // close it.
        session.close = () => {};
        session.on('close', () => {
            delete connections[on];
            tell({ event: 'closed', on });
            Object.values(streams).filter((reader) => reader.session === session).forEach(lose);
        });
        connections[on] = session;
    }
    return connections[on];
}

// Notes that the stream's connection has ended, which node does not always tell the stream.
function lose(reader) {
    reader.lost = true;
    reader.wake();
}

// Node misses the end of a connection that it is writing to, so a ping without an answer means its
// end.
function probe(reader) {
    const gone = setTimeout(lose, ANSWER, reader);
    try {
        reader.session.ping(() => clearTimeout(gone));
    } catch {
        lose(reader);
    }
}

// Reports the end of a stream once.  "close" is not enough: node does not close a stream whose bytes
// had all arrived before the first was read.
function finish(reader, event) {
    reader.over = true;
    if (!reader.finished) {
        reader.finished = true;
        report(reader, event);
    }
}

function report(reader, event) {
    const { id, session, status, bytes, hash, error } = reader;
    tell({ event, id, status, bytes, sha256: hash.copy().digest('hex'), arrived: session.arrived?.(), error });
}

// Reads up to reader.until, which "go" may change meanwhile.
async function read(reader) {
    const { stream } = reader;
    reader.reading = true;
    await Promise.race([reader.answered, reader.closed]);
    while (reader.bytes < reader.until && !reader.over) {
        const count = Math.min(stream.readableLength, reader.until - reader.bytes, PIECE);
        if (count === 0) {
            stream.read(0);
            const silence = setTimeout(probe, PATIENCE, reader);
            await Promise.race([once(stream, 'readable'), reader.closed]);
            clearTimeout(silence);
        } else {
            const piece = stream.read(count);
            reader.bytes += piece.length;
            reader.hash.update(piece);
            if (reader.rate) {
                await new Promise((resolve) => { setTimeout(resolve, 1000 * piece.length / reader.rate); });
            }
        }
        reader.over ||= stream.readableLength === 0
            && (stream.readableEnded || stream.closed || reader.lost);
    }
    reader.reading = false;
    if (!reader.over) {
        report(reader, 'paused');
    } else if (reader.bytes === reader.size) {
        finish(reader, 'end');
    } else if (reader.lost) {
        finish(reader, 'failed');
    }
}

function get({ id, on, origin, path, headers, until, rate }) {
    const session = connection(on, origin);
    const stream = session.request({ ':path': path, ...headers });
    const hash = createHash('sha256');
    const reader = { id, session, stream, bytes: 0, hash, until: until ?? Infinity, rate };
    streams[id] = reader;
    reader.answered = new Promise((resolve) => {
        stream.on('response', (answer) => {
            reader.status = answer[':status'];
            reader.size = Number(answer['content-length']);
            resolve();
        });
    });
    stream.on('error', (error) => { reader.error = String(error.code ?? error); });
    reader.closed = new Promise((resolve) => {
        reader.wake = resolve;
        stream.on('end', resolve);
        stream.on('close', () => {
            finish(reader, reader.bytes === reader.size ? 'end' : 'failed');
            resolve();
        });
    });
    read(reader);
}

function go({ id, until, rate }) {
    const reader = streams[id];
    Object.assign(reader, { until: until ?? Infinity, rate });
    if (!reader.reading) {
        read(reader);
    }
}

const commands = {
    get,
    go,
    reset: ({ id }) => streams[id].stream.close(constants.NGHTTP2_CANCEL),
    drop: ({ id, on }) => {
        connections[on]?.destroy();
        finish(streams[id], 'failed');
    },
};

for await (const line of createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    commands[command.do](command);
}
process.exit(0);
