'use client'
import type { ConnectionForms } from '@floe/domain'
import { Card, Copyable, Tabs } from '@floe/ui'

const forms: readonly {
  key: keyof ConnectionForms
  label: string
  what: string
  about: string
  multiline?: boolean
}[] = [
  { key: 'psql', label: 'psql', what: 'psql command', about: 'For a terminal on this host.' },
  { key: 'uri', label: 'URI', what: 'URI', about: 'DATABASE_URL of most frameworks; libpq takes it too.' },
  { key: 'jdbc', label: 'JDBC', what: 'JDBC URL', about: 'For the PostgreSQL JDBC driver.' },
  {
    key: 'nodePostgres',
    label: 'node-postgres',
    what: 'node-postgres client',
    about: 'For pg, the driver of Node.js.',
  },
  { key: 'go', label: 'Go', what: 'Go connection', about: 'For pgx.' },
  { key: 'python', label: 'Python', what: 'Python connection', about: 'For psycopg 3.' },
  { key: 'keywords', label: 'Keywords', what: 'keyword string', about: 'libpq’s keyword form.' },
  {
    key: 'environment',
    label: 'Environment',
    what: 'environment variables',
    about: 'Variables that every libpq program reads.',
    multiline: true,
  },
]

/** A connection in every form people paste; the URI always in view. */
export function ConnectionCard({
  connection,
  title,
  description,
  testId = 'connection',
}: {
  connection: ConnectionForms
  title: string
  description?: string | undefined
  /** What the names of its strings begin with, where a page has several cards. */
  testId?: string
}) {
  const others = forms.filter((form) => form.key !== 'uri')
  return (
    <Card title={title} description={description}>
      <p className="mb-1 text-xs text-ink-muted">URI: DATABASE_URL of most frameworks; libpq takes it too.</p>
      <Copyable text={connection.uri} what="URI" testId={`${testId}-uri`} />
      <div className="mt-4">
        <Tabs
          label={`Other forms of: ${title}`}
          tabs={others.map((form) => ({
            value: form.key,
            label: form.label,
            content: (
              <>
                <p className="mb-1 text-xs text-ink-muted">{form.about}</p>
                <Copyable
                  text={connection[form.key]}
                  what={form.what}
                  multiline={form.multiline}
                  testId={`${testId}-${form.key}`}
                />
              </>
            ),
          }))}
        />
      </div>
    </Card>
  )
}
