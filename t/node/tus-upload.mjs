// Uploads a file to an upload URL with tus-js-client, from the offset that the service reports.
//
//   node t/node/tus-upload.mjs <upload URL> <file> <bytes of a piece; 0: one piece>
//
// Prints "again" before each retry, and "done" at the end.
import { createReadStream } from 'node:fs';

import { Upload } from 'tus-js-client';

const [uploadUrl, file, piece] = process.argv.slice(2);

const upload = new Upload(createReadStream(file), {
    uploadUrl,
    chunkSize: Number(piece) || Infinity,
    retryDelays: new Array(480).fill(250),
    onShouldRetry() {
        console.log('again');
        return true;
    },
    onError(error) {
        console.error(String(error));
        process.exit(1);
    },
    onSuccess() {
        console.log('done');
    },
});
upload.start();
