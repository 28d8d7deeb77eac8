import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { castOrders, ordersByCast } from './order-by.mjs'

test('an order by an output column that is a cast is found', () => {
  const id = ['ORDER BY id']
  expect(ordersByCast('SELECT id::text, at FROM t ORDER BY id DESC LIMIT 1')).toEqual(id)
  expect(ordersByCast('select t.id::text from t order by id asc nulls last, at')).toEqual(['ORDER BY id'])
  expect(ordersByCast('SELECT (a + 1)::text AS id FROM t ORDER BY at, id')).toEqual(id)
  expect(ordersByCast('SELECT CAST(id AS text) AS id FROM t ORDER BY id')).toEqual(id)
  expect(ordersByCast('SELECT "Id"::character varying(20) FROM t ORDER BY "Id"')).toEqual(['ORDER BY "Id"'])
  expect(ordersByCast('SELECT at, id::text FROM t ORDER BY 2')).toEqual(['ORDER BY 2'])
  expect(ordersByCast('SELECT DISTINCT ON (id) id::text, at FROM t')).toEqual(['DISTINCT ON id'])
  expect(ordersByCast('SELECT * FROM (SELECT id::text FROM t ORDER BY id) s ORDER BY s.id')).toEqual(id)
  expect(ordersByCast('WITH o AS (SELECT 1) SELECT id::text FROM o ORDER BY id')).toEqual(id)
  expect(ordersByCast('SELECT id FROM t UNION ALL SELECT id::text FROM u ORDER BY id')).toEqual(id)
  expect(ordersByCast('CREATE FUNCTION f() AS $$ SELECT id::text FROM t ORDER BY id $$')).toEqual(id)
})

test('an order by the column itself, by an expression or by an alias that is no cast is let through', () => {
  for (const sql of [
    'SELECT t.id::text FROM t ORDER BY t.id DESC',
    'SELECT id, at::text FROM t ORDER BY id',
    'SELECT id::text AS "idText" FROM t ORDER BY id',
    'SELECT id::text FROM t ORDER BY id + 0',
    'SELECT array_agg(id::text ORDER BY id) FROM t',
    'SELECT id::text, row_number() OVER (ORDER BY id) FROM t',
    'SELECT sum(n)::bigint * 2 AS total FROM t ORDER BY total',
    'SELECT id::text FROM t; SELECT id FROM t ORDER BY id',
    '-- SELECT id::text FROM t ORDER BY id\nSELECT 1',
    "SELECT 'id::text ORDER BY id' AS id FROM t ORDER BY id",
  ])
    expect(ordersByCast(sql), sql).toEqual([])
})

test('queries are put together from the constants of their module and of others', () => {
  const root = mkdtempSync(join(tmpdir(), 'floe-orders-'))
  try {
    for (const [file, text] of Object.entries({
      'packages/db/columns.ts': "export const columns = 'id::text, at'\n",
      'packages/db/one.ts': 'export const one = `SELECT @{columns} FROM t ORDER BY id`\n',
      'packages/db/two.ts':
        "const own = 'id::text'\nconst query = `SELECT @{own} FROM t`\nask(\n  `@{query} ORDER BY id`)\n",
      // what nobody knows before it runs may be anything
      'packages/db/three.ts': 'const f = (x: string) => `SELECT @{x} FROM t ORDER BY id`\n',
      'packages/db/fine.ts': 'export const fine = `SELECT @{columns} FROM t ORDER BY t.id`\n',
      'apps/agent/sql/four.sql': 'select id::text from t order by id;\n',
      'packages/another-repository/.git': 'gitdir: elsewhere\n',
      'packages/another-repository/left-out.sql': 'select id::text from t order by id;\n',
      'packages/db/node_modules/left-out.ts': "ask('SELECT id::text FROM t ORDER BY id')\n",
    })) {
      mkdirSync(dirname(join(root, file)), { recursive: true })
      writeFileSync(join(root, file), text.replaceAll('@', '$'))
    }
    const { broken, queries } = castOrders(root, ['apps', 'packages', 'e2e'])
    expect(broken.map((b) => `${b.file}:${b.line}`).sort()).toEqual([
      'apps/agent/sql/four.sql:1',
      'packages/db/one.ts:1',
      'packages/db/three.ts:1',
      'packages/db/two.ts:3',
    ])
    expect(queries).toBe(5)
  } finally {
    rmSync(root, { recursive: true })
  }
})
