-- A shop's due jobs in a lane, beside the backlog of another shop.
CREATE INDEX job_due_of_shop ON job (lane, shop_id, due_at) WHERE due_at IS NOT NULL;
