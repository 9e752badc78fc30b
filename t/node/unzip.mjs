// Reads a ZIP archive with yauzl, which checks structure and sizes, and writes a line of JSON for each
// entry: its name, its size, and the SHA-256 of its content.
//
//   node t/node/unzip.mjs <archive>
import { createHash } from 'node:crypto';

import yauzl from 'yauzl';

yauzl.open(process.argv[2], { lazyEntries: true, strictFileNames: true }, (error, zip) => {
    if (error) throw error;
    zip.on('error', (fault) => { throw fault; });
    zip.on('entry', (entry) => {
        zip.openReadStream(entry, (fault, stream) => {
            if (fault) throw fault;
            const hash = createHash('sha256');
            stream.on('error', (broken) => { throw broken; });
            stream.on('data', (bytes) => hash.update(bytes));
            stream.on('end', () => {
                console.log(JSON.stringify([entry.fileName, entry.uncompressedSize, hash.digest('hex')]));
                zip.readEntry();
            });
        });
    });
    zip.readEntry();
});
