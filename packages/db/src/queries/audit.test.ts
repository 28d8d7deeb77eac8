import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { createTestDatabase, insertAuditRows, type TestDatabase } from '../testing/control-database'
import { insertAuditEvent, listAuditEvents, verifyAuditChain } from './audit'
import { pruneRecords } from './record-retention'

const event = (n: number) => ({
  actor: { id: 'u', name: 'Ada' },
  action: 'instance.stop',
  outcome: 'allowed' as const,
  objectKind: 'instance',
  objectId: randomUUID(),
  detail: { n, name: `i-${n}`, text: 'quotes " and \\ and é' },
  ipAddress: '127.0.0.1',
})

describe('the chain', () => {
  let db: TestDatabase
  beforeAll(async () => {
    db = await createTestDatabase(inject('engineConnectionString'))
  })
  afterAll(() => db.drop())
  beforeEach(async () => {
    await db.pool.query('TRUNCATE audit_event')
    await db.pool.query(
      `UPDATE audit_chain SET "anchorId" = 0, "headId" = 0, "anchorHash" = decode(repeat('00', 32), 'hex'),
              "headHash" = decode(repeat('00', 32), 'hex')`,
    )
  })
  const insert = async (count: number) => {
    for (let n = 1; n <= count; n++) await insertAuditEvent(db.as.web.pool, event(n))
  }
  const verify = (head?: string) => verifyAuditChain(db.as.web.pool, head)

  test('rows of both roles, written at the same time, follow each other without a gap', async () => {
    await Promise.all(
      [db.as.web, db.as.controller, db].flatMap((by) =>
        Array.from({ length: 40 }, (_, n) => insertAuditEvent(by.pool, event(n))),
      ),
    )
    const verified = await verify()
    expect(verified).toMatchObject({ rows: 120, anchorId: '0', headId: '120', broken: null })
    const { rows } = await db.pool.query(
      'SELECT bool_and(later) AS later FROM (SELECT at >= lag(at, 1, at) OVER (ORDER BY id) AS later FROM audit_event) e',
    )
    expect(rows).toEqual([{ later: true }])
  })

  test('a transaction that is rolled back leaves neither a row nor a gap', async () => {
    await insert(1)
    const client = await db.as.web.pool.connect()
    await client.query('BEGIN')
    await client.query(
      `INSERT INTO audit_event (actor, "actorName", action, outcome) VALUES ('u', 'Ada', 'x.y', 'denied')`,
    )
    await client.query('ROLLBACK')
    client.release()
    await insert(1)
    expect(await verify()).toMatchObject({ rows: 2, headId: '2', broken: null })
  })

  test('whoever inserts, id, time and hashes are the trigger’s', async () => {
    await db.pool.query(
      `INSERT INTO audit_event (id, at, actor, "actorName", action, outcome, "previousHash", hash)
       VALUES (77, '2001-01-01', 'u', 'Ada', 'x.y', 'denied', '\\x00', '\\x00')`,
    )
    const [row] = await listAuditEvents(db.as.web.pool)
    expect(row?.eventId).toBe('1')
    expect(row?.at.getFullYear()).toBeGreaterThan(2020)
    expect(await verify()).toMatchObject({ rows: 1, broken: null })
  })

  test.each([
    `"actorName" = 'somebody else'`,
    `actor = 'x'`,
    `action = 'instance.start'`,
    `outcome = 'denied'`,
    `"objectKind" = NULL`,
    `"objectId" = NULL`,
    `"ipAddress" = '::1'`,
    `at = at + interval '1 millisecond'`,
    `detail = detail || '{"n": 99}'`,
    `hash = sha256('x')`,
    `"previousHash" = sha256('x')`,
  ])('a row changed by the owner is named: %s', async (change) => {
    await insert(5)
    await db.pool.query(`UPDATE audit_event SET ${change} WHERE id = 3`)
    expect((await verify()).broken).toMatchObject({ kind: 'changed', eventId: '3' })
  })

  test('a row written anew with a hash that fits it is named by the one after it', async () => {
    await insert(5)
    await db.pool.query(`UPDATE audit_event SET "actorName" = 'x' WHERE id = 3`)
    await db.pool.query('UPDATE audit_event e SET hash = audit_event_hash(e) WHERE id = 3')
    expect((await verify()).broken).toMatchObject({ kind: 'replaced', eventId: '4' })
    // and where it is the newest one, by the end of the chain
    await db.pool.query('DELETE FROM audit_event WHERE id > 3')
    await db.pool.query(`UPDATE audit_chain SET "headId" = 3`)
    expect((await verify()).broken).toMatchObject({ kind: 'replaced', eventId: '3' })
  })

  test.each([
    ['id = 1', '1', '1'],
    ['id IN (2, 3)', '2', '3'],
    ['id > 3', '4', '5'],
    ['true', '1', '5'],
  ])('rows that are missing are named: %s', async (which, eventId, lastId) => {
    await insert(5)
    await db.pool.query(`DELETE FROM audit_event WHERE ${which}`)
    expect((await verify()).broken).toMatchObject({ kind: 'missing', eventId, lastId })
  })

  test('who may write everything can write the chain anew; a hash that was kept elsewhere shows it', async () => {
    await insert(4)
    const { headHash } = await verify()
    await insert(3)
    expect(await verify(headHash)).toMatchObject({ broken: null, known: { eventId: '4' } })
    await db.pool.query(`DO $$ DECLARE e audit_event; p bytea := decode(repeat('00', 32), 'hex'); BEGIN
      UPDATE audit_event SET "actorName" = 'somebody else' WHERE id = 2;
      FOR e IN SELECT * FROM audit_event ORDER BY id LOOP
        e."previousHash" := p; p := audit_event_hash(e);
        UPDATE audit_event SET "previousHash" = e."previousHash", hash = p WHERE id = e.id;
      END LOOP;
      UPDATE audit_chain SET "headHash" = p; END $$`)
    expect(await verify(headHash)).toMatchObject({ rows: 7, broken: null, known: null })
  })

  test('rows past their retention go from the oldest on, and the rest still follows the last one removed', async () => {
    // one that is young stands between: a clock was wrong
    await insertAuditRows(db, [500, 450, 10, 420])
    await insert(2)
    const before = await verify()
    expect(before).toMatchObject({ rows: 6, broken: null })
    const { rows } = await db.pool.query(`SELECT encode(hash, 'hex') AS hash FROM audit_event WHERE id = 2`)
    expect((await pruneRecords(db.as.controller.pool)).audit).toBe(2)
    expect(await verify(rows[0].hash)).toMatchObject({
      rows: 4,
      anchorId: '2',
      headHash: before.headHash,
      broken: null,
      known: { eventId: '2', at: null },
    })
    await db.pool.query('DELETE FROM audit_event WHERE id = 3')
    expect((await verify()).broken).toMatchObject({ kind: 'missing', eventId: '3', lastId: '3' })
  })

  test('nothing younger than 90 days is removed, whatever the table of retention says', async () => {
    await insertAuditRows(db, [95, 89])
    await db.pool.query('ALTER TABLE record_retention DROP CONSTRAINT record_retention_keep_check')
    await db.pool.query(`UPDATE record_retention SET "keepSeconds" = 1 WHERE kind = 'audit'`)
    expect((await pruneRecords(db.as.controller.pool)).audit).toBe(1)
    expect(await verify()).toMatchObject({ rows: 1, broken: null })
  })
})

