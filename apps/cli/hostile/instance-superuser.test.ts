import { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect } from 'vitest'
import { until } from '../launcher/private-home'
import { findPostmaster } from '../src/process/postmaster'
import { noteInstance } from './ledger'
import {
  type Answer,
  answerOf,
  attempt,
  type Created,
  call,
  cannotTry,
  controlSql,
  deliberately,
  filesBelow,
  findSockets,
  gotIn,
  home,
  hostileLibrary,
  it,
  must,
  openDirectory,
  residentBytes,
  revive,
  run,
  shellAs,
  shellBySql,
  signIn,
  sql,
  uidOf,
  Vault,
  watcher,
} from './victim'

// Whoever owns an instance is its superuser, and so runs any program as the user of its server.

const vaults: Vault[] = []
const vault = (names: string[] = [], text?: (canary: string) => string) => {
  const made = new Vault(names, text)
  vaults.push(made)
  return made
}
afterAll(() => {
  for (const made of vaults) made.remove()
})

const psql = join(it.enginePrefix, 'bin/psql')
const q = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
const restart = (name: string) => home.run(['instance', 'restart', name, '--mode', 'immediate'])
const createInstance = async (name: string): Promise<Created> => {
  const made = await home.json<Created>('instance', 'create', name)
  noteInstance(it.ledger, made.instanceId)
  return made
}
const noteStandby = async (name: string): Promise<void> => {
  const { instanceId } = await home.json<{ instanceId: string }>('instance', 'show', name)
  noteInstance(it.ledger, instanceId)
}

