// Looks at emails as programs show them.  Reads a JSON list of { "name", "html", "folder" } from
// stdin and writes a line of JSON for each: what html-validate says of it, and a list of views.
//
// A view is of a program, a width and a colour scheme, and has the faults that it shows: what is cut
// off, sizes that are broken into lines, a button that is not in the middle or too small to be hit,
// axe's violations, pictures that do not load; and the text that is seen, with the colours of the
// paper and of the text on it.  folder, if given, gets a screenshot of each view.
//
// The programs are whole, which shows all of it; gmail and outlook, without what these two ignore
// (developers.google.com/workspace/gmail/design/css, "Word 2007 HTML and CSS Rendering Capabilities
// in Outlook 2007", and caniemail.com for what these lists leave open).
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';

import { HtmlValidate } from 'html-validate/node';
import { chromium } from 'playwright-core';

// An email has its styles in line, and tables whose attributes Outlook reads.
const validator = new HtmlValidate({
    extends: ['html-validate:recommended'],
    rules: { 'no-inline-style': 'off', 'no-deprecated-attr': 'off', 'no-conditional-comment': 'off',
        'prefer-tbody': 'off' },
});
const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PATIENCE = 60_000; // ms
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', chromiumSandbox: false,
    timeout: 3 * PATIENCE });

const BORDERS = ['border', 'border-top', 'border-bottom', 'border-left', 'border-right', 'border-collapse'];
const TYPE = ['color', 'background-color', 'direction', 'font-family', 'font-size', 'font-style', 'font-weight',
    'line-height', 'text-align', 'text-decoration', 'vertical-align', 'word-break'];
const PROGRAMS = {
    whole: null,
    // Some of Gmail's apps drop every style element; none has margins that are negative or auto.
    gmail: { properties: [...BORDERS, ...TYPE, 'border-radius', 'display', 'height', 'margin', 'max-height',
        'max-width', 'overflow', 'padding', 'white-space', 'width'] },
    // Padding is for cells alone, and what is not a cell or picture has no width.
    outlook: { properties: [...BORDERS, ...TYPE, 'margin', 'mso-hide'], cell: ['padding', 'width', 'height'] },
};
const VIEWS = [
    ...[1280, 375, 320].flatMap((width) => ['light', 'dark'].map((scheme) => ['whole', width, scheme])),
    ...[1280, 375, 320].map((width) => ['gmail', width, 'light']),
    ['outlook', 1280, 'light'], // Word's engine, on desktops alone
];

function shownBy(program, html) {
    return program === 'outlook' ? html.replace(/<!--\[if mso\]>(.*?)<!\[endif\]-->/gs, '$1') : html;
}

// Removes what a program ignores; the hidden preheader stays hidden, in Outlook by its own property.
function strip({ properties, cell = [] }) {
    const hidden = [...document.querySelectorAll('[style*="mso-hide"]')];
    document.querySelectorAll('style, meta[name="color-scheme"], link, script').forEach((each) => each.remove());
    ['lang', 'dir', 'class', 'style'].forEach((name) => {
        document.documentElement.removeAttribute(name);
        document.body.removeAttribute(name);
    });
    for (const element of document.querySelectorAll('[style]')) {
        const kept = element.getAttribute('style').split(';').map((each) => each.trim())
            .filter((each) => properties.includes(each.split(':')[0])
                || (element.tagName === 'TD' && cell.includes(each.split(':')[0])));
        element.setAttribute('style', kept.join('; '));
    }
    hidden.forEach((each) => { each.hidden = true; });
}

function faults() {
    const wide = document.documentElement.clientWidth;
    const found = [...document.querySelectorAll('body *')]
        .filter((each) => each.getBoundingClientRect().right > wide + 1 || each.getBoundingClientRect().left < -1)
        .map((each) => `cut off: ${each.outerHTML.slice(0, 100)}`);
    const button = document.querySelector('td.button');
    const box = button.getBoundingClientRect();
    const paper = document.querySelector('table.paper').getBoundingClientRect();
    if (Math.abs(box.left + box.right - paper.left - paper.right) > 4) {
        found.push(`the button is at ${box.left} to ${box.right} of ${paper.left} to ${paper.right}`);
    }
    if (box.height < 44 || button.innerText.trim() === '') {
        found.push(`the button has ${box.height} px`);
    }
    if (paper.width > 600) {
        found.push(`the paper has ${paper.width} px`);
    }
    for (const picture of document.images) {
        if (picture.naturalWidth === 0 || picture.width > 200 || picture.height > 80) {
            found.push(`the picture has ${picture.width} x ${picture.height} px`);
        }
    }
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
        for (const size of node.data.matchAll(/\d[\d.,]*\u00a0[^\s)]+/gu)) {
            const range = document.createRange();
            range.setStart(node, size.index);
            range.setEnd(node, size.index + size[0].length);
            if (new Set([...range.getClientRects()].map((each) => each.top)).size > 1) {
                found.push(`broken: ${size[0]}`);
            }
        }
    }
    return found;
}

function colours() {
    return [getComputedStyle(document.querySelector('table.paper')).backgroundColor,
        getComputedStyle(document.querySelector('h1')).color];
}

// An email is no page with landmarks; a program has put it into a page with a language.
async function violations(page) {
    return page.evaluate(async () => {
        const { violations: found } = await globalThis.axe.run(document, { resultTypes: ['violations'],
            rules: { region: { enabled: false }, 'landmark-one-main': { enabled: false },
                'html-has-lang': { enabled: false } } });
        return found.map((each) => `${each.id}: ${each.nodes.map((node) => node.html).join(' ')}`);
    });
}

async function view(page, email, program, width, scheme) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme: scheme });
    await page.setContent(shownBy(program, email.html), { waitUntil: 'load' });
    if (PROGRAMS[program]) {
        await page.evaluate(strip, PROGRAMS[program]);
    }
    await page.evaluate(axe);
    const seen = {
        name: `${program}-${width}-${scheme}`,
        faults: [...await page.evaluate(faults), ...await violations(page)],
        text: await page.locator('body').innerText(),
        colours: await page.evaluate(colours),
    };
    if (email.folder) {
        await page.screenshot({ path: `${email.folder}/${email.name}-${seen.name}.png`, fullPage: true });
    }
    return seen;
}

const page = await browser.newPage();
page.setDefaultTimeout(PATIENCE);
for (const email of JSON.parse(await text(process.stdin))) {
    const { results } = await validator.validateString(email.html);
    const invalid = results.flatMap((result) => result.messages)
        .map((each) => `${each.ruleId}: ${each.message} (line ${each.line})`);
    const views = [];
    for (const [program, width, scheme] of VIEWS) {
        views.push(await view(page, email, program, width, scheme));
    }
    console.log(JSON.stringify({ invalid, views }));
}
await browser.close();
