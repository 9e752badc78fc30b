-- The schema.  Until the first release this file is changed in place; afterwards a change is a migration.
--
-- runs-with: 1
--
-- Times are microseconds since 1970 in UTC; booleans are 0 and 1; digests are lower-case hexadecimal.  A
-- deleted asset, mapping or tag keeps its row, because orders, jobs and past downloads refer to it.
--
-- Only SQLite checks enumerated values and most references. PostgreSQL parses a CHECK again for each statement
-- that writes to its table, 10 to 18 us each. The module writes these values from its own tables of names, and
-- reading an unknown value is an error. To check a reference PostgreSQL locks the referenced row, which makes a
-- multixact as soon as two transactions write at once; shops, customers, orders, assignments and assets are
-- never deleted.
--
-- Lists use the indexes on (shop_id, id).  If PostgreSQL knew that a shop has a large part of a table's rows,
-- it would scan the primary key backwards and skip the other shops' rows: for a shop whose rows are old, all
-- newer rows. So it keeps no statistics of these tables' shop_id.


-- Shops, and the keys and people that act for them

CREATE TABLE shop (
    id {{identity}},
    name TEXT NOT NULL,
    domain TEXT NOT NULL UNIQUE,
    email TEXT,
    status TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'suspended')),
    blocked_at BIGINT, -- by the operator; NULL: it is not blocked
    block_reason TEXT,
    files_stored BIGINT NOT NULL DEFAULT 0, -- its assets that have bytes
    bytes_stored BIGINT NOT NULL DEFAULT 0, -- by its assets, for the quota
    bytes_former BIGINT NOT NULL DEFAULT 0, -- by their former versions
    sender_name TEXT, -- of its emails; NULL: the shop's name
    reply_to TEXT, -- NULL: the shop's email
    mail_delay BIGINT NOT NULL DEFAULT 0, -- minutes
    withdrawal_url TEXT, -- where customers withdraw from their contract
    declaration SMALLINT NOT NULL DEFAULT 0, -- new orders give nothing before their customer's declaration
    help TEXT NOT NULL DEFAULT 'on' CHECK (help IN ('off', 'on', 'first_by_itself')), -- whether customers may ask for it
    hold_at TEXT NOT NULL DEFAULT 'high' CHECK (hold_at IN ('medium', 'high')), -- the risk that holds an order
    accent TEXT, -- the colour of its page and emails, "#1d4ed8"; NULL: that of the templates
    email_texts TEXT, -- its own words in emails, by language (mod_downloads/core/shop/email_texts.h); JSON
    logo_sha256 {{key_text}}, -- of a row of logo; NULL: it has none
    logo_width INTEGER, -- pixels
    logo_height INTEGER,
    logo_fault TEXT, -- why the last image that it sent could not become its logo
    download_limit BIGINT, -- for new purchases of mappings without one, 0: unlimited; NULL: the service's
    access_days BIGINT, -- likewise; NULL: for ever
    languages TEXT, -- of its page and emails: tags with commas, the first for everybody else; NULL: all
    orders_by_hand BIGINT NOT NULL DEFAULT 0, -- how many orders have got their number here
    storefront_url TEXT,
    storefront_token TEXT, -- sealed with the server's secret
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX shop_blocked ON shop (id) WHERE blocked_at IS NOT NULL;

-- The last logos of a shop: emails that have left show that of their time.
CREATE TABLE logo (
    shop_id BIGINT NOT NULL REFERENCES shop (id),
    sha256 {{key_text}} NOT NULL,
    png TEXT NOT NULL, -- in base64url, like logo_image.image
    created_at BIGINT NOT NULL,
    PRIMARY KEY (shop_id, sha256)
);
CREATE INDEX logo_sha256 ON logo (sha256);

-- The image that a job makes a shop's logo of.
CREATE TABLE logo_image (
    shop_id BIGINT PRIMARY KEY REFERENCES shop (id),
    job_id {{key_text}} NOT NULL,
    image TEXT NOT NULL
);

CREATE TABLE api_key (
    id {{key_text}} PRIMARY KEY,
    shop_id BIGINT NOT NULL REFERENCES shop (id),
    name TEXT NOT NULL,
    scope TEXT NOT NULL CHECK (scope IN ('full', 'deliver', 'read')),
    secret_mac TEXT NOT NULL,
    secret_id TEXT NOT NULL, -- of the server's secret that has signed the key
    created_at BIGINT NOT NULL,
    last_used_at BIGINT,
    expires_at BIGINT,
    revoked_at BIGINT
);
CREATE INDEX api_key_shop ON api_key (shop_id, created_at);

-- One row; its number grows with each change of a key, a scope or a shop's approval.
CREATE TABLE epoch (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    n BIGINT NOT NULL
);
INSERT INTO epoch (id, n) VALUES (1, 1);

-- The server's secrets, which can be replaced, and since when each signs.
CREATE TABLE secret (
    id {{key_text}} PRIMARY KEY,
    since BIGINT NOT NULL
);

-- Who may open a shop's settings.  httpd says who a user is.
CREATE TABLE member (
    user_name {{key_text}} NOT NULL,
    shop_id BIGINT NOT NULL, -- 0: every shop
    role TEXT NOT NULL CHECK (role IN ('read-only', 'staff', 'owner', 'operator')),
    created_at BIGINT NOT NULL,
    told_at BIGINT, -- when the member got the last daily email
    email TEXT, -- where the member gets emails; NULL: at an owner's name, if that is an address
    PRIMARY KEY (user_name, shop_id),
    CHECK ((role = 'operator') = (shop_id = 0))
);
CREATE INDEX member_shop ON member (shop_id, user_name);

-- Who is signed in to the settings with a name and a password.
CREATE TABLE staff_session (
    id {{key_text}} PRIMARY KEY, -- SHA-256 of what the browser has
    user_name {{key_text}} NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL -- later with each visit
);
CREATE INDEX staff_session_user ON staff_session (user_name, created_at);
CREATE INDEX staff_session_expires ON staff_session (expires_at);

