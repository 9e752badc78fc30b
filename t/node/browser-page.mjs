// Performs a list of tasks on a customer's page in a browser, and writes the result of each as a line
// of JSON.
//
//   node t/node/browser-page.mjs '[{ "do": "look", "url": "…", "name": "held", "folder": "…" }, …]'
//
// The tasks; each opens url, and all but "look" and "script" disable JavaScript:
//
//   look    checks the HTML by html-validate, and in each of views ({ "name", "width", "height", "scheme": "light" or "dark", "axe" }) reports
//           the elements that are cut off and, if axe is true, its violations; language and method are
//           optional, and so is folder, which gets a screenshot of each (name.png)
//   press   clicks the element that the selector click finds, and saves the download in folder
//   follow  clicks such a link to an https URL, which can't be reached, and reports the URL and the
//           Referer header of the request
//   reach   reports how many primary buttons a phone shows, where the last ends, and the folded lists
//   script  runs the page's script, in the given timezone and perhaps in Instagram's browser, and
//           reports what it does with a date, a key and the filter, and what is printed
//   wait    writes a first line with the number of elements that selector finds, then waits until the
//           page shows one by itself
import { createReadStream } from 'node:fs';
import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';

import { HtmlValidate } from 'html-validate/node';
import { chromium } from 'playwright-core';

const PATIENCE = 60_000;
const validator = new HtmlValidate({ extends: ['html-validate:recommended'] });
const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    chromiumSandbox: false,
    timeout: PATIENCE,
});

// Opens a tab and collects its errors.
async function newPage(task, options) {
    const context = await browser.newContext({
        viewport: { width: 390, height: 844 },
        locale: task.language ?? 'en-GB',
        ...options,
    });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    const wrong = [];
    page.on('console', (message) => {
        if (message.type() === 'error' && !/^Failed to load resource: the server responded/.test(message.text())) {
            wrong.push(message.text());
        }
    });
    page.on('pageerror', (error) => wrong.push(error.message));
    page.on('requestfailed', (request) => wrong.push(`${request.url()}: ${request.failure().errorText}`));
    return { page, wrong };
}

// A page that refreshes itself is looked at as it came.
async function answerOnce(route, method) {
    const response = await route.fetch({ method });
    const { refresh, ...headers } = response.headers();
    await route.fulfill({ response, headers });
}

// Tasks of the same kind and language share a tab, since a new one takes a second.
const pages = {};

async function open(task, options) {
    const { page, wrong } = pages[`${task.do} ${task.language} ${task.app}`] ??= await newPage(task, options);
    wrong.length = 0;
    if (task.do === 'look') {
        await page.route(task.url, (route) => answerOnce(route, task.method), { times: 1 });
    }
    return { page, wrong, answer: await page.goto(task.url) };
}

// A dark page differs from a light one of the same size in its colours alone.
async function violations(page, scheme) {
    return page.evaluate(async (rules) => {
        const { violations: found } = await globalThis.axe.run(document, { resultTypes: ['violations'], ...rules });
        return found.map((each) => `${each.id}: ${each.nodes.map((node) => node.html).join(' ')}`);
    }, scheme === 'dark' ? { runOnly: ['color-contrast', 'link-in-text-block'] } : {});
}

// The elements that are cut off at the right or need sideways scrolling.
function misfits(page) {
    return page.evaluate(() => {
        const width = document.documentElement.clientWidth;
        return [...document.querySelectorAll('body *')]
            .filter((each) => !each.closest('.unseen') && each.getBoundingClientRect().right > width + 1)
            .map((each) => each.outerHTML.slice(0, 100));
    });
}

async function view(page, folder, { name, width, height, scheme, axe: wanted }) {
    const now = page.viewportSize();
    if (now.width !== width || now.height !== height) {
        await page.setViewportSize({ width, height });
    }
    await page.emulateMedia({ colorScheme: scheme });
    const seen = {
        paper: await page.evaluate(() => getComputedStyle(document.querySelector('main')).backgroundColor),
        misfits: await misfits(page),
        violations: wanted && await violations(page, scheme),
    };
    if (folder) {
        await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
    }
    return seen;
}

