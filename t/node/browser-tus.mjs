// Uploads files on the settings' page in a browser, over connections that it cuts.
//
//   node t/node/browser-tus.mjs '{ "page": "http://127.0.0.1:1234/settings/1/files/uploads", "user": "staff",
//       "port": 2345, "server": 1234, "small": ["…"], "large": "…", "size": 200000000, "plain": "…",
//       "replaced": 1 }'
//
// port is that of the upload URLs, which the script passes on to the server's. Writes the result as a line of
// JSON: the ids of the assets that "small", "large" and "plain", a file of a browser without JavaScript, became;
// "buttons", how many those that are there still show; "cuts"; "told", what a new version of the asset
// "replaced" says of its buyers; "bar" and "offset" of the large file while it was paused, as parts of it; and
// "wrong", what the console complained about.
import { readFile } from 'node:fs/promises';
import { createServer, connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';

import { chromium } from 'playwright-core';

const PATIENCE = 300_000;

const wish = JSON.parse(process.argv[2]);
const result = { cuts: 0, wrong: [] };
const sockets = new Set();
const marks = []; // { at, reach }: what to do when so many bytes have been sent to the server
let sent = 0;
let stalled = null; // the connection of which nothing is passed on any more
const onward = new Map(); // by each connection, that to the server
let held = false; // whether no connection is passed on

function cut() {
    result.cuts++;
    for (const socket of sockets) {
        socket.destroy();
    }
}

const relay = createServer((client) => {
    if (held) {
        client.destroy();
        return;
    }
    const server = connect(wish.server, '127.0.0.1');
    onward.set(client, server);
    for (const [socket, other] of [[client, server], [server, client]]) {
        sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
            sockets.delete(socket);
            other.destroy();
        });
    }
    server.pipe(client);
    client.on('data', (bytes) => {
        sent += bytes.length;
        if (!server.write(bytes)) {
            client.pause();
            server.once('drain', () => client !== stalled && client.resume());
        }
        if (marks.length > 0 && sent >= marks[0].at) {
            marks.shift().reach(client);
        }
    });
});

// Resolves once so many bytes have been sent, after act, which gets the connection.
function reached(at, act) {
    return new Promise((resolve) => {
        marks.push({ at, reach: (client) => { act(client); resolve(); } });
    });
}

// Waits until the server has read what was passed on to it, of which the kernel's queues know.
async function isRead(socket) {
    const at = (port) => `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
    const ends = [at(socket.localPort), at(wish.server)];
    const until = Date.now() + PATIENCE;
    for (let waits = true; waits && Date.now() < until; await setTimeout(20)) {
        const rows = (await readFile('/proc/net/tcp', 'utf8')).split('\n').map((row) => row.trim().split(/\s+/))
            .filter(([, local, remote]) => ends.includes(local) && ends.includes(remote));
        waits = socket.writableLength > 0 || rows.some((row) => row[4] !== '00000000:00000000');
    }
}

function idOf(href) {
    return Number(href.split('/').pop());
}

async function ended(page, count) {
    const links = page.locator('#running li a:visible');
    await links.nth(count - 1).waitFor();
    return (await links.evaluateAll((all) => all.map((each) => each.href))).map(idOf);
}

async function open(browser, options) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    page.on('console', (message) => {
        if (message.type() === 'error' && !/^Failed to load resource/.test(message.text())) {
            result.wrong.push(message.text());
        }
    });
    page.on('dialog', (dialog) => dialog.accept()); // of leaving the page while it uploads
    page.on('pageerror', (error) => result.wrong.push(error.message));
    // Chromium keeps them. Playwright's httpCredentials would have it hand over every body.
    await page.goto(wish.page.replace('://', `://${wish.user}:secret@`));
    await page.goto(wish.page);
    return page;
}

async function barOf(page) {
    return page.locator('#running progress').evaluate((bar) => bar.value);
}

async function offsetOf(url) {
    const answer = await fetch(url, { method: 'HEAD', headers: { 'Tus-Resumable': '1.0.0' } });
    return Number(answer.headers.get('Upload-Offset')) / wish.size;
}

async function uploadLarge(page) {
    let url;
    page.on('request', (request) => {
        if (request.method() === 'PATCH') {
            url = request.url();
        }
    });
    sent = 0;
    const stopped = reached(wish.size * 0.2, cut)
        .then(() => reached(wish.size * 0.4, (client) => {
            stalled = client;
            client.pause();
        }));
    await page.setInputFiles('#files', wish.large);
    await stopped;
    // The page asks how far the server is for a moment only.
    await isRead(onward.get(stalled));
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Paused').waitFor();
    stalled.destroy(); // nobody reads there that the browser has closed it
    // The last that is said comes before the server is asked how far it is.
    const deadline = Date.now() + PATIENCE;
    do {
        result.offset = await offsetOf(url);
        result.bar = await barOf(page);
    } while (Math.abs(result.bar - result.offset) > 0.01 && Date.now() < deadline);
    const again = reached(wish.size * 0.6, cut).then(() => reached(wish.size * 0.8, () => {
        held = true;
        cut();
    }));
    await page.getByRole('button', { name: 'Go on' }).click();
    await again;
    await page.reload();
    await page.locator('#unfinished li').waitFor();
    held = false;
    await page.setInputFiles('#files', wish.large);
    [result.large] = await ended(page, 1);
    result.sent = sent;
}

async function uploadPlain(page) {
    await page.getByRole('button', { name: 'Choose a file' }).click();
    await page.setInputFiles('#file', wish.plain);
    await page.getByRole('button', { name: 'Upload', exact: true }).click();
    await page.getByText('The file is uploaded.').waitFor();
    result.plain = idOf(await page.getByRole('link', { name: 'See the file' }).getAttribute('href'));
}

async function replace(page) {
    await page.goto(`${wish.page}?replaces=${wish.replaced}`);
    await page.locator('[name=notify]').check();
    await page.setInputFiles('#files', wish.plain);
    await ended(page, 1);
    result.told = await page.locator('#running .said').textContent();
}

await new Promise((resolve) => { relay.listen(wish.port, '127.0.0.1', resolve); });
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', chromiumSandbox: false, timeout: PATIENCE });
try {
    const page = await open(browser);
    await page.setInputFiles('#files', wish.small);
    result.small = await ended(page, wish.small.length);
    result.buttons = await page.locator('#running').getByRole('button').count();
    await page.reload();
    await uploadLarge(page);
    await uploadPlain(await open(browser, { javaScriptEnabled: false }));
    await replace(page);
    console.log(JSON.stringify(result));
} finally {
    await browser.close();
    relay.close();
}
