import { ceilingWords, fault, formatBytes, ProfileName, profileWords } from '@floe/domain'
import type { Command } from 'commander'
import { submitOnce } from '../console/submit-once'
import { printResult, table } from '../output'
import { findInstance, openConsole } from './find-instance'
import { follow } from './setting'
import { type Submitting, submittingVerb, wholeNumber } from './verb'

type Options = Submitting & { share?: number; apply?: boolean; reason?: string }

/** `./floe instance profile`: what a profile would set, with the reason of each line, and with --apply the change itself. */
export function addProfile(instance: Command): void {
  submittingVerb(
    instance,
    'profile <name> [profile]',
    'show or apply a set of settings for a purpose',
    `Shows what a profile would set, computed from the size of the host, the instance's share of it and its limits, with a reason per line. With --apply it is an ordinary change of settings: checked, applied, confirmed, recorded and rolled back like any other. Profiles: ${ProfileName.options.join(', ')}. Without one: lists them.`,
  )
    .option(
      '--share <percent>',
      'how much of the host is meant for it; default: the host divided by its instances',
      wholeNumber(1, 100),
    )
    .option('--apply', 'make the changes')
    .option('--reason <text>', 'why, for the history')
    .option('--no-wait', 'with --apply: do not wait until the change is confirmed')
    .action(async (name: string, word: string | undefined, options: Options) => {
      const { json } = options
      if (word === undefined) {
        const all = ProfileName.options.map((profile) => ({ profile, ...profileWords[profile] }))
        printResult(json, all, () =>
          table(
            ['profile', 'for'],
            all.map((p) => [p.profile, `${p.title}. ${p.about}`]),
          ),
        )
        return
      }
      const profile = ProfileName.safeParse(word)
      if (!profile.success)
        throw fault('usage.profile', `there is no profile "${word}"`, {
          hint: `Profiles are ${ProfileName.options.join(', ')}.`,
        })
      const client = openConsole()
      const { instanceId } = await findInstance(client, name)
      const scope = { instanceId }
      const share = options.share === undefined ? {} : { share: options.share / 100 }
      const proposed = await client.trpc.setting.profile.query({ scope, profile: profile.data, ...share })
      const { settings } = await client.trpc.setting.list.query({
        scope,
        names: proposed.lines.map((l) => l.name),
      })
      const lines = proposed.lines.flatMap((line) => {
        const setting = settings.find((s) => s.name === line.name)
        return setting ? { ...line, now: setting.values[0]?.shown ?? null } : []
      })
      if (options.apply) {
        const changes = lines.map(({ name: of, value }) => ({ name: of, value }))
        const reason = options.reason ?? `Profile ${profileWords[profile.data].title}`
        const { operationId } = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
          client.trpc.setting.set.mutate({ scope, changes, restart: false, reason, idempotencyKey }),
        )
        return follow(client, scope, operationId, options)
      }
      const { host, ceiling } = proposed
      const limits = ceilingWords(ceiling)
      printResult(json, { ...proposed, lines }, () =>
        [
          `${profileWords[profile.data].title} for ${Math.round(proposed.share * 100)} % of ${host.hostName} (${formatBytes(host.memoryBytes)}, ${host.cpus} CPUs)`,
          ...(limits === null ? [] : [limits]),
          '',
          table(
            ['setting', 'now', 'proposed', 'why'],
            lines.map((l) => [l.name, l.now, l.value, l.reason]),
          ),
          '',
          'Nothing was changed. Apply it with --apply.',
        ].join('\n'),
      )
    })
}
