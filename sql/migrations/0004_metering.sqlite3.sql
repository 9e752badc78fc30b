-- Downloads are metered by what was delivered.  Earlier sessions end here.
DROP TABLE download_session;

CREATE TABLE download_session (
    id TEXT NOT NULL, -- of the signed link
    generation INTEGER NOT NULL, -- from 1; a link whose download is complete can begin another
    assignment_id INTEGER NOT NULL REFERENCES assignment (id),
    asset_id INTEGER REFERENCES asset (id), -- NULL: the archive of all files
    taken TEXT NOT NULL, -- a JSON array of the assets of which it reserved a download
    etag TEXT NOT NULL,
    size INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'counted', 'returned')),
    ranges TEXT NOT NULL, -- what it delivered, as in mod_downloads/core/download/coverage.h
    bytes INTEGER NOT NULL, -- bytes delivered twice count twice
    kept TEXT NOT NULL, -- of an archive: the places of files that were charged, as ranges, too
    transfers INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    idle_at INTEGER NOT NULL, -- when the session ends unless a transfer of it runs
    PRIMARY KEY (id, generation)
);
CREATE INDEX download_session_assignment ON download_session (assignment_id, opened_at);
CREATE INDEX download_session_idle ON download_session (idle_at) WHERE status = 'open';

-- What sessions delivered of files that they gave back: it is charged once it is complete.
CREATE TABLE download_partial (
    assignment_id INTEGER NOT NULL REFERENCES assignment (id),
    asset_id INTEGER NOT NULL REFERENCES asset (id),
    etag TEXT NOT NULL,
    ranges TEXT NOT NULL,
    bytes INTEGER NOT NULL, -- the sum of what each session covered
    PRIMARY KEY (assignment_id, asset_id)
);

-- A process that delivers.  Others settle what it has not settled when its lease ends.
CREATE TABLE download_meter (
    id TEXT PRIMARY KEY,
    leased_until INTEGER NOT NULL
);
CREATE INDEX download_meter_lease ON download_meter (leased_until);

-- A request that sends bytes, until it is settled.
CREATE TABLE download_transfer (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    assignment_id INTEGER NOT NULL REFERENCES assignment (id),
    meter_id TEXT NOT NULL,
    ranges TEXT NOT NULL, -- as last known
    bytes INTEGER NOT NULL
);
CREATE INDEX download_transfer_session ON download_transfer (session_id, generation);
CREATE INDEX download_transfer_meter ON download_transfer (meter_id);
