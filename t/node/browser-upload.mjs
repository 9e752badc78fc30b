// Uploads a file from a page in a browser, and cuts the page's network on the way if cut is given.
//
//   node t/node/browser-upload.mjs '{ "listener": 3, "page": "http://127.0.0.1:1234/",
//       "upload_url": "…", "file": "…", "rate": 20000000, "by": "…", "cut": 30000000, "release": "…" }'
//
// listener is an open descriptor that listens at the page's address; rate is in bytes a second.  by is
// another address of the upload URL, for the page, which holds the bytes until the file release is made; cut
// is the number of uploaded bytes after which the network is cut.  Writes the result as a line of JSON.
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';

import { build } from 'esbuild';
import { chromium } from 'playwright-core';

const PATIENCE = 60_000;

const wish = JSON.parse(process.argv[2]);

async function servePage() {
    const bundle = await build({
        entryPoints: ['t/node/uppy-page.mjs'],
        bundle: true,
        write: false,
        logLevel: 'error',
    });
    const html = '<!DOCTYPE html><meta charset="utf-8"><title>Upload</title><input type="file">'
        + '<script src="/page.js"></script>';
    const server = createServer((request, response) => {
        const script = request.url === '/page.js';
        response.setHeader('Content-Type', script ? 'text/javascript' : 'text/html');
        response.end(script ? bundle.outputFiles[0].text : html);
    });
    await new Promise((resolve) => server.listen({ fd: wish.listener }, resolve));
    return server;
}

async function offset() {
    const headers = { 'Tus-Resumable': '1.0.0' };
    const answer = await fetch(wish.upload_url, { method: 'HEAD', headers });
    return Number(answer.headers.get('Upload-Offset'));
}

// Returns a function that limits the page's network to wish.rate, or switches it off.
async function networkOf(page) {
    const session = await page.context().newCDPSession(page);
    await session.send('Network.enable');
    return (offline) => session.send('Network.emulateNetworkConditions', {
        offline,
        latency: 0,
        downloadThroughput: -1,
        uploadThroughput: wish.rate,
    });
}

async function perform(page) {
    const result = {};
    const network = await networkOf(page);
    await network(false);
    await page.goto(wish.page);
    await page.setInputFiles('input', wish.file);
    await page.evaluate(([url, piece]) => globalThis.upload(url, piece), [wish.by ?? wish.upload_url, wish.piece]);
    if (wish.cut) {
        await page.waitForFunction((cut) => globalThis.seen.uploaded >= cut, wish.cut,
            { timeout: PATIENCE });
        const failed = page.waitForEvent('requestfailed', { timeout: PATIENCE });
        await network(true);
        // Chromium fails the request when something happens to it.
        writeFileSync(wish.release, '');
        result.failed = (await failed).failure().errorText;
        result.offset = await offset();
        await network(false);
    }
    const ended = await page.waitForFunction(() => globalThis.seen.ended, null,
        { timeout: PATIENCE });
    return { ...result, ...await ended.jsonValue() };
}

const server = await servePage();
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', chromiumSandbox: false, timeout: PATIENCE });
try {
    console.log(JSON.stringify(await perform(await browser.newPage())));
} finally {
    await browser.close();
    server.close();
}
