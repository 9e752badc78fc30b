-- Counts something for each member who is to be told of it.  A time far ahead is one that was noted
-- before the clock was set back.
-- part: notice_counted
waiting = waiting + 1,
due_at = CASE WHEN due_at IS NULL OR due_at > %lld:latest THEN %lld:now ELSE due_at END

-- name: notice_add
UPDATE notice SET {{notice_counted}} WHERE shop_id = %lld AND kind = %s AND choice <> 'off'

-- What members who may answer are told at once until they choose otherwise.
-- name: notice_default
INSERT INTO notice (shop_id, user_name, kind, choice, waiting)
SELECT shop_id, user_name, %s:kind, 'now', 0 FROM member WHERE shop_id = %lld AND role IN ('staff', 'owner')
ON CONFLICT (shop_id, user_name, kind) DO NOTHING

-- name: notice_add_daily
UPDATE notice SET {{notice_counted}} WHERE shop_id = %lld AND kind = %s AND choice = 'daily'

-- name: notice_add_of_email
UPDATE notice SET {{notice_counted}}
WHERE shop_id = (SELECT e.shop_id FROM email e WHERE e.id = %lld:email_id) AND kind = %s AND choice <> 'off'

-- What waited by another choice is not told.
-- name: notice_choose
INSERT INTO notice (shop_id, user_name, kind, choice, waiting)
    VALUES (%lld:shop_id, %s:user_name, %s:kind, %s:choice, 0)
ON CONFLICT (shop_id, user_name, kind) DO UPDATE SET
    waiting = CASE WHEN notice.choice = excluded.choice THEN notice.waiting ELSE 0 END,
    due_at = CASE WHEN notice.choice = excluded.choice THEN notice.due_at END,
    choice = excluded.choice

-- name: notice_list
SELECT kind, choice FROM notice WHERE shop_id = %lld AND user_name = %s

-- name: notice_delete
DELETE FROM notice WHERE shop_id = %lld AND user_name = %s

-- name: notices_due
SELECT shop_id, user_name FROM notice WHERE due_at <= %lld:now ORDER BY due_at LIMIT %lld

-- What a member is to be told now.
-- name: notice_lock
SELECT kind, choice, waiting, sent_at FROM notice
WHERE shop_id = %lld AND user_name = %s AND due_at <= %lld:now ORDER BY kind {{for_update}}

-- name: notice_told
UPDATE notice SET waiting = 0, due_at = NULL, sent_at = %lld:now
WHERE shop_id = %lld AND user_name = %s AND kind = %s

-- name: notice_postpone
UPDATE notice SET due_at = %lld WHERE shop_id = %lld AND user_name = %s AND kind = %s

-- The one email of a day; no row is changed within the day.  An email in the future was sent before
-- the clock was set back.
-- name: notice_claim_day
UPDATE member SET told_at = %lld:now WHERE user_name = %s AND shop_id = %lld
    AND (told_at IS NULL OR told_at <= %lld:before OR told_at > %lld:now)

-- name: notice_unclaim_day
UPDATE member SET told_at = NULL WHERE user_name = %s AND shop_id = %lld