test('rows are found by who asked, what, how it ended and of what; pages follow each other', async () => {
  const db = await createTestDatabase(inject('engineConnectionString'))
  try {
    const { pool } = db.as.web
    for (let n = 1; n <= 25; n++)
      await insertAuditEvent(pool, {
        actor: n % 2 ? { id: 'u1', name: 'Ada' } : { id: 'u2', name: 'Bob' },
        action: n % 5 ? 'instance.stop' : 'host.add',
        outcome: n % 3 ? 'allowed' : 'denied',
        objectId: `o${n}`,
        detail: { name: `i-${n}` },
      })
    const ids = async (filter: Parameters<typeof listAuditEvents>[1]) =>
      (await listAuditEvents(pool, filter)).map((r) => Number(r.eventId))
    const all = Array.from({ length: 25 }, (_, i) => 25 - i)
    expect(await ids({})).toEqual(all)
    expect(await ids({ actor: 'Ada' })).toEqual(all.filter((n) => n % 2 === 1))
    expect(await ids({ actor: 'u2' })).toEqual(all.filter((n) => n % 2 === 0))
    expect(await ids({ action: 'host' })).toEqual([25, 20, 15, 10, 5])
    expect(await ids({ action: 'host.add', outcome: 'denied' })).toEqual([15])
    expect(await ids({ action: 'host.ad' })).toEqual([])
    expect(await ids({ object: 'o7' })).toEqual([7])
    expect(await ids({ object: 'i-8' })).toEqual([8])
    const read: number[] = []
    for (let page = await listAuditEvents(pool, { limit: 10 }); page.length > 0; ) {
      read.push(...page.map((r) => Number(r.eventId)))
      page = await listAuditEvents(pool, { limit: 10, before: page.at(-1) })
    }
    expect(read).toEqual(all)
  } finally {
    await db.drop()
  }
})
