// Does in browsers what it reads, a task of JSON a line, and writes what came of each as a line of JSON.
//
//   node t/node/browser-settings.mjs <tasks
//
// Each has a browser of its own by its name, "who", which is made when it is first named, and one more that
// runs no JavaScript, for the tasks with "noscript".  The tasks:
//
//   { "do": "open", "url": "…" }       as the user "user" of HTTP, if there is one, in a "language", with a User-Agent "agent"
//   { "do": "send", "action": "…", "values": { … } }      the form whose address ends so, unchecked
//   { "do": "fill", "values": { "label": "value", … } }   types, chooses or ticks
//   { "do": "press", "name": "…" }     the button, link or summary of that name
//   { "do": "click", "role": "…", "name": "…" }   the only one of that role and name; a "summary" has no role
//   { "do": "choose", "label": "…", "path": "…" }  a file, in the field of that label
//   { "do": "back" }
//   { "do": "cut", "selector": "…" }   removes those elements: axe takes minutes for a very long page
//   { "do": "look", "name": "…", "views": [{ "name", "width", "height", "scheme", "media", "axe" }] }
//     reports what is cut off in each view and, if axe is true, its violations; what is too small for a
//     thumb, if thumbs is true; which words are broken, if words is true; a "folder" gets a screenshot of each (name-view.png), of the whole page
//     unless "top" is true
//
// The result has the status of the last page, its url, title and text, "focused", the text of what has the focus,
// "loads", how many pages the task has loaded, and under "wrong" what the console, the network and html-validate complained about.
import { createInterface } from 'node:readline';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { setTimeout } from 'node:timers/promises';

import { HtmlValidate } from 'html-validate/node';
import { chromium } from 'playwright-core';

// A title has names, which may be long. Safari takes a list without bullets for none unless it has the role.
const rules = { 'long-title': 'off', 'no-redundant-role': 'off' };
const validator = new HtmlValidate({ extends: ['html-validate:recommended'], rules });
const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PATIENCE = 60_000;
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', chromiumSandbox: false, timeout: PATIENCE });
const people = {};

// A dark page differs from a light one of the same size in its colours alone.
const COLOURS = { runOnly: ['color-contrast', 'link-in-text-block'] };

