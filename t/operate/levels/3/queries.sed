# The column that 0003_renames.sql renames, but not the names under which queries return it.
/^SELECT assignment_id, asset_id, downloads_used,/ s/downloads_used/& AS &/
s/\bdownloads_used\b/downloads_counted/g
s/\bAS downloads_counted\b/AS downloads_used/g
