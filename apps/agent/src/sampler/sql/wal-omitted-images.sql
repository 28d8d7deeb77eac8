-- Bytes of full-page images that full_page_writes = off saves: version 1.1 of the module monitor and later.
select wal_fpi_omitted_bytes::float8 as wal_fpi_omitted_bytes
  from polar_stat_wal
