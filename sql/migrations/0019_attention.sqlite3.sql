-- What needs somebody of a shop: imports that failed, emails that did not arrive, license keys that run out.
CREATE INDEX job_failed ON job (shop_id, id) WHERE status = 'failed' AND type <> 'email';
CREATE INDEX email_undelivered ON email (shop_id, id)
    WHERE status IN ('failed', 'no_recipient') OR bounced_at IS NOT NULL;
CREATE INDEX license_key_tag_watched ON license_key_tag (shop_id, id)
    WHERE deleted_at IS NULL AND low_stock_threshold >= 0;
