-- The running checkpoint and how far it is. All null while none runs.
select running as checkpoint_runs,
       case when running then kind end as checkpoint_kind,
       case when running then reason end as checkpoint_reason,
       case when running then phase end as checkpoint_phase,
       case when running then extract(epoch from started_at)::float8 * 1000 end as checkpoint_started_at,
       case when running then buffers_total::float8 end as checkpoint_buffers_total,
       case when running then buffers_processed::float8 end as checkpoint_buffers_processed,
       case when running then buffers_written::float8 end as checkpoint_buffers_written,
       case when running then files_total::float8 end as checkpoint_files_total,
       case when running then files_processed::float8 end as checkpoint_files_processed
  from polar_stat_checkpoint
