-- How far the flashback of a process is.
select phase, wal_bytes_total, wal_bytes_done, blocks_total, blocks_done, rows, partitions_total, partitions_done
  from polar_stat_get_progress_flashback_table()
 where pid = $1