async function person({ who, user, language, noscript, agent }) {
    const name = [who, user, language, noscript, agent].join(' ');
    if (!people[name]) {
        const context = await browser.newContext({
            javaScriptEnabled: !noscript,
            locale: language ?? 'en-GB',
            userAgent: agent ?? undefined,
            viewport: { width: 1280, height: 900 },
            httpCredentials: user ? { username: user, password: 'secret', send: 'always' } : undefined,
            permissions: ['clipboard-read', 'clipboard-write'],
        });
        const page = await context.newPage();
        const one = { page, wrong: [] };
        page.setDefaultTimeout(60_000);
        page.on('console', (message) => {
            if (message.type() === 'error' && !/^Failed to load resource: the server responded/.test(message.text())) {
                one.wrong.push(message.text());
            }
        });
        page.on('pageerror', (error) => one.wrong.push(error.message));
        page.on('response', (response) => {
            if (response.request().isNavigationRequest() && response.frame() === page.mainFrame()) {
                one.response = response;
                one.loads += response.status() < 300 || response.status() >= 400;
            }
        });
        page.on('request', (request) => {
            if (!['127.0.0.1', 'localhost'].includes(new URL(request.url()).hostname)) {
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

// Whether a click leads to another page, by itself and without a script.
function leadsOn(element) {
    const link = element.closest('a[href]');
    if (link) {
        return !link.hash || link.href.split('#')[0] !== location.href.split('#')[0];
    }
    const { form, type } = element.closest('button') ?? {};
    return Boolean(form) && type === 'submit' && (form.noValidate || form.checkValidity());
}

// Clicks, and waits until the page to which that leads has loaded.
async function follow(page, target) {
    if (await target.evaluate(leadsOn)) {
        await Promise.all([page.waitForNavigation(), target.click()]);
    } else {
        await target.click();
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
            await follow(page, candidate.first());
            return;
        }
    }
    throw new Error(`There is nothing to press that is called ${name}.`);
}

// Two of the same name are as bad for a person as none: Playwright refuses to choose.
async function click(page, { role, name }) {
    const all = role === 'summary' ? page.locator('summary').and(page.getByText(name, { exact: true }))
        : page.getByRole(role, { name, exact: true });
    await follow(page, all);
}

// A browser gives the focus to what is marked for it when it draws the page, which may be after the load.
async function focused(page) {
    const until = Date.now() + PATIENCE;
    while (Date.now() < until && await page.evaluate(() =>
        document.querySelector('[autofocus]') !== null && document.activeElement === document.body)) {
        await setTimeout(20);
    }
    return page.evaluate(() => document.activeElement.innerText);
}

// Sends a form as a browser would that checks nothing: with these values and no others of their names. Those
// that are null are not sent.
async function send(page, action, values) {
    const [sent] = await Promise.all([
        page.waitForNavigation(),
        page.evaluate(([to, typed]) => {
            const form = [...document.forms].find((each) => each.method === 'post' && each.action.endsWith(to));
            if (!form) {
                throw new Error(`There is no form that is sent to ${to}.`);
            }
            for (const [name, value] of Object.entries(typed)) {
                [...form.elements].filter((each) => each.name === name).forEach((each) => each.remove());
                if (value !== null) {
                    form.append(Object.assign(document.createElement('input'), { type: 'hidden', name, value }));
                }
            }
            HTMLFormElement.prototype.submit.call(form);
        }, [action, values]),
    ]);
    return sent;
}

// A link inside a sentence may be as high as its line.
function smallTargets(page) {
    return page.evaluate(() => [...document.querySelectorAll('a[href], button, summary, select, textarea, input:not([type=hidden])')]
        .filter((each) => {
            const target = each.matches('[type=checkbox], [type=radio]') && each.closest('label') || each;
            const box = target.getBoundingClientRect();
            const inline = each.matches('a, .link') && getComputedStyle(each).display === 'inline';
            const around = [...each.parentElement.childNodes]
                .filter((other) => !other.contains(each)).map((other) => other.textContent).join('').trim();
            return each.checkVisibility({ visibilityProperty: true }) && !each.closest('.unseen') && box.width > 0
                && (box.height < 43.5 || box.width < 43.5) && !(inline && around !== '');
        })
        .map((each) => each.outerHTML.slice(0, 100)));
}

// Ordinary spaces where French has narrow ones or such as do not break.
function looseSpaces(page) {
    return page.evaluate(() => {
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        const loose = [];
        while (walker.nextNode()) {
            const { data, parentElement } = walker.currentNode;
            if (!parentElement.closest('style, script, svg, .unseen, bdi, code, pre, textarea, [lang]:not(html)')
                && /[^\u202f;!?][;!?](?=\s|$)|(?:^|[^\u00a0]):(?=\s|$)|«[^\u00a0\u202f]|[^\u00a0\u202f]»/.test(data)) {
                loose.push(data.trim());
            }
        }
        return loose;
    });
}

// Short words and numbers that are broken into lines; an address may be, a word at its hyphen, and Japanese.
function brokenWords(page) {
    return page.evaluate(() => {
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        const range = document.createRange();
        const broken = [];
        while (walker.nextNode()) {
            const { currentNode: node } = walker;
            if (node.parentElement.checkVisibility() && !node.parentElement.closest('.unseen, thead, pre')) {
                for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
                    range.setStart(node, index);
                    range.setEnd(node, index + word.length);
                    const lines = new Set([...range.getClientRects()].map((each) => each.top));
                    if (lines.size > 1 && word.length <= 20 && !/[@/._]\S|-\D|[\u3040-\u30ff\u4e00-\u9fff\uff00-\uffef]/.test(word)) {
                        broken.push(`${word} in ${node.parentElement.outerHTML.slice(0, 100)}`);
                    }
                }
            }
        }
        return broken;
    });
}

function misfits(page) {
    return page.evaluate(() => {
        const width = document.documentElement.clientWidth;
        return [...document.querySelectorAll('body *')]
            .filter((each) => !each.closest('.unseen, .skip, thead') && (each.getBoundingClientRect().right > width + 1
                || each.getBoundingClientRect().left < -1))
            .map((each) => each.outerHTML.slice(0, 100));
    });
}

async function look(page, { name, views, folder, top }) {
    const seen = [];
    const before = page.viewportSize();
    await page.evaluate(axe);
    for (const view of views) {
        await page.setViewportSize({ width: view.width, height: view.height });
        await page.emulateMedia({ colorScheme: view.scheme, media: view.media ?? 'screen' });
        seen.push({
            name: view.name,
            misfits: await misfits(page),
            broken: view.words && await brokenWords(page),
            small: view.thumbs && await smallTargets(page),
            violations: view.axe && await page.evaluate(async (only) => {
                const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'], ...only });
                return violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.html).join(' ')}`);
            }, view.scheme === 'dark' ? COLOURS : {}),
        });
        if (folder) {
            await page.screenshot({ path: `${folder}/${name}-${view.name}.png`, fullPage: !top });
        }
    }
    await page.setViewportSize(before);
    await page.emulateMedia({ colorScheme: 'light', media: 'screen' });
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
    one.loads = 0;
    const result = {};
    switch (task.do) {
        case 'open': await page.goto(task.url); break;
        case 'send': one.response = await send(page, task.action, task.values); break;
        case 'fill': await fill(page, task.values); break;
        case 'press': await press(page, task.name); break;
        case 'click': await click(page, task); break;
        case 'choose': await page.getByLabel(task.label, { exact: true }).setInputFiles(task.path); break;
        case 'back': await page.goBack(); break;
        case 'cut': await page.evaluate((selector) =>
            document.querySelectorAll(selector).forEach((each) => each.remove()), task.selector); break;
        case 'look':
            result.views = await look(page, task);
            result.loose = task.language === 'fr' ? await looseSpaces(page) : [];
            break;
        default: throw new Error(`There is no task ${task.do}.`);
    }
    if (one.response) {
        one.status = one.response.status();
        one.wrong.push(...task.noscript ? [] : await faults(one.response));    // the pages are the same
    }
    return {
        ...result,
        status: one.status,
        loads: one.loads,
        url: page.url(),
        title: await page.title(),
        html: await page.content(),
        text: await page.locator('body').innerText(),
        focused: await focused(page),
        wrong: [...one.wrong],
    };
}

for await (const line of createInterface({ input: process.stdin })) {
    const result = await run(JSON.parse(line)).catch((error) => ({ failed: error.message, wrong: [error.message] }));
    process.stdout.write(`${JSON.stringify(result)}\n`);
}
await browser.close();
