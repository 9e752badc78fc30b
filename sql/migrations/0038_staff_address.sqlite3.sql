-- An email address of a shop's staff: an owner's name, or the shop's own address.
CREATE TABLE staff_address (
    shop_id INTEGER NOT NULL,
    address TEXT NOT NULL,
    asked_at INTEGER NOT NULL, -- when its owner was last asked to confirm it
    confirmed_at INTEGER, -- before that it gets nothing else
    PRIMARY KEY (shop_id, address)
);

-- What staff were sent within a day, by what bounds it.
CREATE TABLE staff_email_budget (
    name TEXT PRIMARY KEY, -- "email/shop/7", "confirmation/address/ada@example.com", …
    began_at INTEGER NOT NULL, -- of the day
    taken INTEGER NOT NULL
);
CREATE INDEX staff_email_budget_began ON staff_email_budget (began_at);
