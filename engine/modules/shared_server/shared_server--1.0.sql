/* engine/modules/shared_server/shared_server--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION shared_server" to load this file. \quit

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
    OUT memory int4
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
    OUT n_native int4
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'polar_stat_get_dispatcher'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION polar_stat_get_dispatcher() IS 'statistics: the dispatcher of sessions that share backends';

CREATE VIEW polar_stat_dispatcher AS
    SELECT * FROM polar_stat_get_dispatcher();

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
    OUT transactions int8
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'polar_stat_get_worker_pool'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION polar_stat_get_worker_pool() IS 'statistics: pools of backends that sessions share';

CREATE VIEW polar_stat_worker_pool AS
    SELECT * FROM polar_stat_get_worker_pool();

GRANT SELECT ON polar_stat_session, polar_stat_dispatcher, polar_stat_worker_pool TO PUBLIC;

CREATE FUNCTION polar_ss_drain()
RETURNS int4
AS 'MODULE_PATHNAME', 'polar_ss_drain'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_ss_drain() IS 'ends all sessions that share backends, each when it is idle';

REVOKE EXECUTE ON FUNCTION polar_ss_drain() FROM PUBLIC;
