// Opens an order's page in a browser, presses its button and waits for the download.
//
//   node t/node/browser-download.mjs '{ "page": "https://localhost:1234/d/o/…", "folder": "…",
//       "instead": "127.0.0.1:2345", "certificate": "…", "resume": true }'
//
// folder is for the browser's profile and the downloaded file; instead is the address that the browser
// connects to for the page's host; certificate is the path of the certificate that it trusts.  With
// resume an interrupted download is resumed on chrome://downloads, as a person would.  Writes the
// result as a line of JSON: { "states": [ … ], "name": "…", "path": "…" }.
import { createHash, X509Certificate } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';

import { chromium } from 'playwright-core';

const PATIENCE = 60_000;

const wish = JSON.parse(process.argv[2]);
const downloads = `${wish.folder}/downloads`;

// Collects the states of the download; next() waits for the end of an attempt.
async function watch(context) {
    const states = [];
    let told = () => {};
    const session = await context.newCDPSession(context.pages()[0]);
    session.on('Browser.downloadProgress', ({ state }) => {
        if (states.at(-1) !== state) {
            states.push(state);
        }
        told();
    });
    await session.send('Browser.setDownloadBehavior',
        { behavior: 'allow', downloadPath: downloads, eventsEnabled: true });
    const next = () => new Promise((resolve, reject) => {
        const over = setTimeout(() => reject(new Error(`the download does not end: ${states}`)), PATIENCE);
        told = () => {
            if (states.at(-1) !== 'inProgress') {
                clearTimeout(over);
                resolve();
            }
        };
    });
    return { states, next };
}

async function resumeByHand(context) {
    const page = await context.newPage();
    await page.goto('chrome://downloads');
    await page.locator('#more-actions').click();
    await page.locator('#pause-or-resume').click();
    await downloadCompleted();
}

// A resumed download sends no events, so this waits until the file has its final name.
async function downloadCompleted() {
    const until = Date.now() + PATIENCE;
    while (readdirSync(downloads).some((name) => name.endsWith('.crdownload'))) {
        if (Date.now() > until) {
            throw new Error('the resumed download does not complete');
        }
        await new Promise((resolve) => { setTimeout(resolve, 20); });
    }
}

async function perform(context) {
    const { states, next } = await watch(context);
    const [page] = context.pages();
    await page.goto(wish.page);
    const ended = next();
    await page.locator('button').click();
    await ended;
    if (wish.resume && states.at(-1) === 'canceled') {
        await resumeByHand(context);
    }
    const [name] = readdirSync(downloads);
    return { states, name, path: `${downloads}/${name}` };
}

function publicKeyDigest(path) {
    const { publicKey } = new X509Certificate(readFileSync(path));
    return createHash('sha256').update(publicKey.export({ type: 'spki', format: 'der' })).digest('base64');
}

mkdirSync(downloads, { recursive: true });
const { host } = new URL(wish.page);
const context = await chromium.launchPersistentContext(`${wish.folder}/profile`, {
    executablePath: '/usr/bin/chromium',
    chromiumSandbox: false,
    timeout: PATIENCE,
    args: [
        `--host-resolver-rules=MAP ${host} ${wish.instead}`,
        `--ignore-certificate-errors-spki-list=${publicKeyDigest(wish.certificate)}`,
    ],
});
context.setDefaultTimeout(PATIENCE);
try {
    console.log(JSON.stringify(await perform(context)));
} finally {
    await context.close();
}
