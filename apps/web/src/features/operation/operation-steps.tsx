'use client'
import { stepWorkWords } from '@floe/domain'
import { FaultAlert, Progress, StateBadge } from '@floe/ui'
import { OperationTime } from './operation-time'
import type { OperationDetail } from './use-operation'

/** The steps of an operation in their order, each with its state, time, attempt and what it says. */
export function OperationSteps({ steps }: { steps: OperationDetail['steps'] }) {
  if (steps.length === 0)
    return <p className="text-sm text-ink-muted">Its steps are planned when a controller starts it.</p>
  return (
    <ol className="flex flex-col">
      {steps.map((step) => (
        <li key={step.position} className="border-t border-line py-2 first:border-0 first:pt-0 last:pb-0">
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <span className="w-5 text-right text-xs text-ink-faint tabular-nums">{step.position + 1}.</span>
            <span className="min-w-40 flex-1 text-sm font-medium">{step.title}</span>
            {step.attempt > 1 ? <span className="text-xs text-ink-muted">attempt {step.attempt}</span> : null}
            <span className="text-xs text-ink-muted">
              <OperationTime startedAt={step.startedAt} endedAt={step.endedAt} />
            </span>
            <StateBadge state={step.state} of="step" />
          </div>
          {step.state === 'running' ? (
            <Progress
              label={`${step.title}, progress`}
              value={step.progress}
              showPercent
              className="mt-2 ml-8"
            />
          ) : null}
          {step.state === 'running' && step.work ? (
            <p className="mt-1 ml-8 text-xs text-ink-muted tabular-nums">{stepWorkWords(step.work)}</p>
          ) : null}
          {step.message && !step.fault ? (
            <p className="mt-1 ml-8 text-xs break-words text-ink-muted">{step.message}</p>
          ) : null}
          {step.fault ? <FaultAlert fault={step.fault} className="mt-2 ml-8" /> : null}
        </li>
      ))}
    </ol>
  )
}
