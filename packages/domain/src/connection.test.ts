import { expect, test } from 'vitest'
import { connectionForms } from './connection'

const target = { host: '127.0.0.1', port: 5500, user: 'postgres', database: 'postgres' }

test('a connection without a password leaves it to be asked for in every form', () => {
  expect(connectionForms(target)).toEqual({
    uri: 'postgresql://postgres@127.0.0.1:5500/postgres',
    keywords: 'host=127.0.0.1 port=5500 user=postgres dbname=postgres',
    psql: "psql 'postgresql://postgres@127.0.0.1:5500/postgres'",
    jdbc: 'jdbc:postgresql://127.0.0.1:5500/postgres?user=postgres',
    nodePostgres:
      "const client = new pg.Client({ host: '127.0.0.1', port: 5500, user: 'postgres', database: 'postgres' })",
    go: 'conn, err := pgx.Connect(ctx, "postgresql://postgres@127.0.0.1:5500/postgres")',
    python: 'connection = psycopg.connect("host=127.0.0.1 port=5500 user=postgres dbname=postgres")',
    environment:
      "export PGHOST='127.0.0.1'\nexport PGPORT='5500'\nexport PGUSER='postgres'\nexport PGDATABASE='postgres'",
  })
})

test('characters with a meaning of their own survive in every form', () => {
  const forms = connectionForms({ ...target, host: '::1', user: "o'neill" }, "p@ss/w'rd\\ 1")
  expect(decodeURIComponent(new URL(forms.uri).password)).toBe("p@ss/w'rd\\ 1")
  expect(forms.uri).toContain('@[::1]:5500/')
  expect(forms.keywords).toContain("user='o\\'neill'")
  expect(forms.keywords).toContain("password='p@ss/w\\'rd\\\\ 1'")
  expect(forms.python).toContain(`user='o\\\\'neill'`)
  const options = new Function('pg', `${forms.nodePostgres}; return client`)({
    Client: class {
      constructor(readonly options: object) {}
    },
  }).options
  expect(options).toMatchObject({ host: '::1', user: "o'neill", password: "p@ss/w'rd\\ 1" })
  expect(forms.environment).toContain("export PGPASSWORD='p@ss/w'\\''rd\\ 1'")
})

test('of an instance that lets clients in over TLS only every form asks for it', () => {
  const forms = connectionForms(target, null, true)
  expect(forms.psql).toContain('/postgres?sslmode=require&channel_binding=require')
  expect(forms.keywords).toMatch(/ sslmode=require channel_binding=require$/)
  expect(forms.python).toContain('channel_binding=require')
  expect(forms.environment).toContain("export PGSSLMODE='require'\nexport PGCHANNELBINDING='require'")
  expect(forms.nodePostgres).toContain('ssl: { rejectUnauthorized: false }, enableChannelBinding: true })')
  // of drivers some send what they do not know to the server, which refuses it
  for (const form of [forms.uri, forms.go, forms.jdbc]) {
    expect(form).toContain('sslmode=require')
    expect(form).not.toContain('channel_binding')
  }
})

test('of a port whose clients must not use TLS every driver that would is told', () => {
  const forms = connectionForms(target, null, 'disabled')
  for (const form of [forms.uri, forms.psql, forms.go, forms.jdbc, forms.keywords, forms.python])
    expect(form).toContain('sslmode=disable')
  expect(forms.environment).toContain("export PGSSLMODE='disable'")
  // node-postgres uses none unless it is told to
  expect(forms.nodePostgres).not.toContain('ssl')
  expect(Object.values(forms).join()).not.toMatch(/require|channel/i)
})
