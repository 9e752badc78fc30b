-- The size of an asset's blob: to look up 5,000 of them by their digests took more than all else of an
-- order's files.
ALTER TABLE asset ADD COLUMN size INTEGER;
UPDATE asset SET size = (SELECT b.size FROM blob b WHERE b.sha256 = asset.sha256)
WHERE sha256 IS NOT NULL;
