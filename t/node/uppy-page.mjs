// The script of the page of browser-upload.mjs: Uppy with its tus uploader.
import Uppy from '@uppy/core';
import Tus from '@uppy/tus';

globalThis.seen = { uploaded: 0, ended: null };

globalThis.upload = (uploadUrl, chunkSize) => {
    const uppy = new Uppy({ autoProceed: false });
    uppy.use(Tus, { endpoint: uploadUrl, uploadUrl, chunkSize, retryDelays: [100, 200, 400] });
    uppy.on('upload-progress', (file, progress) => {
        globalThis.seen.uploaded = progress.bytesUploaded;
    });
    const [data] = document.querySelector('input').files;
    uppy.addFile({ name: data.name, type: data.type, data });
    uppy.upload().then((result) => {
        globalThis.seen.ended = {
            successful: result.successful.length,
            errors: result.failed.map((file) => file.error),
        };
    });
};
