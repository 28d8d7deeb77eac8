-- The sources of pages as the guard last saw them.
select source,
       healthy,
       why,
       flush_lsn::text as flush_lsn,
       replay_lsn::text as replay_lsn,
       extract(epoch from checked_at) * 1000 as checked_at
  from polar_page_repair_sources
 order by number
