// Does in browsers what it reads, a task of JSON a line, and writes what came of each as a line of JSON.
//
//   node t/node/browser-settings.mjs <tasks
//
// Each has a browser of its own by its name, "who", which is made when it is first named, and one more that
// runs no JavaScript, for the tasks with "noscript".  The tasks:
//
//   { "do": "open", "url": "…" }
//   { "do": "fill", "values": { "label": "value", … } }   types, chooses or ticks
//   { "do": "press", "name": "…" }     the button, link or summary of that name
//   { "do": "back" }
//   { "do": "cut", "selector": "…" }   removes those elements: axe takes minutes for a very long page
//   { "do": "look", "name": "…", "views": [{ "name", "width", "height", "scheme", "axe" }] }
//     reports what is cut off in each view and, if axe is true, its violations; a "folder" gets a screenshot
//     of each (name-view.png), of the whole page unless "top" is true
//
// The result has the status of the last page, its url, title, language, headings and text, and under
// "wrong" what the console, the network and html-validate complained about.
import { createInterface } from 'node:readline';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

import { HtmlValidate } from 'html-validate/node';
import { chromium } from 'playwright-core';

const validator = new HtmlValidate({ extends: ['html-validate:recommended'] });
const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', chromiumSandbox: false });
const people = {};

// A dark page differs from a light one of the same size in its colours alone.
const COLOURS = { runOnly: ['color-contrast', 'link-in-text-block'] };

async function person({ who, language, noscript }) {
    const name = `${who} ${noscript}`;
    if (!people[name]) {
        const context = await browser.newContext({
            javaScriptEnabled: !noscript,
            locale: language ?? 'en-GB',
            viewport: { width: 1280, height: 900 },
            permissions: ['clipboard-read', 'clipboard-write'],
        });
        const page = await context.newPage();
        const one = { page, wrong: [] };
        page.setDefaultTimeout(30_000);
        page.on('console', (message) => {
            if (message.type() === 'error' && !/^Failed to load resource: the server responded/.test(message.text())) {
                one.wrong.push(message.text());
            }
        });
        page.on('pageerror', (error) => one.wrong.push(error.message));
        page.on('response', (response) => {
            if (response.request().isNavigationRequest() && response.frame() === page.mainFrame()) {
                one.response = response;
            }
        });
        page.on('request', (request) => {
            if (new URL(request.url()).hostname !== '127.0.0.1') {
                one.wrong.push(`a request to ${request.url()}`);
            }
        });
        people[name] = one;
    }
    return people[name];
}

async function fill(page, values) {
    for (const [label, value] of Object.entries(values)) {
        const field = page.getByLabel(label, { exact: true }).locator('visible=true').first();
        const kind = await field.evaluate((element) => element.type);
        if (kind === 'select-one') {
            await field.selectOption({ label: value });
        } else if (kind === 'radio' || kind === 'checkbox') {
            await field.check();
        } else {
            await field.fill(value);
        }
    }
}

async function press(page, name) {
    const candidates = [
        page.locator('button').filter({ hasText: name }).locator('visible=true'),
        page.getByRole('button', { name, exact: true }),
        page.getByRole('link', { name, exact: true }),
        page.locator('summary').filter({ hasText: name }),
    ];
    for (const candidate of candidates) {
        if (await candidate.count() > 0) {
            await candidate.first().click();
            await page.waitForLoadState();
            return;
        }
    }
    throw new Error(`There is nothing to press that is called ${name}.`);
}

function misfits(page) {
    return page.evaluate(() => {
        const width = document.documentElement.clientWidth;
        return [...document.querySelectorAll('body *')]
            .filter((each) => !each.closest('.unseen, thead') && each.getBoundingClientRect().right > width + 1)
            .map((each) => each.outerHTML.slice(0, 100));
    });
}

async function look(page, { name, views, folder, top }) {
    const seen = [];
    const before = page.viewportSize();
    await page.evaluate(axe);
    for (const view of views) {
        await page.setViewportSize({ width: view.width, height: view.height });
        await page.emulateMedia({ colorScheme: view.scheme });
        seen.push({
            name: view.name,
            misfits: await misfits(page),
            violations: view.axe && await page.evaluate(async (rules) => {
                const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'], ...rules });
                return violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.html).join(' ')}`);
            }, view.scheme === 'dark' ? COLOURS : {}),
        });
        if (folder) {
            await page.screenshot({ path: `${folder}/${name}-${view.name}.png`, fullPage: !top });
        }
    }
    await page.setViewportSize(before);
    await page.emulateMedia({ colorScheme: 'light' });
    return seen;
}

// What is wrong with the page as the server sent it.
async function faults(response) {
    const { results } = await validator.validateString(await response.text());
    return results.flatMap((result) => result.messages).map((each) => `${each.ruleId}: ${each.message} (line ${each.line})`);
}

async function run(task) {
    const one = await person(task);
    const { page } = one;
    one.wrong.length = 0;
    one.response = undefined;
    const result = {};
    switch (task.do) {
        case 'open': await page.goto(task.url); break;
        case 'fill': await fill(page, task.values); break;
        case 'press': await press(page, task.name); break;
        case 'back': await page.goBack(); break;
        case 'cut': await page.evaluate((selector) =>
            document.querySelectorAll(selector).forEach((each) => each.remove()), task.selector); break;
        case 'look': result.views = await look(page, task); break;
        default: throw new Error(`There is no task ${task.do}.`);
    }
    if (one.response) {
        one.status = one.response.status();
        one.wrong.push(...task.noscript ? [] : await faults(one.response));    // the pages are the same
    }
    return {
        ...result,
        status: one.status,
        url: page.url(),
        title: await page.title(),
        html: await page.content(),
        text: await page.locator('body').innerText(),
        wrong: [...one.wrong],
    };
}

for await (const line of createInterface({ input: process.stdin })) {
    const result = await run(JSON.parse(line)).catch((error) => ({ failed: error.message, wrong: [error.message] }));
    process.stdout.write(`${JSON.stringify(result)}\n`);
}
await browser.close();
