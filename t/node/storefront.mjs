// A mock of Shopify's Admin GraphQL API, with the fields that mod_downloads uses, as Shopify documents
// them for the version below.  The real graphql-js parses, validates and executes each request, so the
// mock refuses a query that Shopify would refuse.
//
//   node t/node/storefront.mjs FOLDER CERTIFICATE KEY
//
// Prints the ports of http and https on 127.0.0.1, in one line, and ends when its input does.  It
// reads FOLDER/plan.json for each request, which MDL::Storefront documents, and appends a line of JSON
// for each request to FOLDER/requests.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';

import { buildSchema, execute, parse, validate } from 'graphql';

const VERSION = '2026-10';
const [folder, certificate, key] = process.argv.slice(2);

const schema = buildSchema(`
    type Query {
        customer(id: ID!): Customer
        order(id: ID!): Order
    }
    type Customer {
        id: ID!
        firstName: String
        lastName: String
        locale: String!
        defaultEmailAddress: CustomerEmailAddress
    }
    type CustomerEmailAddress {
        emailAddress: String!
    }
    type Order {
        id: ID!
        email: String
        customerLocale: String
        billingAddress: MailingAddress
        clientIp: String
        risk: OrderRiskSummary!
    }
    type MailingAddress {
        firstName: String
        lastName: String
    }
    type OrderRiskSummary {
        assessments: [OrderRiskAssessment!]!
        recommendation: OrderRiskRecommendationResult!
    }
    type OrderRiskAssessment {
        riskLevel: RiskAssessmentResult!
    }
    enum RiskAssessmentResult { HIGH LOW MEDIUM NONE PENDING }
    enum OrderRiskRecommendationResult { ACCEPT CANCEL INVESTIGATE NONE }
`);

const seen = new Map();

function note(line) {
    appendFileSync(`${folder}/requests`, JSON.stringify(line) + '\n');
}

// The planned answer to this request for an order; the last answer serves all later requests.
function planned(plan, order) {
    const answers = plan.orders?.[order]?.answers ?? [];
    const count = seen.get(order) ?? 0;
    seen.set(order, count + 1);
    return answers[Math.min(count, answers.length - 1)] ?? {};
}

function customerOf(plan, id) {
    const customer = plan.customers?.[id.replace('gid://shopify/Customer/', '')];
    return customer && {
        id,
        firstName: customer.first_name,
        lastName: customer.last_name,
        locale: customer.locale ?? 'en',
        defaultEmailAddress: customer.email === undefined ? null : { emailAddress: customer.email },
    };
}

function orderOf(plan, id) {
    const order = plan.orders?.[id.replace('gid://shopify/Order/', '')];
    return order && {
        id,
        email: order.email,
        customerLocale: order.locale,
        billingAddress: order.first_name && { firstName: order.first_name, lastName: order.last_name },
        clientIp: order.client_ip,
        risk: {
            assessments: (order.risks ?? []).map((riskLevel) => ({ riskLevel })),
            recommendation: 'NONE',
        },
    };
}

async function answerTo(plan, { query, variables }) {
    let document;
    try {
        document = parse(query);
    } catch (error) {
        return { errors: [{ message: error.message }] };
    }
    const errors = validate(schema, document);
    if (errors.length > 0) {
        return { errors: errors.map(({ message }) => ({ message })) };
    }
    const result = await execute({
        schema,
        document,
        variableValues: variables,
        rootValue: {
            customer: ({ id }) => customerOf(plan, id),
            order: ({ id }) => orderOf(plan, id),
        },
    });
    return {
        ...result,
        extensions: {
            cost: {
                requestedQueryCost: 4,
                actualQueryCost: 4,
                throttleStatus: { maximumAvailable: 2000.0, currentlyAvailable: 1996, restoreRate: 100.0 },
            },
        },
    };
}

async function untilReleased(response, name) {
    while (!existsSync(`${folder}/${name}.released`) && !response.destroyed) {
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
}

async function serve(request, response) {
    const plan = JSON.parse(readFileSync(`${folder}/plan.json`, 'utf8'));
    const pieces = [];
    for await (const piece of request) {
        pieces.push(piece);
    }
    const text = Buffer.concat(pieces).toString();
    const send = (status, body, headers = {}) => {
        response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8', ...headers });
        response.end(typeof body === 'string' ? body : JSON.stringify(body));
    };
    let body;
    try {
        body = JSON.parse(text);
    } catch {
        body = {};
    }
    const order = String(body.variables?.order ?? '').replace('gid://shopify/Order/', '');
    const answer = planned(plan, order);
    const given = answer.body ?? await answerTo(plan, body);
    const right = request.headers['x-shopify-access-token'] === plan.token;
    note({
        order,
        path: request.url,
        method: request.method,
        secure: Boolean(request.socket.encrypted),
        type: request.headers['content-type'],
        query: body.query,
        variables: body.variables,
        token: right ? 'right' : request.headers['x-shopify-access-token'] === undefined ? 'none' : 'wrong',
        errors: given.errors ?? null,
    });
    if (request.url !== `/admin/api/${VERSION}/graphql.json`) {
        send(404, { errors: 'Not Found' });
    } else if (!right) {
        send(401, { errors: '[API] Invalid API key or access token (unrecognized login or wrong password)' });
    } else if (answer.hold) {
        await untilReleased(response, order);
        send(200, given);
    } else if (answer.cut) {
        response.writeHead(200, { 'Content-Length': 100000 });
        response.write('{"data":');
        setTimeout(() => response.destroy(), 10);
    } else if (answer.repeat) {
        send(answer.status ?? 200, answer.body.repeat(answer.repeat), answer.headers);
    } else {
        send(answer.status ?? 200, given, answer.headers);
    }
}

function listen(server) {
    return new Promise((resolve) => {
        server.listen(0, '127.0.0.1', () => resolve(server.address().port));
    });
}

const handler = (request, response) => {
    serve(request, response).catch((error) => {
        console.error(`storefront: ${error.stack}`);
        response.destroy();
    });
};
const plain = await listen(http.createServer(handler));
const secure = await listen(https.createServer(
    { cert: readFileSync(certificate), key: readFileSync(key) }, handler));
process.stdout.write(`${plain} ${secure}\n`);
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
