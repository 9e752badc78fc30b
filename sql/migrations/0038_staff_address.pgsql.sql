-- An email address of a shop's staff: an owner's name, or the shop's own address.
CREATE TABLE staff_address (
    shop_id BIGINT NOT NULL,
    address TEXT COLLATE "C" NOT NULL,
    asked_at BIGINT NOT NULL, -- when its owner was last asked to confirm it
    confirmed_at BIGINT, -- before that it gets nothing else
    PRIMARY KEY (shop_id, address)
);

-- What staff were sent within a day, by what bounds it.
CREATE TABLE staff_email_budget (
    name TEXT COLLATE "C" PRIMARY KEY, -- "email/shop/7", "confirmation/address/ada@example.com", …
    began_at BIGINT NOT NULL, -- of the day
    taken BIGINT NOT NULL
);
CREATE INDEX staff_email_budget_began ON staff_email_budget (began_at);
