-- Who is signed in to the settings with a name and a password.
CREATE TABLE staff_session (
    id TEXT COLLATE "C" PRIMARY KEY, -- SHA-256 of what the browser has
    user_name TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL -- later with each visit
);
CREATE INDEX staff_session_user ON staff_session (user_name, created_at);
CREATE INDEX staff_session_expires ON staff_session (expires_at);