describe('reaches for what is not its own', () => {
  attempt('1, 23', 'no user of an instance is anybody in the control database', async () => {
    const directories = [...new Set(findSockets(it.socketDirectory).map((path) => join(path, '..')))]
    const roles = ['floe', 'console', 'floe_web', 'floe_controller', 'floe-control', 'postgres', 'root']
    const said = await shellBySql(
      it.alpha,
      `for h in ${directories.map(q).join(' ')} 127.0.0.1; do for u in ${roles.join(' ')}; do
        timeout 5 ${psql} -XAtw -h "$h" -p ${it.controlPort} -U "$u" -d ${it.controlName} -c "select 'IN as '||current_user||' superuser '||usesuper from pg_user where usename=current_user"
      done; done`,
    )
    gotIn(/^IN as /m.test(said), said.match(/^IN as .*$/m)?.[0] ?? '')
    expect(said).toMatch(/error|denied|refused/i)
  })

  attempt('1, 11', 'no secret, key, log, state or file of another user can be read or written', async () => {
    const foreign = [
      ...filesBelow(join(it.homeDirectory, 'secrets')),
      ...filesBelow(join(it.homeDirectory, 'agent')).slice(0, 500),
      ...filesBelow(join(it.homeDirectory, 'log')),
      ...filesBelow(join(it.homeDirectory, 'run')),
      ...filesBelow(join(it.consoleDirectory, 'web')),
      ...filesBelow(join(it.consoleDirectory, 'controller')),
      ...filesBelow(join(it.instancesDirectory, 'control')).slice(0, 500),
      ...filesBelow(it.beta.directory),
      join(it.homeDirectory, 'config.json'),
    ]
    expect(foreign.length).toBeGreaterThan(50)
    const list = openDirectory()
    try {
      const { writeFileSync } = await import('node:fs')
      writeFileSync(join(list.path, 'list'), `${foreign.join('\n')}\n`)
      const said = await shellBySql(
        it.alpha,
        `while read -r f; do [ -w "$f" ] && echo "WRITE $f"; [ -r "$f" ] && echo "READ $f"; done < ${list.path}/list; echo end`,
      )
      expect(said).toMatch(/end\n$/)
      // who is to be believed, which process runs and what is configured is no secret; all else is
      const open = said
        .split('\n')
        .filter((line) => /^(WRITE|READ) /.test(line))
        .filter((line) => !/^READ .*(\/ca\.pem|\/run\/[\w-]+\.(json|lock)|\/config\.json)$/.test(line))
      gotIn(open.length > 0, `${open.length} files, such as ${open.slice(0, 3).join(', ')}`)
      const logs = filesBelow(join(it.homeDirectory, 'log'))
        .map((path) => readFileSync(path, 'latin1'))
        .join('')
      for (const path of filesBelow(join(it.homeDirectory, 'secrets')).filter((f) => !f.endsWith('.pem')))
        gotIn(logs.includes(readFileSync(path, 'latin1').trim()), `a log holds ${path}`)
    } finally {
      list.remove()
    }
  })

  attempt(
    '1',
    'no process of Floe or of another instance can be signalled, looked into or traced',
    async () => {
      const { processes } = await home.status()
      const victims = processes.flatMap(({ name, pid }) => (pid ? [{ name, pid }] : []))
      const beta = Number(
        readFileSync(join(it.beta.directory, 'pgdata/postmaster.pid'), 'utf8').split('\n')[0],
      )
      victims.push({ name: 'beta', pid: beta })
      const said = await shellBySql(
        it.alpha,
        victims
          .map(
            ({ name, pid }) =>
              `kill -0 ${pid} 2>/dev/null && echo "SIGNAL ${name}"; head -c1 /proc/${pid}/environ >/dev/null 2>&1 && echo "ENVIRONMENT ${name}"; head -c1 /proc/${pid}/mem 2>&1 | grep -q "Input/output" && echo "MEMORY ${name}"; ls /proc/${pid}/fd >/dev/null 2>&1 && echo "FILES ${name}"`,
          )
          .join('\n'),
      )
      gotIn(said.trim() !== '', said.trim().split('\n').join(', '))
    },
  )

  attempt('1', 'no shared memory of another user can be attached', async () => {
    const own = uidOf(it.alpha)
    const segments = readdirSync('/dev/shm').filter((name) => statSync(join('/dev/shm', name)).uid !== own)
    const said = await shellBySql(
      it.alpha,
      `for s in ${segments.map(q).join(' ')} ''; do [ -n "$s" ] && [ -r "/dev/shm/$s" ] && echo "READ $s"; done; true`,
    )
    // other programs of this machine may share theirs with everybody; PostgreSQL's are meant
    const postgres = said.split('\n').filter((line) => /PostgreSQL/.test(line))
    gotIn(postgres.length > 0, postgres.join(', '))
    const beta = Number(readFileSync(join(it.beta.directory, 'pgdata/postmaster.pid'), 'utf8').split('\n')[0])
    const systemV = readFileSync('/proc/sysvipc/shm', 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .find((columns) => columns[4] === `${beta}`)
    const id = systemV?.[1] ?? ''
    expect(id).not.toBe('')
    const attached = await shellBySql(
      it.alpha,
      `python3 -c "
import ctypes,sys
c=ctypes.CDLL(None,use_errno=True); c.shmat.restype=ctypes.c_void_p
r=c.shmat(${id},None,0); print('ATTACHED' if r not in (None,2**64-1) else 'refused')"`,
    )
    gotIn(attached.includes('ATTACHED'), 'the shared memory of beta')
  })

  attempt('1', 'no socket of another server can be removed or put in its place', async () => {
    const before = findSockets(it.socketDirectory).map((path) => `${path} ${statSync(path).ino}`)
    const directories = [
      it.socketDirectory,
      ...new Set(findSockets(it.socketDirectory).map((p) => join(p, '..'))),
    ]
    const own = uidOf(it.alpha)
    const foreign = directories.filter((d) => statSync(d).uid !== own || d === it.socketDirectory)
    const said = await shellBySql(
      it.alpha,
      foreign
        .map(
          (d) =>
            `touch ${q(d)}/planted 2>/dev/null && echo ${q(`WROTE ${d}`)} && rm -f ${q(d)}/planted; for s in ${q(d)}/*.sock ${q(d)}/.s.PGSQL.${it.controlPort} ${q(d)}/.s.PGSQL.${it.beta.port}; do [ -e "$s" ] && mv "$s" "$s.away" 2>/dev/null && mv "$s.away" "$s" && echo "MOVED $s"; done`,
        )
        .join('\n'),
    )
    gotIn(said.trim() !== '', said.trim().split('\n').join(', '))
    expect(findSockets(it.socketDirectory).map((path) => `${path} ${statSync(path).ino}`)).toEqual(before)
  })

  attempt('neighbour of 1', 'no program gains rights by a set-user-id file of Floe', async () => {
    const roots = [it.instancesDirectory, it.homeDirectory, it.enginePrefix]
    const { out } = await run('find', [...roots, '-xdev', '-perm', '/6000', '-type', 'f'])
    gotIn(out.trim() !== '', out.trim())
  })
})

describe('plants names of roles', () => {
  const dba = { name: 'dba', password: 'of-the-dba' }
  let made: { status: number; stderr: string }
  const plant = [
    '"floe_repair_ all trust\nhost all all all trust #"',
    '"floe_standby_ all trust\nhost all all all trust #"',
  ]
  const squat = ['page_repair', 'floe_standby_alpha_2', 'floe_repair_alpha_2', 'floe_repair_alpha']

  attempt('2', 'a role whose name is a line of pg_hba.conf lets nobody in', async () => {
    await must(
      sql(
        it.alpha,
        `create role dba login createrole password '${dba.password}'; grant create on schema public to dba`,
      ),
    )
    for (const name of [...plant, ...squat]) await must(sql(it.alpha, `create role ${name} login`, dba))
    made = await home.run(['standby', 'create', 'alpha', 'alpha-2'])
    if (made.status !== 0) {
      // squatted names are refused with the reason; the odd ones are tried by themselves
      for (const name of squat) await sql(it.alpha, `drop role ${name}`)
      const second = await home.run(['standby', 'create', 'alpha', 'alpha-2'])
      expect(second.status, second.stderr).toBe(0)
    }
    await noteStandby('alpha-2')
    const url = new URL(it.alpha.connectionString)
    url.password = ''
    const anybody = await run(psql, ['-XAtqw', '-c', `select 'IN as '||current_user`, url.toString()])
    gotIn(anybody.status === 0, anybody.out.trim())
    const trusted = await must(
      sql(
        it.alpha,
        `select string_agg(format('%s %s %s', type, user_name, auth_method), '; ') from pg_hba_file_rules
          where auth_method = 'trust' or (error is not null)`,
      ),
    )
    gotIn(trusted !== '', trusted)
  })

  attempt('8', 'a role that was there before is never given a right of Floe’s', async () => {
    const rights = (whose: string) =>
      must(
        sql(
          it.alpha,
          `select string_agg(format('%s%s%s', r.rolname, case when r.rolreplication then ' replicates' end,
                    case when has_function_privilege(r.oid, f.oid, 'execute') then ' calls ' || f.proname end), '; ')
             from pg_roles r, pg_proc f
            where f.proname in ('polar_page_repair_read', 'pg_read_binary_file') and not r.rolsuper and ${whose}
              and (r.rolreplication or has_function_privilege(r.oid, f.oid, 'execute'))`,
        ),
      )
    /** What dba reads as each of the squatted roles that are still there; they are dba’s own, so it may become them. */
    const readAs = async (what: string) => {
      const there = squat.filter((name) => left.includes(name))
      return sql(
        it.alpha,
        there.map((name) => `grant ${name} to dba; set role ${name}; select ${what}; reset role;`).join('\n'),
        dba,
      )
    }
    const left = (await must(sql(it.alpha, 'select rolname from pg_roles'))).split('\n')
    // where it was refused, it says which role and a way out
    if (made.status !== 0) expect(made.stderr).toMatch(/role/)
    else expect(left).toEqual(expect.arrayContaining(squat))
    // Floe's own roles have these rights: the standby that was made is there, and the question finds them
    const floes = await rights(`r.rolname ~ '^floe_(standby|repair)_.*_[0-9a-f]{16}$'`)
    expect(floes).toContain('replicates')
    expect(floes).toContain('calls polar_page_repair_read')
    const dbas = await rights(`pg_has_role('dba', r.oid, 'MEMBER')`)
    gotIn(dbas !== '', dbas)
    // dba does become the roles; the file is there, and is read by a role that may
    const became = await readAs('current_user')
    expect(became.out.trim().split('\n'), became.err).toEqual(squat.filter((name) => left.includes(name)))
    const file = `length(pg_read_binary_file('floe_server.pem')) > 0`
    const stolen = await readAs(file)
    gotIn(stolen.status === 0 || stolen.out.includes('t'), 'dba read floe_server.pem')
    expect(stolen.err).toContain('permission denied for function pg_read_binary_file')
    const right = 'execute on function pg_read_binary_file(text)'
    await must(sql(it.alpha, `grant ${right} to dba`))
    try {
      expect(await must(sql(it.alpha, `select ${file}`, dba))).toBe('t')
    } finally {
      await must(sql(it.alpha, `revoke ${right} from dba`))
    }
  })

  attempt(
    'neighbour of 8',
    'the passwords of Floe’s roles cannot be changed by one with CREATEROLE',
    async () => {
      const names = (
        await must(
          sql(it.alpha, `select rolname from pg_roles where rolname ~ 'floe|page_repair' and rolcanlogin`),
        )
      ).split('\n')
      const owned = names.filter(
        (name) => ![...squat].includes(name) && !name.includes('\n') && !name.includes('trust'),
      )
      expect(owned.length).toBeGreaterThan(0)
      for (const name of owned) {
        const { status } = await sql(
          it.alpha,
          `alter role "${name.replaceAll('"', '""')}" password 'mine'`,
          dba,
        )
        gotIn(status === 0, `password of ${name} changed`)
      }
      const member = await sql(it.alpha, 'alter role dba superuser', dba)
      gotIn(member.status === 0, 'dba made itself superuser')
    },
  )
})

describe('plants links, pipes and huge files in its own tree', () => {
  attempt(
    '5, 3',
    'root does not write through a link in the place of a log or of its directory',
    async () => {
      const safe = vault(['start.log', 'floe.json', 'postgresql.json'])
      const log = join(it.alpha.directory, 'log')
      const uid = uidOf(it.alpha)
      // what root itself writes at each start lies in a directory of root's own
      const startLog = join(it.alpha.directory, 'start.log')
      const written = () => statSync(startLog).ino
      const before = written()
      expect((await restart('alpha')).status).toBe(0)
      expect(written()).not.toBe(before)
      const planted = await shellAs(uid, `rm -f ${q(startLog)}; ln -s ${q(safe.path())} ${q(startLog)}`)
      gotIn(planted.status === 0, 'it may put a link in the place of start.log')
      expect(planted.err).toContain('Permission denied')
      // in the log's own directory it may: a link for each name
      await must(
        shellAs(
          uid,
          `cd ${q(log)} && for f in * start.log; do rm -f "$f"; ln -s ${q(safe.path())} "$f"; done`,
        ),
      )
      expect(readdirSync(log).every((name) => readlinkSync(join(log, name)) === safe.path())).toBe(true)
      const again = await restart('alpha')
      gotIn(safe.changed() !== null, safe.changed() ?? '')
      // a start in the same second as the last one comes upon its link, as the user that planted it
      if (again.status !== 0) expect(again.stderr).toMatch(/could not open log file .* Permission denied/)
      await must(shellAs(uid, `find ${q(log)} -type l -delete`))
      await revive('alpha')
      // now the whole directory leads elsewhere; its parent is root's, so this may be refused
      const moved = await shellAs(uid, `mv ${q(log)} ${q(log)}.away && ln -s ${q(safe.directory)} ${q(log)}`)
      if (moved.status === 0) expect(readlinkSync(log)).toBe(safe.directory)
      else {
        expect(moved.err).toMatch(/Permission denied|Operation not permitted/)
        expect(statSync(it.alpha.directory).uid).toBe(0)
      }
      await restart('alpha')
      gotIn(safe.changed() !== null, safe.changed() ?? '')
      await shellAs(uid, `[ -L ${q(log)} ] && rm ${q(log)} && mv ${q(log)}.away ${q(log)}`)
      await revive('alpha')
    },
  )

  attempt('3', 'root writes no setting through a link in the place of its file', async () => {
    const names = [
      'floe.conf',
      'floe.cluster.conf',
      'floe_hba.conf',
      'pg_hba.conf',
      'floe.tls.conf',
      'postgresql.auto.conf',
    ]
    const safe = vault(names)
    const data = join(it.alpha.directory, 'pgdata')
    // as the user itself: without its settings of TLS the server lets no SQL in from here
    const own = uidOf(it.alpha)
    for (const name of names) {
      const planted = await shellAs(
        own,
        `cd ${q(data)} && cp ${name} /dev/shm/keep-${name} && ln -sf ${q(safe.path(name))} ${name}`,
      )
      expect(planted.status, planted.err).toBe(0)
      await home.run([
        'setting',
        'set',
        'alpha',
        `polar_bulk_extend_size=${names.indexOf(name) % 2 ? '1MB' : '2MB'}`,
      ])
      gotIn(safe.changed() !== null, safe.changed() ?? '')
      await shellAs(
        own,
        `cd ${q(data)} && { [ -L ${name} ] && rm -f ${name} && cp /dev/shm/keep-${name} ${name}; rm -f /dev/shm/keep-${name}; kill -HUP $(head -1 postmaster.pid); }`,
      )
    }
    await until(
      'alpha takes its settings again',
      async () => (await sql(it.alpha, 'select pg_reload_conf()')).status === 0,
      20_000,
    )
  })

  attempt('neighbour of 3', 'what root reads of a log is never shown through a link', async () => {
    // what a crash is explained by: the last words of the engine, in both forms of its log
    const lastWords = (canary: string) =>
      `2099-01-01 00:00:00 UTC [1] FATAL:  ${canary}\n${JSON.stringify({
        timestamp: '2099-01-01 00:00:00.000 UTC',
        backend_type: 'postmaster',
        error_severity: 'FATAL',
        message: canary,
      })}\n`
    const safe = vault([], lastWords)
    const log = join(it.alpha.directory, 'log')
    const newest = join(log, 'engine-9999-12-31T00-00-00.json')
    const uid = uidOf(it.alpha)
    const incidents = () =>
      controlSql(
        `select coalesce(string_agg(t::text, ' '), '') from incident t
          where key like 'instance-crashed%' and "instanceId" = '${it.alpha.instanceId}'`,
      )
    /** Ends the server as a crash does, and waits until the console has told of it. */
    const crash = async () => {
      const before = await incidents()
      const server = findPostmaster(join(it.alpha.directory, 'pgdata'))
      const killed = await shellAs(uid, `kill -9 ${server?.pid}`)
      expect(killed.status, killed.err).toBe(0)
      await until('the crash is told', async () => (await incidents()) !== before, 30_000)
      await revive('alpha')
    }
    // the file's own words are told: the agent does read the newest log, and the console shows it
    const own = 'own-words-of-the-engine'
    await must(shellAs(uid, `cat > ${q(newest)}`, { input: lastWords(own) }))
    await crash()
    expect(await incidents()).toContain(own)

    await must(
      shellAs(
        uid,
        `cd ${q(log)} && rm -f ${q(newest)} && for f in *; do mv "$f" "$f.away"; ln -s ${q(safe.path())} "$f"; done; ln -s ${q(safe.path())} ${q(newest)}`,
      ),
    )
    for (const name of readdirSync(log).filter((n) => !n.endsWith('.away')))
      expect(readFileSync(realpathSync(join(log, name)), 'utf8')).toContain(safe.canary)
    await crash()
    const token = { token: it.people.owner.token }
    for (const answer of [
      (await home.run(['instance', 'show', 'alpha', '--json'])).stdout,
      (await home.run(['incident', 'list', '--json'])).stdout,
      (await call(token, 'query', 'operation.list', {})).text,
      (await call(token, 'query', 'incident.list', {})).text,
      await controlSql(`select string_agg(t::text, ' ') from incident t`),
    ])
      gotIn(answer.includes(safe.canary), 'the console shows a line of a file that only root may read')
    gotIn(safe.changed() !== null, safe.changed() ?? '')
    await shellAs(
      uid,
      `cd ${q(log)} && for f in *; do [ -L "$f" ] && rm "$f"; done; for f in *.away; do mv "$f" "\${f%.away}"; done`,
    )
    await revive('alpha')
  })

  attempt('15', 'a pipe in the place of a file holds up neither the command line nor the agent', async () => {
    const data = join(it.alpha.directory, 'pgdata')
    const uid = uidOf(it.alpha)
    const files = ['postmaster.pid', 'PG_VERSION', 'floe.conf', 'global/pg_control']
    await shellAs(uid, `cd ${q(data)} && for f in ${files.join(' ')}; do mv $f $f.away && mkfifo $f; done`)
    try {
      for (const args of [
        ['status'],
        ['instance', 'list'],
        ['instance', 'show', 'alpha'],
        ['setting', 'list', 'alpha'],
      ]) {
        const ran = await Promise.race([
          home.run([...args, '--json']),
          new Promise<null>((resolve) => setTimeout(() => resolve(null), 25_000)),
        ])
        gotIn(ran === null, `./floe ${args.join(' ')} hangs`)
      }
      // the agent goes on measuring what is not planted
      const seen = async () =>
        (await home.run(['telemetry', 'tail', 'beta', '--seconds', '2', '--json'])).stdout
          .split('\n')
          .filter(Boolean).length
      gotIn((await seen()) < 1, 'the agent measures no more')
    } finally {
      await shellAs(
        uid,
        `cd ${q(data)} && for f in ${files.join(' ')}; do [ -p $f ] && rm -f $f && mv $f.away $f; done`,
      )
    }
    await revive('alpha')
  })

  attempt('neighbour of 15', 'files of 100 GB fill no memory', async () => {
    const data = join(it.alpha.directory, 'pgdata')
    const uid = uidOf(it.alpha)
    const agent = await home.pidOf('agent')
    const before = residentBytes(agent)
    const files = ['postmaster.pid', 'floe.conf', 'current_logfiles', 'floe_hba.conf']
    await shellAs(
      uid,
      `cd ${q(data)} && for f in ${files.join(' ')}; do mv $f $f.away; truncate -s 100G $f; done`,
    )
    try {
      const status = await home.run(['status'])
      gotIn(status.seconds > 20, `./floe status took ${status.seconds} s`)
      await home.run(['setting', 'list', 'alpha', '--json'])
      const grown = residentBytes(agent) - before
      gotIn(grown > 200e6, `the agent grew by ${Math.round(grown / 1e6)} MB`)
      expect(await home.pidOf('agent')).toBe(agent)
    } finally {
      await shellAs(
        uid,
        `cd ${q(data)} && for f in ${files.join(' ')}; do rm -f $f; [ -e $f.away ] && mv $f.away $f; done; true`,
      )
    }
    await revive('alpha')
  })

  attempt('neighbour of 3', 'a process that postmaster.pid names falsely is not ended by root', async () => {
    const bait = await watcher(0, 'print("ready"); import time; time.sleep(600)')
    const data = join(it.alpha.directory, 'pgdata')
    const uid = uidOf(it.alpha)
    try {
      await shellAs(
        uid,
        `cd ${q(data)} && cp postmaster.pid keep.pid && { echo ${bait.child.pid}; tail -n +2 keep.pid; } > lie.pid && mv lie.pid postmaster.pid`,
      )
      await home.run(['instance', 'stop', 'alpha', '--mode', 'immediate'])
      gotIn(bait.child.exitCode !== null || bait.child.signalCode !== null, 'a process of root’s was ended')
      await shellAs(
        uid,
        `cd ${q(data)} && { echo 1; tail -n +2 keep.pid; } > lie.pid && mv lie.pid postmaster.pid`,
      )
      await home.run(['instance', 'stop', 'alpha', '--mode', 'immediate'])
    } finally {
      await bait.end()
      await shellAs(
        uid,
        `cd ${q(data)} && p=$(head -1 keep.pid) && { kill -0 $p 2>/dev/null && mv keep.pid postmaster.pid || rm -f postmaster.pid keep.pid; }`,
      )
    }
    await revive('alpha')
  })
})

describe('races against root', () => {
  /** Swaps directories below a root for links to the vault, as fast as it can. */
  const swapper = `
import os, sys
root, target = sys.argv[1], sys.argv[2]
print("ready", flush=True)
while True:
    for d in sys.argv[3:]:
        p = os.path.join(root, d)
        try:
            os.rename(p, p + "~"); os.symlink(target, p)
            os.unlink(p); os.rename(p + "~", p)
        except OSError:
            try: os.rename(p + "~", p)
            except OSError: pass`

  attempt(
    '3',
    'a directory swapped for a link while an instance is deleted: root removes nothing elsewhere',
    async () => {
      const names = Array.from({ length: 200 }, (_, i) => `f${i}`)
      for (let round = 0; round < 2; round++) {
        const safe = vault(names)
        const victim = await createInstance(`gamma-${round}`)
        const data = join(victim.directory, 'pgdata')
        const bait = Array.from({ length: 8 }, (_, i) => `bait${i}`)
        await shellBySql(
          victim,
          `cd ${q(data)} && for d in ${bait.join(' ')}; do mkdir $d && (cd $d && touch ${names.join(' ')}); done`,
        )
        const racer = await watcher(uidOf(victim), swapper, data, safe.directory, ...bait)
        const { status, stderr } = await home.run([
          'instance',
          'delete',
          `gamma-${round}`,
          '--confirm',
          `gamma-${round}`,
        ])
        await racer.end()
        gotIn(safe.changed() !== null, `after the deletion (status ${status}): ${safe.changed()}`)
        if (status !== 0) expect(stderr).toMatch(/could not|is not empty|ENOTEMPTY|retry/i)
      }
    },
  )

  if (statSync(it.instancesDirectory).dev === statSync('/').dev)
    cannotTry('4', 'a copy that shares blocks', 'no file system here shares blocks')
  else
    attempt(
      '4',
      'links in source and target of a copy: nothing is read or planted elsewhere as root',
      async () => {
        const safe = vault()
        const uid = uidOf(it.alpha)
        const data = join(it.alpha.directory, 'pgdata')
        const race = join(data, 'race')
        await must(
          shellAs(uid, `cd ${q(data)} && mkdir -p race && for i in $(seq 50); do echo own > race/g$i; done`),
        )
        /** Makes a standby under attack or not, and takes it away: what the copy holds of the files, and how it was made. */
        const copy = async () => {
          const { status, stderr } = await home.run(['standby', 'create', 'alpha', 'alpha-3'])
          gotIn(/pg_hba/.test(stderr), `a name of a role keeps copies from being made: ${stderr.trim()}`)
          gotIn(safe.changed() !== null, safe.changed() ?? '')
          const log = await controlSql(
            `select coalesce(string_agg(l.text, ' ' order by l.id), '') from operation_log l
              where "operationId" = (select id from operation where kind = 'create-standby' order by "createdAt" desc limit 1)`,
          )
          if (status !== 0) return { log, files: [], id: '' }
          await noteStandby('alpha-3')
          const { directory, instanceId: id } = await home.json<Created>('instance', 'show', 'alpha-3')
          const files = filesBelow(join(directory, 'pgdata/race')).map((path) => readFileSync(path, 'utf8'))
          gotIn(
            files.some((text) => text.includes(safe.canary)),
            'the copy holds a file that only root may read',
          )
          const removed = await home.run(['standby', 'remove', 'alpha-3', '--confirm', 'alpha-3'])
          expect(removed.status, removed.stderr).toBe(0)
          return { log, files, id }
        }
        // nobody races: the files are copied, and by what is raced against
        const calm = await copy()
        expect(calm.log).toContain('copying by reflink')
        expect(calm.log).not.toContain('not by reflink')
        expect(calm.files).toEqual(Array.from({ length: 50 }, () => 'own\n'))

        // the target: whatever appears beside its own directory; first one of its own, which it does get at
        const { path: bait, remove: removeBait } = openDirectory()
        await must(shellAs(uid, `mkdir -p ${q(join(bait, 'pgdata/pg_wal/archive_status'))}`))
        const target = () =>
          watcher(
            uid,
            `
import os, re, sys
top, vault, own, bait = sys.argv[1:5]
def swap(instance, names=()):
    done = 0
    for d in {"pgdata", *names}:
        p = os.path.join(instance, d, "pg_wal", "archive_status")
        try:
            os.rename(p, p + "~"); os.symlink(vault, p); done += 1
        except OSError: pass
    return done
print("ready swapped", swap(bait), flush=True)
# nobody may list where instances lie, but everybody reads command lines
path = re.compile(re.escape(top) + "/([0-9a-f-]{36})(?:/(pgdata[^/\\0 ]*))?")
known = {}
while True:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try: line = open("/proc/" + pid + "/cmdline", errors="replace").read()
        except OSError: continue
        for i, d in path.findall(line):
            if i == own: continue
            if i not in known: print("saw", i, flush=True)
            if d: known.setdefault(i, set()).add(d)
            else: known.setdefault(i, set())
    for i, names in known.items():
        if swap(os.path.join(top, i), names): print("GOT", i, flush=True)`,
            it.instancesDirectory,
            join(safe.directory, 'archive_status'),
            it.alpha.instanceId,
            bait,
          )
        // the source: files that become links to what only root may read, once they are listed or every other moment
        const source = (begin: 'listed' | 'at once') =>
          watcher(
            uid,
            `
import ctypes, os, sys
race, canary, begin = sys.argv[1:4]
files = [os.path.join(race, "g%d" % i) for i in range(1, 51)]
if begin == "listed":
    c = ctypes.CDLL(None)
    fd = c.inotify_init()
    # a directory that was read and is closed: once it is counted, and once listed for the copy
    c.inotify_add_watch(fd, race.encode(), 0x01000010)
    print("ready", flush=True)
    for _ in range(2): os.read(fd, 4096)
    print("listed", flush=True)
    for p in files:
        os.rename(p, p + "~"); os.symlink(canary, p)
    print("swapped", flush=True)
    while True: os.read(fd, 4096)
print("ready", flush=True)
swaps = 0
while True:
    for p in files:
        try:
            os.rename(p, p + "~"); os.symlink(canary, p); os.rename(p + "~", p)
            swaps += 1
        except OSError: pass
    if swaps % 1000 == 0: print("swapped", flush=True)`,
            race,
            safe.path(),
            begin,
          )
        const putBack = () =>
          must(shellAs(uid, `cd ${q(race)} && for i in $(seq 50); do rm -f g$i g$i~; echo own > g$i; done`))
        for (const begin of ['listed', 'at once'] as const) {
          await must(
            shellAs(uid, `cd ${q(bait)}/pgdata/pg_wal && rm -rf archive_status* && mkdir archive_status`),
          )
          const racers = [await target(), await source(begin)] as const
          const { log, id, files } = await copy().finally(async () => {
            for (const racer of racers) await racer.end()
          })
          await putBack()
          const [ofTarget, ofSource] = racers.map((racer) => racer.said())
          expect(ofTarget).toContain('ready swapped 1')
          // it came to know of the copy's directory while that was made
          expect(id, log).not.toBe('')
          expect(ofTarget).toContain(`saw ${id}`)
          gotIn(/^GOT /m.test(ofTarget ?? ''), `${ofTarget}`)
          expect(ofSource, begin).toContain('swapped')
          // what was a file when it was listed is a link by the time it is copied, and is not followed: it is left out,
          // or everything is copied by the server itself
          if (begin === 'listed')
            expect(/not by reflink: .*race\/g/.test(log) || files.length < 50, log).toBe(true)
        }
        await must(shellAs(uid, `rm -rf ${q(race)}`))
        removeBait()
      },
    )
})

describe('has limits', () => {
  type Told = { observed: { driver: string | null } | null }

  attempt(
    'neighbour of 1',
    'no process of an instance leaves its cgroups, or changes what they allow',
    async () => {
      const told = await home.json<Told>('instance', 'limit', 'alpha', '--cpu', '1.5')
      const evidence = openDirectory()
      try {
        const after = join(evidence.path, 'after')
        const said = await shellBySql(
          it.alpha,
          `cat /proc/self/cgroup
        for f in $(find /sys/fs/cgroup -type f 2>/dev/null); do [ -w "$f" ] && echo "WRITE $f"; done
        for d in $(find /sys/fs/cgroup -name cgroup.procs 2>/dev/null); do (echo $$ >"$d") 2>/dev/null && echo "MOVED to $d"; done
        for d in $(find /sys/fs/cgroup -maxdepth 3 -type d 2>/dev/null); do mkdir "$d/escape" 2>/dev/null && echo "MADE $d/escape"; done
        cat /proc/self/cgroup
        (setsid sh -c 'cat /proc/self/cgroup >${after}.part; mv ${after}.part ${after}' >/dev/null 2>&1 &)`,
        )
        gotIn(/^(WRITE|MOVED|MADE) /m.test(said), said.match(/^(WRITE|MOVED|MADE) .*$/m)?.[0] ?? '')
        // a host without cgroups has no limits to get out of, and says so
        if (told.observed?.driver == null) return
        await until('it has left its session', async () => existsSync(after), 10_000)
        for (const groups of [said, readFileSync(after, 'utf8')])
          gotIn(!groups.includes(it.alpha.instanceId), `it is in ${groups.trim().split('\n')[0]}`)
        const { limits } = await home.json<{ limits: { cpu: number | null } }>('instance', 'limit', 'alpha')
        expect(limits.cpu).toBe(1.5)
      } finally {
        evidence.remove()
        await home.run(['instance', 'limit', 'alpha', '--cpu', 'none'])
      }
    },
  )

  attempt(
    'neighbour of 3',
    'what it puts in the place of pg_wal costs no limit of its data, and nobody else',
    async () => {
      const told = await home.json<Told>('instance', 'limit', 'alpha', '--data-write-iops', '5000')
      if (told.observed?.driver == null) return
      const data = join(it.alpha.directory, 'pgdata')
      const uid = uidOf(it.alpha)
      type Seen = {
        inForce: { dataWriteIops: number | null } | null
        gaps: { limit: string; why: string }[]
      } | null
      const observed = async () =>
        (await home.json<{ observed: Seen }>('instance', 'limit', 'alpha')).observed
      const isHeld = async () => (await observed())?.inForce?.dataWriteIops === 5_000
      const cannot = async () =>
        (await observed())?.gaps.some(
          (gap) => gap.limit === 'dataWriteIops' && /not on a block/.test(gap.why),
        ) ?? false
      await until(
        'the limit is in force, or it is said why not',
        async () => (await isHeld()) || (await cannot()),
        10_000,
      )
      if (await cannot()) return
      try {
        for (const plant of [
          'ln -s /proc/self/mem',
          'ln -s /dev/zero',
          'ln -s ../../../../..',
          'mkfifo',
          'touch',
        ]) {
          const [command, ...words] = plant.split(' ')
          await must(
            shellAs(uid, `cd ${q(data)} && mv pg_wal pg_wal.away && ${command} ${words.join(' ')} pg_wal`),
          )
          const end = Date.now() + 2_500
          await until('two looks were taken', async () => Date.now() > end, 5_000)
          const seen = await observed()
          await must(shellAs(uid, `cd ${q(data)} && rm -f pg_wal && mv pg_wal.away pg_wal`))
          // an engine that wanted to write WAL just then has ended
          const limit = seen?.inForce?.dataWriteIops
          gotIn(seen?.inForce != null && limit !== 5_000, `with ${plant} the limit is ${limit}`)
          await revive('alpha')
          await until('the limit is in force', isHeld, 20_000)
        }
      } finally {
        await shellAs(uid, `cd ${q(data)} && [ -d pg_wal.away ] && rm -f pg_wal && mv pg_wal.away pg_wal`)
        await home.run(['instance', 'limit', 'alpha', '--data-write-iops', 'none'])
        await revive('alpha')
      }
    },
  )
})

describe('has its tables flashed back', () => {
  const tenant = { name: 'tenant', password: 'of-the-tenant' }
  /** Stands in rows, and nowhere else. */
  const canary = 'canary-of-a-row'
  let mirror: Created
  const flashback = (...words: string[]) => home.run(['flashback', ...words])
  const ofMirror = (verb: string, ...words: string[]) => flashback(verb, 'mirror', ...words)

  // what comes later knows the instances that there are
  afterAll(async () => {
    if (mirror)
      expect((await home.run(['instance', 'delete', 'mirror', '--confirm', 'mirror'])).status).toBe(0)
  })

  /** The first time an instance with a window, a tenant who owns a table whose every part is a trap, and its moment. */
  async function prepare(): Promise<void> {
    if (mirror) return
    const made = await createInstance('mirror')
    const on = ['polar_enable_flashback_log=on', 'polar_enable_fast_recovery_area=on']
    expect((await home.run(['setting', 'set', 'mirror', ...on])).status).toBe(0)
    expect((await restart('mirror')).status).toBe(0)
    await must(
      sql(
        made,
        `create role tenant login password '${tenant.password}'; grant create on schema public to tenant; checkpoint`,
      ),
    )
    await until(
      'it has a window',
      async () => (await must(sql(made, 'select state from polar_stat_flashback_log'))) === 'on',
      30_000,
    )
    await must(
      sql(
        made,
        `create function public.spring() returns boolean language plpgsql as $$ begin
           if (select rolsuper from pg_catalog.pg_roles where rolname = current_user)
             and not exists (select from pg_catalog.pg_roles where rolname = 'taken') then
             execute 'create role taken superuser';
           end if;
           return true;
         end $$;
         create function public.sprung(text) returns text language sql immutable as $$ select $1 where public.spring() $$;
         create function public.trip() returns trigger language plpgsql as $$ begin
           perform public.spring(); raise warning 'row %', new; return new; end $$;
         create domain public.odd as text check (public.spring());
         create table public.bait (id int primary key, v public.odd, made text default public.sprung('x'));
         create index on public.bait (public.sprung(made));
         create trigger trip before insert or update or delete on public.bait for each row execute function public.trip();
         create table public."o\u001b[2Jdd<script>" (id int primary key);
         insert into public.bait select n, '=1+1 \u001b[2J ${canary}' || chr(27) || n from generate_series(1, 50) n;`,
        tenant,
      ),
    )
    mirror = made
  }
  /** Everywhere that a row must not be. */
  async function whereIsCanary(): Promise<string[]> {
    const names = (
      await controlSql(
        `select format('%I.%I', schemaname, tablename) from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`,
      )
    ).split('\n')
    const found = await controlSql(
      names
        .map((n) => `select '${n}' from ${n} t where strpos(t::text, '${canary}') > 0`)
        .join(' union all '),
    )
    const logs = [...filesBelow(join(it.homeDirectory, 'log')), ...filesBelow(join(mirror.directory, 'log'))]
    return [
      ...found.split('\n').filter(Boolean),
      ...logs.filter((path) => readFileSync(path, 'latin1').includes(canary)),
    ]
  }
  const sprung = () => must(sql(mirror, `select count(*) from pg_roles where rolname = 'taken'`))

  attempt(
    'neighbour of 8',
    'an owner’s traps are never sprung with the agent’s rights, and rows are written down nowhere',
    async () => {
      await prepare()
      // whoever writes rows by themselves has them in the log of the server: here nobody has
      await must(
        sql(
          mirror,
          `alter system set log_statement = 'none'; alter system set log_min_messages = 'warning'; select pg_reload_conf()`,
        ),
      )
      const logged = await whereIsCanary()
      expect(logged.length).toBeGreaterThan(0)
      expect(logged.every((path) => path.startsWith(mirror.directory))).toBe(true)
      await must(
        shellAs(uidOf(mirror), `cd ${q(join(mirror.directory, 'log'))} && for f in *; do : > "$f"; done`),
      )
      expect(await whereIsCanary()).toEqual([])
      const at = await must(
        sql(mirror, `select to_char(clock_timestamp(), 'YYYY-MM-DD"T"HH24:MI:SS.USOF'), pg_sleep(0.1)`),
      ).then((text) => text.split('|')[0] as string)
      await must(
        sql(
          mirror,
          'alter table bait disable trigger all; delete from bait where id <= 20; alter table bait enable trigger all',
          tenant,
        ),
      )

      type Ordered = { operationId: string; result: { resultName: string } }
      const there = ['--database', 'postgres']
      const said: string[] = []
      const see = async (...words: string[]) => {
        const ran = await ofMirror(words[0] as string, ...words.slice(1), ...there)
        said.push(ran.stdout, ran.stderr)
        return ran
      }
      expect((await see('tables')).stdout).toContain('bait')
      const preview = JSON.parse((await see('preview', 'bait', '--at', at, '--json')).stdout) as Ordered
      const rows = await flashback('rows', preview.operationId)
      // the person who may see them does, but for what would steer a terminal
      expect(rows.stdout).toContain(canary)
      said.push(rows.stdout)
      const made = JSON.parse((await see('to', 'bait', '--at', at, '--json')).stdout) as Ordered
      const { resultName } = made.result
      expect((await see('compare', resultName)).status).toBe(0)
      expect((await see('merge', resultName, '--insert-missing', '--apply')).status).toBe(0)
      expect((await see('swap', resultName, '--confirm', 'mirror')).status).toBe(0)
      const csv = await ofMirror('export', resultName, ...there)
      expect(csv.stdout.split('\n').length).toBeGreaterThan(50)
      expect((await see('drop', resultName)).status).toBe(0)

      gotIn((await sprung()) !== '0', 'a trap was sprung as a superuser')
      gotIn(
        said.some((text) => text.includes('\u001b')),
        'the command line prints what steers a terminal',
      )
      const leaked = await whereIsCanary()
      gotIn(leaked.length > 0, `a row is in ${leaked.join(', ')}`)
      for (const action of ['flashback.read_rows', 'flashback.download'])
        expect(
          Number(await controlSql(`select count(*) from audit_event where action = '${action}'`)),
          action,
        ).toBeGreaterThan(0)
      // the trap is good: a superuser who touches the table is caught
      await must(sql(mirror, `insert into bait values (1000, 'x')`))
      expect(await sprung()).toBe('1')
      await must(sql(mirror, 'drop role taken'))
    },
  )

  attempt(
    'neighbour of 8',
    'a table that only says that it is a result is merged into nobody’s table',
    async () => {
      await prepare()
      await must(
        sql(
          mirror,
          'create table public.of_others (id int primary key); comment on table public.of_others is null',
        ),
      )
      const number = await must(sql(mirror, `select 'public.of_others'::regclass::oid`))
      await must(
        sql(
          mirror,
          `create table public.forged (id int primary key); insert into public.forged values (1);
           comment on table public.forged is '"public"."of_others" as of 2026-01-01 00:00:00+00 (table ${number}, columns 1, position 0/1, point 1)'`,
          tenant,
        ),
      )
      const listed = await ofMirror('results', '--database', 'postgres')
      gotIn(listed.stdout.includes('forged'), 'it is listed')
      const merged = await ofMirror(
        'merge',
        'public.forged',
        '--insert-missing',
        '--apply',
        '--database',
        'postgres',
      )
      gotIn(merged.status === 0, 'it was merged')
      gotIn((await must(sql(mirror, 'select count(*) from public.of_others'))) !== '0', 'the row is in it')
      // one of the owner's own is a result
      await must(sql(mirror, 'alter table public.of_others owner to tenant'))
      expect((await ofMirror('results', '--database', 'postgres')).stdout).toContain('forged')
      await must(sql(mirror, 'drop table public.forged, public.of_others'))
    },
  )

  attempt(
    'neighbour of 24',
    'a superuser who replaces the functions of flashbacks makes up no answer',
    async () => {
      await prepare()
      const [schema] = (
        await must(
          sql(
            mirror,
            `select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace where extname = 'flashback_table'`,
          ),
        )
      ).split('\n')
      const lie = `made-up-${canary}`
      const tell = `language plpgsql as $$ begin kind := 'columns'; row_now := array['${lie}']; return next; end $$`
      await must(
        sql(
          mirror,
          `create or replace function ${schema}.polar_flashback_compare(relation regclass, target_time timestamptz default null,
             result regclass default null, samples int4 default 50, out kind text, out rows int8, out key text[],
             out row_then text[], out row_now text[]) returns setof record ${tell};
           create or replace function ${schema}.polar_flashback_results(out result oid, out schema_name text, out result_name text,
             out owner text, out relation oid, out relation_schema text, out relation_name text, out target_time timestamptz,
             out size_bytes int8) returns setof record language sql as
             $$ select 1::oid, '${lie}', 'x', 'y', 2::oid, 'z', 'z', now(), 1::int8 $$;
           select * from ${schema}.polar_flashback_results();`,
        ),
      )
      for (const words of [
        ['results', '--database', 'postgres'],
        ['preview', 'bait', '--ago', '1s', '--database', 'postgres'],
        ['export', 'x', '--database', 'postgres'],
      ]) {
        const { status, stdout, stderr } = await ofMirror(words[0] as string, ...words.slice(1))
        gotIn(`${stdout}${stderr}`.includes(lie), `./floe flashback ${words.join(' ')} tells it`)
        expect([words[0], status, stderr]).toEqual([words[0], 1, expect.stringContaining('earlier version')])
      }
      gotIn((await whereIsCanary()).length > 0, 'it was written down')
    },
  )
})

describe('uses the console’s own trials and settings', () => {
  attempt('9', 'a check of settings runs no program and loads no library of the attacker’s', async () => {
    const evidence = openDirectory()
    try {
      const mark = join(evidence.path, 'ran')
      const library = hostileLibrary(evidence.path, mark)
      // the bait is good: an engine that loads the library leaves the mark, and so does one that runs the command
      await sql(it.alpha, `load '${library}'`)
      expect(readFileSync(mark, 'utf8')).toBe(`uid ${uidOf(it.alpha)}\n`)
      rmSync(mark)
      await shellBySql(it.alpha, `touch ${mark}`)
      expect(existsSync(mark)).toBe(true)
      rmSync(mark)

      const { cookie } = await signIn('operator')
      const about = (name: string, value: string, { instanceId } = it.alpha) => ({
        scope: { instanceId },
        changes: [{ name, value }],
      })
      type Checked = { members: { results: { fault: { code: string } | null }[] }[] }
      const faultsOf = (answer: Answer) =>
        answerOf<Checked>(answer).members.flatMap((m) => m.results.map((r) => r.fault?.code))
      // a check of an operator's own is carried out
      const harmless = await call(
        { token: it.people.operator.token },
        'mutation',
        'setting.check',
        about('work_mem', '9MB'),
      )
      expect(faultsOf(harmless)).toEqual([undefined])
      for (const [name, value] of [
        ['shared_preload_libraries', library],
        ['ssl_passphrase_command', `touch ${mark}`],
      ] as const) {
        const input = about(name, value)
        const refused = await call({ token: it.people.operator.token }, 'mutation', 'setting.check', input)
        expect([refused.status, refused.text]).toEqual([
          403,
          expect.stringContaining('setting.runs_programs'),
        ])
        await call({ token: it.people.operator.token }, 'query', 'setting.check', input)
        await call({ cookie }, 'query', 'setting.check', input, {
          'sec-fetch-site': 'cross-site',
          'sec-fetch-mode': 'navigate',
        })
        // whoever may name programs has an engine tried with them, which is told to run none
        const tried = await call(
          { token: it.people.admin.token },
          'mutation',
          'setting.check',
          about(name, value, it.beta),
        )
        expect(faultsOf(tried)).toEqual([
          name === 'shared_preload_libraries' ? 'setting.library_outside' : undefined,
        ])
      }
      const ofAgent = (procedure: string, input?: unknown) =>
        run('curl', [
          ...['-sk', '--max-time', '15', '--cert', webIdentity(), '--key', webIdentity()],
          ...['-w', '\n%{http_code}'],
          `https://127.0.0.1:${it.agentPort}/trpc/${procedure}${
            input === undefined ? '' : `?input=${encodeURIComponent(JSON.stringify({ json: input }))}`
          }`,
        ])
      // with this certificate the agent answers what may be read
      expect((await ofAgent('hello')).out).toMatch(/\n200$/)
      const agentRead = await ofAgent('setting.check', {
        instanceId: it.alpha.instanceId,
        changes: [{ name: 'shared_preload_libraries', value: library }],
      })
      expect(agentRead.out).toMatch(/\n\d{3}$/)
      // no connection at all, which is another thing than a refusal
      expect(agentRead.out).not.toMatch(/\n000$/)
      gotIn(existsSync(mark), existsSync(mark) ? readFileSync(mark, 'utf8') || 'a command ran' : '')
    } finally {
      evidence.remove()
    }
  })

  attempt('9', 'a page of another site starts no check with an operator’s cookie', async () => {
    const { cookie } = await signIn('operator')
    const input = {
      scope: { instanceId: it.alpha.instanceId },
      changes: [{ name: 'work_mem', value: '8MB' }],
    }
    // the console's own page starts one with this cookie
    const own = await call({ cookie }, 'mutation', 'setting.check', input)
    expect(own.status, own.text).toBe(200)
    const get = await call({ cookie }, 'query', 'setting.check', input, {
      'sec-fetch-site': 'cross-site',
      origin: 'https://evil.example',
    })
    gotIn(get.status === 200, `GET setting.check answered ${get.text.slice(0, 100)}`)
    const post = await call({ cookie }, 'mutation', 'setting.check', input, {
      origin: 'https://evil.example',
    })
    gotIn(post.status === 200, `POST setting.check answered ${post.text.slice(0, 100)}`)
    expect(post.status, post.text).toBe(403)
  })
})

const webIdentity = () =>
  [join(it.consoleDirectory, 'web/secrets/web.pem'), join(it.homeDirectory, 'secrets/web.pem')].find(
    existsSync,
  ) as string

afterAll(async () => {
  await deliberately([], () => home.run(['standby', 'remove', 'alpha-2', '--confirm', 'alpha-2']))
  rmSync('/dev/shm/keep-floe.conf', { force: true })
})
