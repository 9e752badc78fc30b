-- Whether an asset's filename and title are guesses from its source's URL, until the source says its own.
ALTER TABLE asset ADD COLUMN filename_guessed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE asset ADD COLUMN title_guessed INTEGER NOT NULL DEFAULT 0;
