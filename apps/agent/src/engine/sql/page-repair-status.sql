-- What protects this instance against torn pages, and since when (ms since the epoch).
select state,
       extract(epoch from since) * 1000 as since,
       why,
       full_page_writes,
       images_in_force,
       guard
  from polar_page_repair_status
