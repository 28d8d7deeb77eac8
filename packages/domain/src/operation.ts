import { z } from 'zod'
import type { InstanceIntent } from './instance'

export const OperationState = z.enum(['queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled'])
export type OperationState = z.infer<typeof OperationState>

export const endedOperationStates: readonly OperationState[] = ['succeeded', 'failed', 'cancelled']

export type OperationTransition = { from: OperationState; to: OperationState; because: string }

/** Every edge of an operation's life. `because` is the log line. Only the controller walks them, save for the two marked. */
export const operationTransitions: readonly OperationTransition[] = [
  { from: 'queued', to: 'running', because: 'a controller leased it' },
  { from: 'queued', to: 'cancelled', because: 'it was cancelled before it started' },
  { from: 'running', to: 'succeeded', because: 'its last step is done' },
  { from: 'running', to: 'failed', because: 'a step failed' },
  // asked by a person through web
  { from: 'running', to: 'cancelling', because: 'a cancel was asked for' },
  { from: 'cancelling', to: 'cancelled', because: 'the running step was given up' },
  { from: 'cancelling', to: 'succeeded', because: 'its last step was done before the cancel took effect' },
  { from: 'cancelling', to: 'failed', because: 'a step failed while it was being cancelled' },
]

export function canMoveOperation(from: OperationState, to: OperationState): boolean {
  return operationTransitions.some((t) => t.from === from && t.to === to)
}

export const StepState = z.enum(['pending', 'running', 'succeeded', 'failed', 'cancelled'])
export type StepState = z.infer<typeof StepState>

/** A stage of a long operation as its page lists it before anything is done. Names are those of the operation's steps. */
export type OperationStage = { name: string; title: string; clientsCanWrite: boolean }

/** How an operation is called where nothing is to be added to its input: the console's API derives it. */
export type OperationOrder = {
  /** Router of the API, and group of the command line. */
  noun: string
  /** Procedure of the router; the command is the same in lower case with hyphens. */
  verb: string
  /** Parts of the input that only Floe fills in, later or automatically. */
  notAsked?: readonly string[]
  /** Where the command line derives it, too; without it the command, if there is one, is written by hand. */
  command?: OrderCommand
}

/** What the command line says of an order that it derives. */
export type OrderCommand = {
  /** Whether it stands in the menu of an instance's page, with a dialog that asks for the input: of each member, or of primaries. */
  menu?: 'member' | 'primary'
  /** The command's line in the list of commands. */
  summary: string
  /** What it does, in the command's help. */
  about: string
  /** What is said of the instance when it has succeeded: `Instance "a" …`, where it depends on the result a function of it. */
  done: string | ((result: Record<string, unknown>) => string)
}

/**
 * One kind of operation: everything that submitting, carrying out, showing and ordering it derives, but its plan, its steps and
 * its guard, which need the control database (packages/operations, under the same name). Of the input each part that a person
 * reads or types has a title (for the operation's page) and a description (for the command line) in its `meta`.
 */
export type OperationRecord = {
  /** The words a person reads. */
  title: string
  /** `noun.verb` in the audit log. */
  action: string
  /** What it is asked with, and stored as. `instanceId` names the instance that the operation belongs to. */
  input: z.ZodObject
  /** Parts of the input that are made for each request, so that one that is sent again may have others. */
  madeAnew?: readonly string[]
  /** What a person wants of the instance from the moment on that this is asked. */
  intent?: InstanceIntent
  /** Whether it makes the instance it belongs to, or takes one over that is there. */
  makes?: 'new' | 'adopted'
  /** It may take hours and no primary is ever away by it: a failover need not wait for its end. */
  leavesPrimaryAlone?: true
  /**
   * It changes nothing: it neither waits for another operation on the instance or its cluster nor keeps one from being ordered.
   * The indexes `operation_one_open_per_instance` and `…_per_cluster` have the same list; a test compares them.
   */
  readsOnly?: true
  /** The agent that carries it out keeps sample rows of it, or what the engine said of rows, for who may see them. */
  keepsRows?: true
  /** The names of the settings that an input changes. */
  // biome-ignore lint/suspicious/noExplicitAny: each record declares its own input
  settings?(input: any): string[]
  /** Who may ask for it, and take it up again, where a person who may change an instance may not; it may depend on the input. */
  // biome-ignore lint/suspicious/noExplicitAny: each record declares its own input
  role?: 'admin' | ((input: any) => 'admin' | undefined)
  /** Its steps before anything is done, where clients are interrupted. */
  stages?: readonly OperationStage[]
  /**
   * The step from whose start on it goes through: a cancel is refused then, unless the step is overdue. Before it a cancel
   * takes everything back.
   */
  pointOfNoReturn?: string
  order?: OperationOrder
}
