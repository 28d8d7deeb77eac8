-- $1: oid of a table that is about to be committed: whether it is what was meant, by what it is and not by its name
select c.relnamespace as schema, c.relowner as owner,
       c.relhastriggers or c.relhasrules or c.relrowsecurity
       or exists (select from pg_constraint k where k.conrelid = c.oid)
       or exists (select from pg_attrdef d where d.adrelid = c.oid)
       or exists (select from aclexplode(c.relacl) a where a.grantee <> c.relowner)
       or exists (select from pg_attribute a where a.attrelid = c.oid and a.attacl is not null) as more
  from pg_class c
 where c.oid = $1
