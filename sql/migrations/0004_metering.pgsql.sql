-- Downloads are metered by what was delivered.  Earlier sessions end here.
DROP TABLE download_session;

CREATE TABLE download_session (
    id TEXT COLLATE "C" NOT NULL, -- of the signed link
    generation INTEGER NOT NULL, -- from 1; a link whose download is complete can begin another
    assignment_id BIGINT NOT NULL REFERENCES assignment (id),
    asset_id BIGINT REFERENCES asset (id), -- NULL: the archive of all files
    taken TEXT NOT NULL, -- a JSON array of the assets of which it reserved a download
    etag TEXT NOT NULL,
    size BIGINT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'counted', 'returned')),
    ranges TEXT NOT NULL, -- what it delivered, as in mod_downloads/core/download/coverage.h
    bytes BIGINT NOT NULL, -- bytes delivered twice count twice
    kept TEXT NOT NULL, -- of an archive: the places of files that were charged, as ranges, too
    transfers INTEGER NOT NULL,
    opened_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    idle_at BIGINT NOT NULL, -- when the session ends unless a transfer of it runs
    PRIMARY KEY (id, generation)
);
CREATE INDEX download_session_assignment ON download_session (assignment_id, opened_at);
CREATE INDEX download_session_idle ON download_session (idle_at) WHERE status = 'open';

-- What sessions delivered of files that they gave back: it is charged once it is complete.
CREATE TABLE download_partial (
    assignment_id BIGINT NOT NULL REFERENCES assignment (id),
    asset_id BIGINT NOT NULL REFERENCES asset (id),
    etag TEXT NOT NULL,
    ranges TEXT NOT NULL,
    bytes BIGINT NOT NULL, -- the sum of what each session covered
    PRIMARY KEY (assignment_id, asset_id)
);

-- A process that delivers.  Others settle what it has not settled when its lease ends.
CREATE TABLE download_meter (
    id TEXT COLLATE "C" PRIMARY KEY,
    leased_until BIGINT NOT NULL
);
CREATE INDEX download_meter_lease ON download_meter (leased_until);

-- A request that sends bytes, until it is settled.
CREATE TABLE download_transfer (
    id TEXT COLLATE "C" PRIMARY KEY,
    session_id TEXT COLLATE "C" NOT NULL,
    generation INTEGER NOT NULL,
    assignment_id BIGINT NOT NULL REFERENCES assignment (id),
    meter_id TEXT COLLATE "C" NOT NULL,
    ranges TEXT NOT NULL, -- as last known
    bytes BIGINT NOT NULL
);
CREATE INDEX download_transfer_session ON download_transfer (session_id, generation);
CREATE INDEX download_transfer_meter ON download_transfer (meter_id);