-- Forms that have taken effect, each until it would be refused as too old.
CREATE TABLE form (
    id {{key_text}} PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
CREATE INDEX form_expires ON form (expires_at);

-- An email address of a shop's staff: a member's own, an owner's name, or the shop's.
CREATE TABLE staff_address (
    shop_id BIGINT NOT NULL,
    address {{key_text}} NOT NULL,
    asked_at BIGINT NOT NULL, -- when its owner was last asked to confirm it
    confirmed_at BIGINT, -- before that it gets nothing else
    PRIMARY KEY (shop_id, address)
);

-- What members are told of what happens in a shop, by kind (mod_downloads/core/shop/notice.h).
CREATE TABLE notice (
    shop_id BIGINT NOT NULL,
    user_name {{key_text}} NOT NULL,
    kind {{key_text}} NOT NULL,
    choice TEXT NOT NULL CHECK (choice IN ('off', 'now', 'daily')),
    waiting BIGINT NOT NULL, -- how many since the last email
    due_at BIGINT, -- when an email may tell of them; NULL: there are none
    sent_at BIGINT, -- when the last email was queued
    PRIMARY KEY (shop_id, user_name, kind)
);
CREATE INDEX notice_due ON notice (due_at) WHERE due_at IS NOT NULL;

-- Emails sent to staff within a day, by the limit that they count against.
CREATE TABLE staff_email_budget (
    name {{key_text}} PRIMARY KEY, -- "email/shop/7", "confirmation/address/ada@example.com", …
    began_at BIGINT NOT NULL, -- of the day
    taken BIGINT NOT NULL
);
CREATE INDEX staff_email_budget_began ON staff_email_budget (began_at);

-- Answers to requests with an Idempotency-Key.  On SQLite the rows are stored by rowid: if they were stored in
-- the index by key, a search would compare with whole answers of up to megabytes.
CREATE TABLE idempotency (
    shop_id BIGINT NOT NULL {{sqlite3: REFERENCES shop (id)}},
    key_hi BIGINT NOT NULL, -- with key_lo the first 16 bytes of the key's SHA-256
    key_lo BIGINT NOT NULL,
    fingerprint TEXT NOT NULL,
    status SMALLINT NOT NULL,
    location TEXT,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (shop_id, key_hi, key_lo)
);
CREATE INDEX idempotency_created ON idempotency (created_at);

-- Every change by a person or a key. Ids are in the order of time, on PostgreSQL almost.
CREATE TABLE audit (
    id {{identity}},
    shop_id BIGINT, -- NULL: of no shop, such as an operator
    noun TEXT NOT NULL,
    noun_id TEXT,
    action TEXT NOT NULL,
    via TEXT NOT NULL {{sqlite3: CHECK (via IN ('api', 'settings', 'command'))}},
    key_id TEXT,
    user_name TEXT,
    request_id TEXT, -- of the request that did it; NULL: no request did
    detail TEXT,
    created_at BIGINT NOT NULL
);
CREATE INDEX audit_shop ON audit (shop_id, id);
CREATE INDEX audit_request ON audit (request_id, id) WHERE request_id IS NOT NULL;
{{pgsql: ALTER TABLE audit ALTER COLUMN shop_id SET STATISTICS 0;}}


-- Files

CREATE TABLE blob (
    sha256 {{key_text}} PRIMARY KEY,
    size BIGINT NOT NULL,
    crc32 BIGINT NOT NULL,
    object {{key_text}}, -- the key of the object that has the bytes; NULL: a file of the folder has them
    missing_at BIGINT, -- since when its object is known to be gone
    created_at BIGINT NOT NULL,
    released_at BIGINT -- since when it may be without references: the sweep checks that, and removes it
);
CREATE INDEX blob_released ON blob (released_at) WHERE released_at IS NOT NULL;
CREATE INDEX blob_object ON blob (object) WHERE object IS NOT NULL;
CREATE INDEX blob_file ON blob (size) WHERE object IS NULL;

-- The keys of objects that may exist, although no blob has them: being written, or to be removed. A key is here
-- before its first byte is sent, and is never used again.
CREATE TABLE stray_object (
    key {{key_text}} PRIMARY KEY, -- and the beginning of the keys of its pieces
    owner {{key_text}}, -- the job or upload that writes it; NULL: nobody
    due_at BIGINT NOT NULL, -- when it is removed, unless its owner is still at work
    removed_at BIGINT -- when it was removed; it is removed once more a day later, for a request may come late
);
CREATE INDEX stray_object_due ON stray_object (due_at);

CREATE TABLE category (
    id {{identity}},
    shop_id BIGINT NOT NULL {{sqlite3: REFERENCES shop (id)}},
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX category_shop ON category (shop_id, id);
{{pgsql: ALTER TABLE category ALTER COLUMN shop_id SET STATISTICS 0;}}

CREATE TABLE asset (
    id {{identity}},
    shop_id BIGINT NOT NULL {{sqlite3: REFERENCES shop (id)}},
    category_id BIGINT REFERENCES category (id),
    status TEXT NOT NULL {{sqlite3: CHECK (status IN ('pending', 'ready', 'failed'))}},
    filename {{key_text}} NOT NULL,
    filename_guessed SMALLINT NOT NULL DEFAULT 0, -- from source_url, until the source says its own
    title TEXT NOT NULL,
    title_guessed SMALLINT NOT NULL DEFAULT 0,
    content_type TEXT,
    source_url TEXT,
    sha256 {{key_text}} REFERENCES blob (sha256),
    size BIGINT, -- of the blob, whose look-up took more than all else of an order's files
    version INTEGER NOT NULL,
    note TEXT, -- for its buyers: what this version changes
    next_note TEXT, -- of the version whose bytes are awaited, like next_notify
    next_notify SMALLINT NOT NULL DEFAULT 0, -- its buyers are told of that version
    told_version INTEGER NOT NULL DEFAULT 0, -- the last that its buyers are told of
    former_version INTEGER, -- of the last other bytes, which can be put back; NULL: they are not kept
    former_sha256 {{key_text}} REFERENCES blob (sha256),
    former_size BIGINT,
    former_source_url TEXT,
    former_note TEXT,
    former_until BIGINT, -- until when they are kept
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT
);
{{pgsql: ALTER TABLE asset ALTER COLUMN shop_id SET STATISTICS 0;}}
CREATE INDEX asset_blob ON asset (sha256);
CREATE INDEX asset_former_blob ON asset (former_sha256) WHERE former_sha256 IS NOT NULL;
CREATE INDEX asset_former ON asset (former_until) WHERE former_until IS NOT NULL;
CREATE INDEX asset_category ON asset (category_id) WHERE category_id IS NOT NULL;
-- Each of these is for the list that has its last condition alone. On a table without statistics all of them
-- would seem alike to PostgreSQL, which would read all of a shop's rows by another.
CREATE INDEX asset_shop ON asset (shop_id, id) WHERE deleted_at IS NULL AND id > 0;
CREATE INDEX asset_status ON asset (shop_id, status, id) WHERE deleted_at IS NULL AND status > '';
CREATE INDEX asset_shop_category ON asset (shop_id, category_id, id) WHERE deleted_at IS NULL AND category_id > 0;
CREATE INDEX asset_filename ON asset (shop_id, filename, id) WHERE deleted_at IS NULL AND filename > '';
CREATE INDEX asset_sha256 ON asset (shop_id, sha256, id) WHERE deleted_at IS NULL AND sha256 > '';

CREATE TABLE upload (
    id {{key_text}} PRIMARY KEY,
    shop_id BIGINT NOT NULL {{sqlite3: REFERENCES shop (id)}},
    category_id BIGINT REFERENCES category (id),
    status TEXT NOT NULL {{sqlite3: CHECK (status IN ('open', 'completed', 'aborted'))}},
    filename TEXT NOT NULL,
    title TEXT NOT NULL,
    content_type TEXT,
    size BIGINT, -- as announced, or as it came
    reserved BIGINT NOT NULL DEFAULT 0, -- of the quota, while it is open and its size unknown
    expected_sha256 TEXT,
    sha256 {{key_text}} REFERENCES blob (sha256), -- once all bytes came in one piece
    asset_id BIGINT REFERENCES asset (id), -- the asset that it became
    begun_by TEXT, -- the member who began it in the settings; NULL: an API key
    returns_to TEXT, -- if a form brings the file: the page to return to, below DownloadsSettingsURL
    replaces BIGINT REFERENCES asset (id), -- the asset that a member's upload gives new bytes; NULL: a new one
    note TEXT, -- of the version that it becomes, like notify
    notify SMALLINT NOT NULL DEFAULT 0,
    modified BIGINT, -- the file's own time, as a member's browser has told it, in milliseconds
    written TEXT, -- how far its object has come (mod_downloads/storage/object_writer.h)
    arrived BIGINT NOT NULL DEFAULT 0, -- the bytes in written
    writer {{key_text}}, -- the meter of the process that writes the object now; NULL: nobody does
    write_id TEXT, -- the last write into the object
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL DEFAULT 0,
    expires_at BIGINT NOT NULL
);
CREATE INDEX upload_blob ON upload (sha256);
CREATE INDEX upload_category ON upload (category_id) WHERE category_id IS NOT NULL;
CREATE INDEX upload_open ON upload (expires_at) WHERE status = 'open';
CREATE INDEX upload_shop_open ON upload (shop_id, id) WHERE status = 'open';

CREATE TABLE pack (
    id {{identity}},
    shop_id BIGINT NOT NULL {{sqlite3: REFERENCES shop (id)}},
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX pack_shop ON pack (shop_id, id);
{{pgsql: ALTER TABLE pack ALTER COLUMN shop_id SET STATISTICS 0;}}

-- Resources that refer to an asset, a pack, a link or a tag are listed in the order of their ids.
CREATE TABLE pack_file (
    pack_id BIGINT NOT NULL REFERENCES pack (id),
    asset_id BIGINT NOT NULL REFERENCES asset (id),
    position INTEGER NOT NULL,
    PRIMARY KEY (pack_id, asset_id)
);
CREATE INDEX pack_file_asset ON pack_file (asset_id, pack_id);

CREATE TABLE link (
    id {{identity}},
    shop_id BIGINT NOT NULL {{sqlite3: REFERENCES shop (id)}},
    title TEXT NOT NULL,
    url TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX link_shop ON link (shop_id, id);
{{pgsql: ALTER TABLE link ALTER COLUMN shop_id SET STATISTICS 0;}}


-- Mappings: the content of a storefront's product

CREATE TABLE mapping (
    id {{identity}},
    shop_id BIGINT NOT NULL {{sqlite3: REFERENCES shop (id)}},
    storefront_product_id TEXT NOT NULL,
    variants_hash TEXT NOT NULL, -- of the sorted set; '' for the whole product; '#' and its id once deleted
    title TEXT, -- of the product
    note TEXT, -- for its buyers
    download_type TEXT NOT NULL {{sqlite3: CHECK (download_type IN ('ZIP', 'FILES'))}},
    is_active SMALLINT NOT NULL,
    download_limit BIGINT,
    access_days BIGINT,
    content TEXT NOT NULL {{sqlite3: CHECK (content IN ('live', 'pinned'))}},
    fresh_downloads SMALLINT NOT NULL DEFAULT 0, -- whether a file's new bytes begin a new allowance
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT, -- it goes on serving its orders
    UNIQUE (shop_id, storefront_product_id, variants_hash)
);
{{pgsql: ALTER TABLE mapping ALTER COLUMN shop_id SET STATISTICS 0;}}
CREATE INDEX mapping_product ON mapping (shop_id, storefront_product_id, id) WHERE deleted_at IS NULL;
-- As those of asset, each for its list.
CREATE INDEX mapping_shop ON mapping (shop_id, id) WHERE deleted_at IS NULL AND id > 0;
CREATE INDEX mapping_state ON mapping (shop_id, is_active, id) WHERE deleted_at IS NULL AND shop_id > 0;
CREATE INDEX mapping_title ON mapping (shop_id, (lower(title) {{pgsql: COLLATE "C"}}), id)
    WHERE deleted_at IS NULL AND title > '';
CREATE INDEX mapping_number ON mapping (shop_id,
    (substr(storefront_product_id, length(rtrim(storefront_product_id, '0123456789')) + 1) {{pgsql: COLLATE "C"}}), id)
    WHERE deleted_at IS NULL AND storefront_product_id > '';

CREATE TABLE mapping_variant (
    mapping_id BIGINT NOT NULL REFERENCES mapping (id),
    storefront_variant_id {{key_text}} NOT NULL,
    title TEXT,
    position INTEGER NOT NULL,
    PRIMARY KEY (mapping_id, storefront_variant_id)
) {{sqlite3: WITHOUT ROWID}};

-- PostgreSQL: asset_known locks the assets before this is written.
CREATE TABLE mapping_file (
    mapping_id BIGINT NOT NULL REFERENCES mapping (id),
    asset_id BIGINT NOT NULL {{sqlite3: REFERENCES asset (id)}},
    position INTEGER NOT NULL,
    PRIMARY KEY (mapping_id, asset_id)
) {{sqlite3: WITHOUT ROWID}};
CREATE INDEX mapping_file_asset ON mapping_file (asset_id, mapping_id);

CREATE TABLE mapping_pack (
    mapping_id BIGINT NOT NULL REFERENCES mapping (id),
    pack_id BIGINT NOT NULL REFERENCES pack (id),
    position INTEGER NOT NULL,
    PRIMARY KEY (mapping_id, pack_id)
);
CREATE INDEX mapping_pack_pack ON mapping_pack (pack_id, mapping_id);

CREATE TABLE mapping_link (
    mapping_id BIGINT NOT NULL REFERENCES mapping (id),
    link_id BIGINT NOT NULL REFERENCES link (id),
    position INTEGER NOT NULL,
    PRIMARY KEY (mapping_id, link_id)
);
CREATE INDEX mapping_link_link ON mapping_link (link_id, mapping_id);

-- Both counts change together with the keys, in one transaction.
CREATE TABLE license_key_tag (
    id {{identity}},
    shop_id BIGINT NOT NULL {{sqlite3: REFERENCES shop (id)}},
    name TEXT NOT NULL,
    low_stock_threshold BIGINT,
    warned_at BIGINT, -- when the staff were last told that the stock is low
    reclaims SMALLINT NOT NULL DEFAULT 0, -- whether keys of revoked assignments go back to the stock
    available BIGINT NOT NULL,
    assigned BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT
);
CREATE INDEX license_key_tag_shop ON license_key_tag (shop_id, id) WHERE deleted_at IS NULL;
CREATE INDEX license_key_tag_watched ON license_key_tag (shop_id, id)
    WHERE deleted_at IS NULL AND low_stock_threshold >= 0;
{{pgsql: ALTER TABLE license_key_tag ALTER COLUMN shop_id SET STATISTICS 0;}}

CREATE TABLE mapping_license_key_tag (
    mapping_id BIGINT NOT NULL REFERENCES mapping (id),
    tag_id BIGINT NOT NULL REFERENCES license_key_tag (id),
    position INTEGER NOT NULL,
    PRIMARY KEY (mapping_id, tag_id)
);
CREATE INDEX mapping_license_key_tag_tag ON mapping_license_key_tag (tag_id, mapping_id);


-- Orders

CREATE TABLE customer (
    id {{identity}},
    shop_id BIGINT NOT NULL {{sqlite3: REFERENCES shop (id)}},
    storefront_customer_id TEXT NOT NULL, -- 'order:' and the order's number for a guest
    email TEXT,
    email_replaced TEXT, -- by a person; a source that repeats it changes nothing
    first_name TEXT,
    last_name TEXT,
    locale TEXT,
    merged_into BIGINT {{sqlite3: REFERENCES customer (id)}}, -- who stays, and was never merged
    merging SMALLINT NOT NULL DEFAULT 0, -- some orders are still to be moved there
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (shop_id, storefront_customer_id)
);
CREATE INDEX customer_merged ON customer (merged_into, id) WHERE merged_into IS NOT NULL;
CREATE INDEX customer_merging ON customer (shop_id, id) WHERE merging > 0;
CREATE INDEX customer_email ON customer (shop_id, lower(email), id) WHERE email IS NOT NULL;

CREATE TABLE orders (
    id {{identity}},
    shop_id BIGINT NOT NULL {{sqlite3: REFERENCES shop (id)}},
    storefront_order_id TEXT NOT NULL,
    name TEXT, -- as the shop calls it: "A-1043"
    customer_id BIGINT NOT NULL {{sqlite3: REFERENCES customer (id)}},
    recipient TEXT, -- its own address, which goes before its customer's
    likely_typo TEXT, -- an address that it had, and that was probably mistyped
    page_id TEXT NOT NULL UNIQUE,
    page_replaced_at BIGINT, -- when the shop replaced the page's address; NULL: never
    access_status TEXT NOT NULL
        {{sqlite3: CHECK (access_status IN ('active', 'held', 'revoked', 'rejected'))}},
    access_reason TEXT,
    undeclared SMALLINT NOT NULL DEFAULT 0, -- it gives nothing before its customer's declaration
    declared_at BIGINT, -- NULL: the shop asked for none, or it is awaited
    client_ip TEXT, -- as long as the fraud check looks back
    storefront_risk TEXT {{sqlite3: CHECK (storefront_risk IN ('none', 'low', 'medium', 'high'))}},
    risk_pending SMALLINT NOT NULL DEFAULT 0, -- the storefront has yet to answer
    fraud_level TEXT {{sqlite3: CHECK (fraud_level IN ('none', 'low', 'medium', 'high'))}},
    fraud_signals TEXT, -- a JSON array
    fraud_decision TEXT NOT NULL
        {{sqlite3: CHECK (fraud_decision IN ('not_checked', 'passed', 'held', 'approved', 'rejected'))}},
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (shop_id, storefront_order_id)
);
{{pgsql: ALTER TABLE orders ALTER COLUMN shop_id SET STATISTICS 0;}}
CREATE INDEX orders_customer ON orders (customer_id, created_at, id);
CREATE INDEX orders_recipient ON orders (shop_id, lower(recipient), created_at, id) WHERE recipient IS NOT NULL;
-- Orders in the order of time, for each filter that can come first. The conditions are true for all rows; they
-- keep other statements from using these indexes.
CREATE INDEX orders_created ON orders (shop_id, created_at, id) WHERE created_at > 0;
CREATE INDEX orders_updated ON orders (shop_id, updated_at, id) WHERE updated_at > 0;
CREATE INDEX orders_state ON orders (shop_id, access_status, created_at, id) WHERE access_status <> 'active';
-- For the fraud check.  The first 19 characters are an IPv4 address, or the network of an IPv6 address.
CREATE INDEX orders_client_ip ON orders (shop_id, substr(client_ip, 1, 19), created_at)
    WHERE client_ip IS NOT NULL;
CREATE INDEX orders_client_ip_kept ON orders (created_at) WHERE client_ip IS NOT NULL;
CREATE INDEX orders_likely_typo ON orders (shop_id, id) WHERE likely_typo IS NOT NULL;
CREATE INDEX orders_refused ON orders (customer_id) WHERE access_status IN ('revoked', 'rejected');

-- The timeline of an order: rows are added and never changed.
CREATE TABLE order_timeline (
    id {{identity}},
    order_id BIGINT NOT NULL {{sqlite3: REFERENCES orders (id)}},
    action TEXT NOT NULL,
    assignment_ids TEXT, -- a JSON array; NULL: the whole order
    key_id TEXT, -- the API key that asked; NULL with user_name: the service itself
    user_name TEXT, -- who of the shop's staff asked, in the settings
    reason TEXT,
    details TEXT, -- a JSON object
    created_at BIGINT NOT NULL
);
CREATE INDEX order_timeline_order ON order_timeline (order_id, id);

-- The first visit of an order's page on each day (since 1970-01-01, in UTC) from each network.
CREATE TABLE order_visit (
    order_id BIGINT NOT NULL {{sqlite3: REFERENCES orders (id)}},
    day BIGINT NOT NULL,
    network {{key_text}} NOT NULL, -- as mdl_address_network has it
    visited_at BIGINT NOT NULL,
    PRIMARY KEY (order_id, day, network)
) {{sqlite3: WITHOUT ROWID}};
CREATE INDEX order_visit_visited ON order_visit (visited_at);

-- A customer asks the shop for help with an order. A request that is asked lapses by its age.
CREATE TABLE help_request (
    id {{identity}},
    shop_id BIGINT NOT NULL,
    order_id BIGINT NOT NULL {{sqlite3: REFERENCES orders (id)}},
    finding TEXT NOT NULL, -- what was wrong when the customer asked (mod_downloads/core/order/diagnosis.h)
    state TEXT NOT NULL CHECK (state IN ('asked', 'granted', 'refused', 'lapsed')),
    answer TEXT, -- what the shop writes to the customer
    decided_by TEXT, -- a member; NULL: an API key, the service itself, or nobody yet
    asked_at BIGINT NOT NULL,
    decided_at BIGINT
);
CREATE UNIQUE INDEX help_request_asked ON help_request (order_id) WHERE state = 'asked';
CREATE INDEX help_request_order ON help_request (order_id, id);
CREATE INDEX help_request_shop ON help_request (shop_id, id);
CREATE INDEX help_request_open ON help_request (shop_id, asked_at, id) WHERE state = 'asked';

-- A line of an order, and the mapping that it follows.
CREATE TABLE assignment (
    id {{identity}},
    shop_id BIGINT NOT NULL DEFAULT 0,
    order_id BIGINT NOT NULL {{sqlite3: REFERENCES orders (id)}},
    storefront_product_id TEXT NOT NULL,
    storefront_variant_id TEXT NOT NULL, -- '' for none
    title TEXT NOT NULL DEFAULT '', -- as the product was called when it was assigned
    quantity INTEGER NOT NULL,
    mapping_id BIGINT NOT NULL REFERENCES mapping (id),
    content TEXT NOT NULL {{sqlite3: CHECK (content IN ('live', 'pinned'))}},
    status TEXT NOT NULL {{sqlite3: CHECK (status IN ('active', 'revoked'))}},
    download_limit BIGINT, -- the shop's when it was assigned, for a mapping without one
    expires_at BIGINT,
    created_at BIGINT NOT NULL,
    UNIQUE (order_id, storefront_product_id, storefront_variant_id)
);
-- Finds whether an order follows a mapping that may have any number of other orders.
CREATE INDEX assignment_mapping ON assignment (mapping_id, content, order_id);
CREATE INDEX assignment_product ON assignment (shop_id, storefront_product_id, order_id) WHERE shop_id > 0;
CREATE INDEX assignment_expires ON assignment (shop_id, expires_at, order_id)
    WHERE expires_at > 0 AND status = 'active';

-- The content of an assignment with pinned content. A pack is pinned by its files.
CREATE TABLE assignment_file (
    assignment_id BIGINT NOT NULL REFERENCES assignment (id),
    asset_id BIGINT NOT NULL REFERENCES asset (id),
    position INTEGER NOT NULL,
    PRIMARY KEY (assignment_id, asset_id)
) {{sqlite3: WITHOUT ROWID}};
CREATE INDEX assignment_file_asset ON assignment_file (asset_id, assignment_id);
CREATE INDEX assignment_file_position ON assignment_file (assignment_id, position);

CREATE TABLE assignment_link (
    assignment_id BIGINT NOT NULL REFERENCES assignment (id),
    link_id BIGINT NOT NULL REFERENCES link (id),
    position INTEGER NOT NULL,
    PRIMARY KEY (assignment_id, link_id)
);
CREATE INDEX assignment_link_link ON assignment_link (link_id);


-- License keys

-- The data key that seals license keys, itself sealed with the server's secret: one row.
CREATE TABLE data_key (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    sealed TEXT NOT NULL
);

CREATE TABLE license_key (
    id {{identity}},
    tag_id BIGINT NOT NULL REFERENCES license_key_tag (id),
    license_key {{key_text}} NOT NULL, -- sealed
    assignment_id BIGINT {{sqlite3: REFERENCES assignment (id)}},
    assigned_at BIGINT,
    -- A key above a lowered quantity, of a tag whose keys are not reclaimed: its assignment no longer shows it,
    -- and nobody else gets it.
    withdrawn_at BIGINT,
    created_at BIGINT NOT NULL,
    UNIQUE (tag_id, license_key)
);
CREATE INDEX license_key_available ON license_key (tag_id, id) WHERE assignment_id IS NULL;
CREATE INDEX license_key_assignment ON license_key (assignment_id, id) WHERE assignment_id IS NOT NULL;
CREATE INDEX license_key_assigned ON license_key (tag_id, id)
    WHERE assignment_id IS NOT NULL AND withdrawn_at IS NULL;
CREATE INDEX license_key_withdrawn ON license_key (tag_id, id) WHERE withdrawn_at IS NOT NULL;

-- How many keys of a tag an assignment should have, and how many it has.
CREATE TABLE license_claim (
    assignment_id BIGINT NOT NULL {{sqlite3: REFERENCES assignment (id)}},
    tag_id BIGINT NOT NULL REFERENCES license_key_tag (id),
    wanted BIGINT NOT NULL,
    assigned BIGINT NOT NULL,
    shop_id BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (assignment_id, tag_id)
);
CREATE INDEX license_claim_waiting ON license_claim (tag_id, assignment_id) WHERE assigned < wanted;
CREATE INDEX license_claim_owed ON license_claim (shop_id, assignment_id) WHERE assigned < wanted AND shop_id > 0;


-- Downloads

-- The downloads of a file that an assignment has used.
CREATE TABLE allowance (
    assignment_id BIGINT NOT NULL {{sqlite3: REFERENCES assignment (id)}},
    asset_id BIGINT NOT NULL {{sqlite3: REFERENCES asset (id)}},
    downloads_used BIGINT NOT NULL,
    downloads_extra BIGINT NOT NULL,
    kept TEXT NOT NULL DEFAULT '', -- what sessions delivered of files that they gave back
    kept_bytes BIGINT NOT NULL DEFAULT 0, -- the sum over sessions
    version TEXT NOT NULL DEFAULT '', -- of the bytes that were taken last: 16 digits of their SHA-256
    is_fresh SMALLINT NOT NULL DEFAULT 0, -- whether the count began with these bytes
    PRIMARY KEY (assignment_id, asset_id)
) {{sqlite3: WITHOUT ROWID}};

-- A download by a signed link. The delivered bytes are kept for each file of the link, as in
-- mod_downloads/core/download/progress.h.
CREATE TABLE download_session (
    id {{key_text}} NOT NULL, -- of the signed link
    generation INTEGER NOT NULL, -- from 1; a link whose download is complete can begin another
    assignment_id BIGINT NOT NULL {{sqlite3: REFERENCES assignment (id)}},
    asset_id BIGINT {{sqlite3: REFERENCES asset (id)}}, -- NULL: the archive of all files
    etag TEXT NOT NULL,
    size BIGINT NOT NULL,
    version INTEGER, -- of the asset; NULL: the archive
    request_id TEXT, -- that began it
    network {{key_text}}, -- of the client that began it, as mdl_address_network has it
    status TEXT NOT NULL {{sqlite3: CHECK (status IN ('open', 'counted', 'returned'))}},
    files TEXT NOT NULL, -- whose downloads it reserved; a whole one is charged
    bytes BIGINT NOT NULL, -- bytes delivered twice count twice
    acknowledged BIGINT NOT NULL DEFAULT 0, -- of these, by the client's TCP
    handed_over BIGINT NOT NULL DEFAULT 0, -- of these, to the object store, by a redirect
    transfers INTEGER NOT NULL,
    ended_at BIGINT, -- when the last transfer was settled
    opened_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- When it becomes idle; NULL: a transfer runs, or it is not open. A session that delivers a file at once
    -- changes no indexed column, so PostgreSQL writes the new row beside the old one.
    idle_at BIGINT,
    PRIMARY KEY (id, generation)
) {{pgsql: WITH (fillfactor = 80)}};
CREATE INDEX download_session_assignment ON download_session (assignment_id, opened_at, id, generation);
CREATE INDEX download_session_opened ON download_session (opened_at);
CREATE INDEX download_session_idle ON download_session (idle_at) WHERE idle_at IS NOT NULL;

-- A process that meters transfers. Others settle its transfers once its beat has stopped.
CREATE TABLE meter (
    id {{key_text}} PRIMARY KEY,
    alive_until BIGINT NOT NULL -- its beat: by its own clock
);

-- A request that sends a file's bytes, until it is settled.
CREATE TABLE download_transfer (
    id {{key_text}} NOT NULL,
    meter_id {{key_text}} NOT NULL,
    request_id TEXT,
    session_id {{key_text}} NOT NULL,
    generation INTEGER NOT NULL,
    assignment_id BIGINT NOT NULL,
    files TEXT NOT NULL, -- what it delivered, as last known
    bytes BIGINT NOT NULL,
    acknowledged BIGINT NOT NULL DEFAULT 0,
    handed_over BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (meter_id, id)
) {{sqlite3: WITHOUT ROWID}};
CREATE INDEX download_transfer_session ON download_transfer (session_id, generation);


-- The words by which staff find orders, customers, products and files (mod_downloads/core/search_word.h).
CREATE TABLE search_word (
    shop_id BIGINT NOT NULL,
    kind SMALLINT NOT NULL, -- 1: order, 2: customer, 3: mapping, 4: asset
    word {{key_text}} NOT NULL,
    ref BIGINT NOT NULL, -- its id
    PRIMARY KEY (shop_id, kind, word, ref)
) {{sqlite3: WITHOUT ROWID}};
CREATE INDEX search_word_ref ON search_word (ref, kind, word);
{{pgsql: ALTER TABLE search_word ALTER COLUMN shop_id SET STATISTICS 0;}}


-- Emails and jobs

-- An email to a customer.
CREATE TABLE email (
    id {{identity}},
    shop_id BIGINT NOT NULL {{sqlite3: REFERENCES shop (id)}},
    order_id BIGINT NOT NULL {{sqlite3: REFERENCES orders (id)}},
    request_id TEXT, -- of the request that caused it
    recipient TEXT,
    message_id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL {{sqlite3: CHECK (status IN ('queued', 'sent', 'failed', 'no_recipient'))}},
    held SMALLINT NOT NULL DEFAULT 0, -- queued, but not to be sent before the order is approved
    is_late SMALLINT NOT NULL DEFAULT 0, -- it tells that what was missing has come
    is_partial SMALLINT NOT NULL DEFAULT 0, -- something was missing when it was sent
    help_id BIGINT, -- the request for help that it refuses; NULL: it is a delivery email
    attempts INTEGER NOT NULL,
    last_error TEXT,
    response TEXT, -- what the mail server said when it took it
    created_at BIGINT NOT NULL,
    sent_at BIGINT,
    bounced_at BIGINT -- the status stays "sent"
);
CREATE INDEX email_order ON email (order_id, id);
CREATE INDEX email_undelivered ON email (shop_id, id)
    WHERE status IN ('failed', 'no_recipient') OR bounced_at IS NOT NULL;
CREATE INDEX email_held ON email (shop_id, id) WHERE held <> 0;
CREATE INDEX email_shop ON email (shop_id, id) WHERE id > 0;
CREATE INDEX email_fate ON email (shop_id, ({{email_fate}}), id);
CREATE INDEX email_address ON email (shop_id, (lower(recipient) {{pgsql: COLLATE "C"}}), id)
    WHERE recipient IS NOT NULL;
{{pgsql: ALTER TABLE email ALTER COLUMN shop_id SET STATISTICS 0;}}

-- An email to the staff of a shop, as long as its job has not ended.
CREATE TABLE staff_email (
    job_id {{key_text}} PRIMARY KEY,
    recipient TEXT NOT NULL,
    template TEXT NOT NULL,
    data TEXT NOT NULL -- what the template shows, a JSON object
);

-- Somebody has asked for an email with the links of all orders of an address, which need not exist.
CREATE TABLE find_request (
    shop_id BIGINT NOT NULL,
    address_mac {{key_text}} NOT NULL, -- of the address in lower case
    address TEXT NOT NULL, -- sealed
    asked_at BIGINT NOT NULL,
    due_at BIGINT, -- when the orders are looked up; NULL: they have been
    sent_at BIGINT, -- when the last email was queued
    job_id {{key_text}}, -- which sends that email
    PRIMARY KEY (shop_id, address_mac)
);
CREATE INDEX find_request_asked ON find_request (asked_at);
CREATE INDEX find_request_due ON find_request (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX find_request_waiting ON find_request (shop_id) WHERE due_at IS NOT NULL;
CREATE INDEX find_request_of_shop ON find_request (shop_id, sent_at) WHERE sent_at IS NOT NULL;
CREATE INDEX find_request_of_address ON find_request (address_mac, sent_at) WHERE sent_at IS NOT NULL;
CREATE INDEX find_request_job ON find_request (job_id) WHERE job_id IS NOT NULL;
{{pgsql: ALTER TABLE find_request ALTER COLUMN shop_id SET STATISTICS 0;}}

CREATE TABLE job (
    id {{key_text}} PRIMARY KEY,
    shop_id BIGINT NOT NULL {{sqlite3: REFERENCES shop (id)}},
    type TEXT NOT NULL,
    lane TEXT NOT NULL,
    request_id TEXT, -- of the request that caused it, also by another job; NULL: none did
    asset_id BIGINT {{sqlite3: REFERENCES asset (id)}},
    upload_id {{key_text}} REFERENCES upload (id),
    order_id BIGINT {{sqlite3: REFERENCES orders (id)}},
    email_id BIGINT REFERENCES email (id),
    source_url TEXT,
    expected_sha256 TEXT,
    status TEXT NOT NULL
        {{sqlite3: CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled'))}},
    attempts INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    interruptions INTEGER NOT NULL DEFAULT 0, -- how often in a row the background process died at it
    due_at BIGINT, -- when it may be claimed: the next attempt, or the end of a lease; NULL once finished
    lease_owner TEXT,
    lease_token BIGINT NOT NULL, -- fencing: grows with each claim
    bytes_received BIGINT NOT NULL,
    bytes_total BIGINT,
    written TEXT, -- how far an import into an object has come (storage/object_writer.h)
    validator TEXT, -- of the partial file: boot id and strong entity tag
    error_code TEXT,
    error_message TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL DEFAULT 0,
    started_at BIGINT,
    finished_at BIGINT
) {{sqlite3: WITHOUT ROWID}};
{{pgsql: ALTER TABLE job ALTER COLUMN shop_id SET STATISTICS 0;}}
CREATE INDEX job_due ON job (lane, due_at) WHERE due_at IS NOT NULL;
-- A shop's due jobs in a lane, beside the backlog of another shop. On PostgreSQL only job_claim_shared can use
-- it. Without it, when one shop had most of the jobs, PostgreSQL used the index of a shop's jobs, and read all
-- of them for each claim.
CREATE INDEX job_due_of_shop ON job (lane, {{sqlite3: shop_id}}{{pgsql: (shop_id + 0)}}, due_at)
    WHERE due_at IS NOT NULL;
CREATE INDEX job_owner ON job (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX job_shop ON job (shop_id, id);
CREATE INDEX job_shop_type ON job (shop_id, id) WHERE type <> 'email' AND type <> 'late_email';
CREATE INDEX job_failed ON job (shop_id, id) WHERE status = 'failed' AND type <> 'email';
CREATE INDEX job_failed_id ON job (id) WHERE status = 'failed';
-- A job has only one of these columns, and needs no entry in the indexes of the others.
CREATE INDEX job_asset ON job (asset_id, id) WHERE asset_id IS NOT NULL;
CREATE INDEX job_upload ON job (upload_id) WHERE upload_id IS NOT NULL;
CREATE INDEX job_order ON job (order_id, id) WHERE order_id IS NOT NULL;
CREATE INDEX job_email ON job (email_id) WHERE email_id IS NOT NULL;

-- What a job buyers_move gives to whom, and how far it has come (mod_downloads/core/order/move.h).
CREATE TABLE move (
    job_id {{key_text}} PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE,
    mapping_id BIGINT NOT NULL, -- whose orders get
    to_mapping_id BIGINT NOT NULL, -- what this one gives
    license_keys SMALLINT NOT NULL,
    send_email SMALLINT NOT NULL,
    key_id TEXT, -- who asked, like user_name
    user_name TEXT,
    after_content TEXT NOT NULL, -- the last order that was looked at, like after_order_id
    after_order_id BIGINT NOT NULL,
    given BIGINT NOT NULL, -- orders
    skipped BIGINT NOT NULL, -- orders that refused it
    skipped_orders TEXT NOT NULL -- a JSON array of the first of them: [number, code]
) {{sqlite3: WITHOUT ROWID}};
CREATE INDEX move_mapping ON move (mapping_id, job_id);


-- A job tell_buyers looks for the buyers of a file's new version (mod_downloads/core/order/news.h).
CREATE TABLE news_fill (
    job_id {{key_text}} PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE,
    asset_id BIGINT NOT NULL,
    version INTEGER NOT NULL,
    mapping_id BIGINT NOT NULL, -- whose orders it looks at; 0: those with content of their own
    after_id BIGINT NOT NULL -- the last order, or with 0 the last assignment
) {{sqlite3: WITHOUT ROWID}};

-- A purchase of which an email tells that its file has a new version, until it has left.
CREATE TABLE news_item (
    order_id BIGINT NOT NULL,
    asset_id BIGINT NOT NULL,
    shop_id BIGINT NOT NULL,
    address {{key_text}} NOT NULL, -- in lower case
    version INTEGER NOT NULL,
    job_id {{key_text}} REFERENCES job (id) ON DELETE CASCADE, -- which sends that email; NULL: none yet
    PRIMARY KEY (order_id, asset_id)
) {{sqlite3: WITHOUT ROWID}};
CREATE INDEX news_item_waiting ON news_item (shop_id, address, order_id) WHERE job_id IS NULL;
CREATE INDEX news_item_job ON news_item (job_id) WHERE job_id IS NOT NULL;

-- The addresses that a shop tells of new versions, and has told within a day.
CREATE TABLE news_address (
    shop_id BIGINT NOT NULL,
    address {{key_text}} NOT NULL,
    due_at BIGINT, -- when its next email may be queued; NULL: nothing waits
    sent_at BIGINT, -- when the last was queued
    PRIMARY KEY (shop_id, address)
) {{sqlite3: WITHOUT ROWID}};
CREATE INDEX news_address_due ON news_address (shop_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX news_address_sent ON news_address (shop_id, sent_at) WHERE sent_at IS NOT NULL;
{{pgsql: ALTER TABLE news_address ALTER COLUMN shop_id SET STATISTICS 0;}}
{{pgsql: ALTER TABLE news_item ALTER COLUMN shop_id SET STATISTICS 0;}}

-- When a shop's addresses are looked at next, by the shop's id.
CREATE TABLE news_shop (
    id {{sqlite3: INTEGER}}{{pgsql: BIGINT}} PRIMARY KEY,
    due_at BIGINT NOT NULL
);
CREATE INDEX news_shop_due ON news_shop (due_at);

-- Addresses that a shop tells nothing of new versions.
CREATE TABLE unsubscribed (
    shop_id BIGINT NOT NULL,
    address_mac {{key_text}} NOT NULL, -- of the address in lower case, by the data key
    created_at BIGINT NOT NULL,
    PRIMARY KEY (shop_id, address_mac)
) {{sqlite3: WITHOUT ROWID}};


-- Events and webhooks

-- The API's events for a shop's system. number counts a shop's events in the order of their commits; the
-- background process assigns it.
CREATE TABLE event (
    id {{identity}},
    shop_id BIGINT NOT NULL,
    endpoint_id BIGINT, -- it is for this endpoint alone
    type TEXT NOT NULL,
    order_id BIGINT,
    data TEXT NOT NULL, -- a JSON object
    request_id TEXT, -- that caused it, also by a job or an email; NULL: none did, or it is one of many
    created_at BIGINT NOT NULL,
    number BIGINT
);
CREATE INDEX event_waiting ON event (id) WHERE number IS NULL;
CREATE INDEX event_number ON event (shop_id, number) WHERE number > 0;
CREATE INDEX event_limit_reached ON event (shop_id, order_id) WHERE type = 'download.limit_reached';
{{pgsql: ALTER TABLE event ALTER COLUMN shop_id SET STATISTICS 0;}}

-- The last number assigned to a shop's events, by the shop's id.
CREATE TABLE event_count (
    id {{sqlite3: INTEGER}}{{pgsql: BIGINT}} PRIMARY KEY,
    last BIGINT NOT NULL
);

-- What a shop had on each day, added as events get their numbers (mod_downloads/core/shop/day_count.h).
CREATE TABLE day_count (
    shop_id BIGINT NOT NULL,
    day BIGINT NOT NULL, -- since 1970-01-01, in UTC
    kind SMALLINT NOT NULL, -- 0: orders, 1: downloads, 2: bytes, 3: emails
    n BIGINT NOT NULL,
    PRIMARY KEY (shop_id, day, kind)
) {{sqlite3: WITHOUT ROWID}};

-- The numbering that event numbers belong to: after a backup was restored they are given again.
CREATE TABLE event_feed (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    name TEXT NOT NULL
);
INSERT INTO event_feed (id, name) VALUES (1, 'feed_' ||
    {{sqlite3: lower(hex(randomblob(16)))}}{{pgsql: replace(gen_random_uuid()::text, '-', '')}});

-- A URL of a shop's system that gets events. Its job sends due deliveries, and exists as long as the endpoint.
CREATE TABLE webhook_endpoint (
    id {{identity}},
    shop_id BIGINT NOT NULL,
    job_id {{key_text}} NOT NULL UNIQUE,
    url TEXT NOT NULL,
    description TEXT,
    types TEXT, -- a JSON array; NULL: all
    secret TEXT NOT NULL, -- sealed, as the next
    old_secret TEXT, -- signs as well until old_until
    old_until BIGINT,
    is_active SMALLINT NOT NULL,
    failing_since BIGINT, -- the first failure since the last success
    disabled_at BIGINT, -- by the service
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT
);
CREATE INDEX webhook_endpoint_shop ON webhook_endpoint (shop_id, id) WHERE deleted_at IS NULL;
CREATE INDEX webhook_endpoint_failing ON webhook_endpoint (id)
    WHERE deleted_at IS NULL AND (disabled_at IS NOT NULL OR (is_active = 1 AND failing_since IS NOT NULL));
{{pgsql: ALTER TABLE webhook_endpoint ALTER COLUMN shop_id SET STATISTICS 0;}}

CREATE TABLE webhook_delivery (
    id {{identity}},
    endpoint_id BIGINT NOT NULL,
    event_id BIGINT NOT NULL,
    status TEXT NOT NULL {{sqlite3: CHECK (status IN ('pending', 'succeeded', 'failed'))}},
    attempts INTEGER NOT NULL, -- since it was asked for
    due_at BIGINT, -- NULL: it is over
    response_status INTEGER,
    response_body TEXT, -- its beginning
    error TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX webhook_delivery_endpoint ON webhook_delivery (endpoint_id, id);
CREATE INDEX webhook_delivery_due ON webhook_delivery (endpoint_id, due_at) WHERE due_at IS NOT NULL;


-- The service itself

-- Its one row exists while the operator has closed the service to changes.
CREATE TABLE maintenance (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    since BIGINT NOT NULL, -- by the database's clock
    reason TEXT,
    copy_of TEXT -- while this database is becoming a copy: what of
);

-- Each httpd whose background process works on this database.
CREATE TABLE node (
    host {{key_text}} NOT NULL,
    pid_file {{key_text}} NOT NULL,
    pid BIGINT NOT NULL, -- of the background process
    build TEXT NOT NULL,
    connections BIGINT NOT NULL DEFAULT 0, -- to the database, at most
    beat_at BIGINT NOT NULL, -- by the database's clock
    PRIMARY KEY (host, pid_file)
) {{sqlite3: WITHOUT ROWID}};

-- What a test of a node's background process has found wrong, and what is to be told of it (sql/queries/alert.sql).
CREATE TABLE alert_finding (
    name {{key_text}} NOT NULL, -- of the test
    host {{key_text}} NOT NULL,
    pid_file {{key_text}} NOT NULL,
    of_node BIGINT NOT NULL, -- 1: the alert is this node's
    words TEXT NOT NULL,
    seen_at BIGINT NOT NULL, -- by the database's clock
    PRIMARY KEY (name, host, pid_file)
) {{sqlite3: WITHOUT ROWID}};
CREATE TABLE alert (
    name {{key_text}} NOT NULL,
    host {{key_text}} NOT NULL, -- this and the next: '' for the service's
    pid_file {{key_text}} NOT NULL,
    failing BIGINT NOT NULL, -- 1, or 0 once all is well again; each that was told has the same then
    words TEXT NOT NULL, -- of the finding
    rounds BIGINT NOT NULL DEFAULT 0, -- in which there was something to tell
    command_told BIGINT NOT NULL DEFAULT 0,
    email_told BIGINT NOT NULL DEFAULT 0,
    teller_host {{key_text}} NOT NULL, -- the node that tells
    teller_pid_file {{key_text}} NOT NULL,
    PRIMARY KEY (name, host, pid_file)
) {{sqlite3: WITHOUT ROWID}};

-- The storage folder and the bucket that belong to this database: the contents of the file and of the object
-- "identity".
CREATE TABLE storage (
    place {{key_text}} PRIMARY KEY, -- folder, objects
    identity {{key_text}} NOT NULL
) {{sqlite3: WITHOUT ROWID}};

-- Holds that keep the service from removing files while the storage folder is copied.
CREATE TABLE storage_hold (
    id {{key_text}} PRIMARY KEY,
    user_name TEXT NOT NULL,
    held_at BIGINT NOT NULL,
    lapses_at BIGINT -- of a backup, which renews it; NULL: it holds until it is released
) {{sqlite3: WITHOUT ROWID}};


-- Vacuum on PostgreSQL, for tables of 10^8 rows: its default waits for dead rows in a fifth of a table, and for a
-- fifth of new ones. Of these tables each row ends or changes within days, so dead rows and their index entries
-- would be as many as a fifth of the table before the first is removed.
{{pgsql: ALTER TABLE idempotency SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);}}
{{pgsql: ALTER TABLE download_session SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);}}
{{pgsql: ALTER TABLE download_transfer SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);}}
{{pgsql: ALTER TABLE job SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);}}
{{pgsql: ALTER TABLE event SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);}}
{{pgsql: ALTER TABLE webhook_delivery SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);}}
{{pgsql: ALTER TABLE upload SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);}}
-- Rows of these are kept, and hardly change once they are a day old. Vacuum looks at new pages a fiftieth of the
-- table at a time, and freezes them at once: so the vacuum that PostgreSQL forces against the wraparound of
-- transaction ids skips them, instead of reading and writing the whole table.
{{pgsql: ALTER TABLE audit SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_freeze_min_age = 0);}}
{{pgsql: ALTER TABLE customer SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_freeze_min_age = 0);}}
{{pgsql: ALTER TABLE orders SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_freeze_min_age = 0);}}
{{pgsql: ALTER TABLE order_timeline SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_freeze_min_age = 0);}}
{{pgsql: ALTER TABLE assignment SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_freeze_min_age = 0);}}
{{pgsql: ALTER TABLE allowance SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_freeze_min_age = 0);}}
{{pgsql: ALTER TABLE license_key SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_freeze_min_age = 0);}}
{{pgsql: ALTER TABLE email SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_freeze_min_age = 0);}}
{{pgsql: ALTER TABLE search_word SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_freeze_min_age = 0);}}
