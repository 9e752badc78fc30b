// Writes a file to an upload URL by tus-js-client, from the offset that the service has.
//
//   node t/node/tus-upload.mjs <upload URL> <file> <bytes of a piece; 0: all in one>
//
// Prints "again" each time it has to ask for the offset again, and "done" at the end.
import { createReadStream } from 'node:fs';

import { Upload } from 'tus-js-client';

const [uploadUrl, file, piece] = process.argv.slice(2);

const upload = new Upload(createReadStream(file), {
    uploadUrl,
    chunkSize: Number(piece) || Infinity,
    retryDelays: new Array(80).fill(250),
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
