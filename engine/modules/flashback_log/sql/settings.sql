-- What the module shows and refuses while it is switched off, as it is by default.
CREATE EXTENSION flashback_log VERSION '1.0';
-- what uses an earlier version stays when that is updated
CREATE VIEW uses AS SELECT state, recycled_files FROM polar_stat_flashback_log;
SELECT * FROM uses;
ALTER EXTENSION flashback_log UPDATE;
SELECT * FROM uses;
DROP VIEW uses;
SELECT name, setting, unit, context, min_val, max_val, enumvals FROM pg_settings
WHERE name ~ '^polar_(flashback|fast_recovery|enable_(flashback|fast_recovery))' AND name !~ '_test_' ORDER BY name;
SHOW track_commit_timestamp;
SELECT state, mode, oldest_time, points, windows_ended, size_bytes, looks, images FROM polar_stat_flashback_log;
SELECT newest_time, shortened, last_shortened_at, last_shortened_reason FROM polar_stat_flashback_log;
SELECT * FROM polar_flashback_points;
CREATE TABLE kept AS SELECT g FROM generate_series(1, 1000) g;
CHECKPOINT;
DELETE FROM kept;
CHECKPOINT;
SELECT looks, written_bytes FROM polar_stat_flashback_log;
SELECT count(*) FROM pg_ls_dir('.') d WHERE d = 'polar_flog';
SELECT * FROM polar_flashback_log_get_images(1);
SELECT polar_flashback_log_page('kept', 0, 1);
SELECT * FROM polar_flashback_log_verify();
-- what pages would take can be asked all the same
SELECT pages >= 64 AS enough, image_bytes < page_bytes AS compressed, page_bytes <= 8192 AS without_hole
FROM polar_flashback_log_sample();
-- old pages hold what was deleted: only superusers see them
CREATE ROLE regress_flashback_nobody;
SET ROLE regress_flashback_nobody;
SELECT state FROM polar_stat_flashback_log;
SELECT * FROM polar_flashback_points;
SELECT * FROM polar_flashback_log_get_images(1);
SELECT polar_flashback_log_page('kept', 0, 1);
SELECT * FROM polar_flashback_log_verify();
SELECT pages FROM polar_flashback_log_sample();
SET ROLE pg_monitor;
SELECT state FROM polar_stat_flashback_log;
SELECT pages > 0 AS sampled FROM polar_flashback_log_sample();
SELECT count(*) FROM polar_flashback_points;
SELECT polar_flashback_log_page('kept', 0, 1);
RESET ROLE;
DROP ROLE regress_flashback_nobody;
DROP TABLE kept;
DROP EXTENSION flashback_log;
