-- The points of the flashback log (ms since the epoch), the newest 1000, oldest first.
select number, extract(epoch from "time") * 1000 as at
  from (select number, "time" from polar_flashback_points order by number desc limit 1000) newest
 order by number
