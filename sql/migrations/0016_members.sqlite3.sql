-- Who may open a shop's settings.  httpd says who a user is.
CREATE TABLE member (
    user_name TEXT NOT NULL,
    shop_id INTEGER NOT NULL, -- 0: every shop
    role TEXT NOT NULL CHECK (role IN ('read-only', 'staff', 'owner', 'operator')),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (user_name, shop_id),
    CHECK ((role = 'operator') = (shop_id = 0))
);
CREATE INDEX member_shop ON member (shop_id, user_name);

-- Forms that have taken effect, each until it would be refused as too old.
CREATE TABLE form (
    id TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL
);
CREATE INDEX form_expires ON form (expires_at);
