-- Why sessions are pinned to their workers, the most frequent reasons first.
select left(pinned_by, 200) as reason, count(*) as sessions
  from polar_stat_session
 where mode = 'dedicated'
 group by reason
 order by sessions desc, reason
 limit 20
