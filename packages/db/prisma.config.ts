import { defineConfig } from 'prisma/config'

// not env('DATABASE_URL'): that throws when unset, also for `generate`
export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  datasource: {
    url: process.env.DATABASE_URL ?? 'postgresql://localhost:5432/unset',
    shadowDatabaseUrl: process.env.SHADOW_DATABASE_URL,
  },
})
