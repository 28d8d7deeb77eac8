-- What the recovery at this start found torn and repaired; no row when there was nothing to look at.
select recovery as kind,
       policy,
       extract(epoch from started_at) * 1000 as started_at,
       extract(epoch from ended_at) * 1000 as ended_at,
       checked,
       torn,
       repaired,
       missing + vm_initialized + fsm_reset as cleared,
       bytes
  from polar_stat_page_repair
 where recovery is not null
