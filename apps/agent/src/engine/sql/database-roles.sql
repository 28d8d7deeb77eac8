-- Database roles with the roles that were granted to them: the one of a name, or all that are not predefined. A role "mayMore"
-- that is a superuser, has REPLICATION or BYPASSRLS, reaches files or programs of the host ($3), or is a member of such a role.
with recursive more (oid) as (
  select r.oid from pg_authid r
   where r.rolsuper or r.rolreplication or r.rolbypassrls or r.rolname = any ($3::text[])
   union
  select m.member from pg_auth_members m join more on more.oid = m.roleid
)
select r.oid, r.rolname::text as name, r.rolcanlogin as login, r.rolcreatedb as "createDb", r.rolcreaterole as "createRole",
       r.rolsuper as superuser, r.rolreplication as replication, r.rolbypassrls as "bypassRls",
       r.rolconnlimit as "connectionLimit",
       case when r.rolvaliduntil = '-infinity' then 0
            when isfinite(r.rolvaliduntil) then extract(epoch from r.rolvaliduntil) * 1000 end as "validUntil",
       r.rolpassword is not null as "hasPassword",
       array(select g.rolname::text from pg_authid g
              where g.oid in (select m.roleid from pg_auth_members m where m.member = r.oid)
              order by g.rolname limit 200) as "memberOf",
       r.oid in (select oid from more) as "mayMore"
  from pg_authid r
 where case when $1::text is null then not starts_with(r.rolname::text, 'pg_') else r.rolname = $1::text end
 order by r.rolname
 limit $2::int