async function faults(response) {
    const { results } = await validator.validateString(await response.text());
    return results.flatMap((result) => result.messages).map((each) => `${each.ruleId}: ${each.message} (line ${each.line})`);
}

async function look(task) {
    const { page, answer, wrong } = await open(task);
    const seen = {
        status: answer.status(),
        language: await page.evaluate(() => document.documentElement.lang),
        headings: await page.locator('h1').count(),
        text: await page.locator('main').innerText(),
        views: [],
    };
    await page.evaluate(axe);
    await page.evaluate(() => document.querySelectorAll('details').forEach((each, i) => { each.open = i === 0; }));
    for (const each of task.views) {
        seen.views.push(await view(page, task.folder, each));
    }
    return { ...seen, wrong: [...wrong], faults: await faults(answer) };
}

async function digest(path) {
    const hash = createHash('sha256');
    for await (const piece of createReadStream(path)) {
        hash.update(piece);
    }
    return hash.digest('hex');
}

async function press(task) {
    const { page } = await open(task, { javaScriptEnabled: false, acceptDownloads: true });
    const started = page.waitForEvent('download');
    await page.click(task.click);
    const download = await started;
    const name = download.suggestedFilename();
    await download.saveAs(`${task.folder}/${name}`);
    return {
        name,
        folder: await readdir(task.folder),
        sha256: await digest(await download.path()),
        url: page.url(),
    };
}

async function follow(task) {
    const { page } = await open(task, { javaScriptEnabled: false });
    const sent = page.waitForEvent('requestfailed', (request) => request.url().startsWith('https://'));
    await page.click(task.click);
    const request = await sent;
    return { url: request.url(), referrer: request.headers().referer ?? null };
}

async function reach(task) {
    const { page } = await open(task, { javaScriptEnabled: false });
    const buttons = page.locator('button:not(.second):visible');
    const box = await buttons.last().boundingBox();
    return {
        buttons: await buttons.count(),
        last: box.y + box.height,
        folded: await page.locator('details.files').count(),
    };
}

async function script(task) {
    const { page } = await open(task, {
        timezoneId: task.timezone,
        permissions: ['clipboard-read', 'clipboard-write'],
        userAgent: task.app && 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Instagram 350.0.0.0',
    });
    const seen = { printed: 0 };
    if (task.app) {
        seen.address = await page.locator('.app code').innerText();
        await page.locator('section li button').first().click();
        seen.copied = await page.evaluate(() => navigator.clipboard.readText());
        return seen;
    }
    const time = page.locator('time').first();
    seen.title = await time.getAttribute('title');
    seen.date = await time.innerText();
    const hour = (text) => Number(/(\d+):\d\d/.exec(text)[1]);
    seen.shift = (hour(seen.date) - hour(seen.title) + 24) % 24;
    if (task.filter) {
        await page.locator('#filter').fill(task.filter);
        seen.shown = await page.locator('.file bdi:visible').filter({ hasNot: page.locator('.unseen') })
            .evaluateAll((all) => all.filter((each) => !each.closest('.unseen')).map((each) => each.textContent));
        await page.emulateMedia({ media: 'print' });
        seen.printed = await page.locator('button:visible, input:visible').count();
    }
    return seen;
}

async function wait(task) {
    const { page } = await open(task, { javaScriptEnabled: false });
    const before = await page.locator(task.selector).count();
    console.log(JSON.stringify({ before }));
    await page.waitForSelector(task.selector);
    return { after: await page.locator(task.selector).count() };
}

const performers = { look, press, follow, reach, script, wait };
try {
    for (const task of JSON.parse(process.argv[2])) {
        console.log(JSON.stringify(await performers[task.do](task)));
    }
} finally {
    await browser.close();
}
