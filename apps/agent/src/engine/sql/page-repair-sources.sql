-- The sources of pages as the guard last saw them, and what each has given in the last recovery; one that it has not seen is not healthy.
select source,
       coalesce(healthy, false) as healthy,
       why,
       flush_lsn::text as flush_lsn,
       replay_lsn::text as replay_lsn,
       extract(epoch from checked_at) * 1000 as checked_at,
       coalesce(pages, 0) as pages,
       coalesce(bytes, 0) as bytes
  from polar_page_repair_sources
 order by number
