/* engine/modules/shared_server/shared_server--1.0--1.1.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION shared_server UPDATE TO '1.1'" to load this file. \quit

DROP VIEW polar_stat_session, polar_stat_dispatcher, polar_stat_worker_pool;
DROP FUNCTION polar_stat_get_session();
DROP FUNCTION polar_stat_get_dispatcher();
DROP FUNCTION polar_stat_get_worker_pool();

CREATE FUNCTION polar_stat_get_session(
    OUT session_pid int4,
    OUT worker_pid int4,
    OUT last_worker_pid int4,
    OUT datname name,
    OUT usename name,
    OUT client_addr text,
    OUT client_port int4,
    OUT state text,
    OUT mode text,
    OUT pinned_by text,
    OUT login_time timestamptz,
    OUT state_change timestamptz,
    OUT transactions int8,
    OUT binds int8,
    OUT waits int8,
    OUT wait_time float8,
    OUT wait_start timestamptz,
    OUT memory int4,
    OUT dispatcher int4
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'polar_stat_get_session'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION polar_stat_get_session() IS 'statistics: sessions that share backends';

CREATE VIEW polar_stat_session AS
    SELECT * FROM polar_stat_get_session();

CREATE FUNCTION polar_stat_get_dispatcher(
    OUT pid int4,
    OUT start_time timestamptz,
    OUT n_login int4,
    OUT n_bound int4,
    OUT n_parked int4,
    OUT n_waiting int4,
    OUT n_dedicated int4,
    OUT n_pools int4,
    OUT n_backends int4,
    OUT n_idle_backends int4,
    OUT logins int8,
    OUT binds int8,
    OUT parks int8,
    OUT spawns int8,
    OUT timeouts int8,
    OUT transactions int8,
    OUT session_memory int8,
    OUT wait_p50 float8,
    OUT wait_p99 float8,
    OUT wait_histogram int8[],
    OUT n_native int4,
    OUT dispatcher int4,
    OUT last_active timestamptz,
    OUT relay_last_active timestamptz
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'polar_stat_get_dispatcher'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION polar_stat_get_dispatcher() IS 'statistics: dispatchers of sessions that share backends';

CREATE VIEW polar_stat_dispatcher AS
    SELECT * FROM polar_stat_get_dispatcher();

COMMENT ON COLUMN polar_stat_dispatcher.n_native IS 'backends that clients keep for themselves, of the whole server: the same in each row';
COMMENT ON COLUMN polar_stat_dispatcher.last_active IS 'when the dispatcher last did something; when it has nothing to do, about once a second';
COMMENT ON COLUMN polar_stat_dispatcher.relay_last_active IS 'when its TLS relay last answered that it goes on, about once a second; null without one';

CREATE FUNCTION polar_stat_get_worker_pool(
    OUT datname name,
    OUT usename name,
    OUT sessions int4,
    OUT workers int4,
    OUT free int4,
    OUT waiting int4,
    OUT dedicated int4,
    OUT binds int8,
    OUT waits int8,
    OUT wait_time float8,
    OUT transactions int8,
    OUT dispatcher int4
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'polar_stat_get_worker_pool'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION polar_stat_get_worker_pool() IS 'statistics: pools of backends that sessions share, of each dispatcher';

CREATE VIEW polar_stat_worker_pool AS
    SELECT * FROM polar_stat_get_worker_pool();

GRANT SELECT ON polar_stat_session, polar_stat_dispatcher, polar_stat_worker_pool TO PUBLIC;
