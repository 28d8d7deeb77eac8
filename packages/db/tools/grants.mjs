// Who may do what in the control database: "one writer per fact" (ARCHITECTURE.md), as privileges of PostgreSQL. Web and
// controller each have a role of their own; every object belongs to the owner of the database, whom no process connects as.
// A table that is not named here is refused by a test; what is not said is not granted.

/** Roles that processes connect as. The launcher makes them; they own nothing. */
export const roleNames = { web: 'floe_web', controller: 'floe_controller' }

/**
 * `true` is every column. A role that is left out has no access.
 * @typedef {{ select?: true | string[], insert?: true | string[], update?: true | string[], delete?: true }} Grant
 * @typedef {{ web?: Grant, controller?: Grant }} TableGrants
 */

/** better-auth keeps people and sessions by itself; the controller has no business with them. */
const people = { web: { select: true, insert: true, update: true, delete: true } }
/** What only the controller writes and web shows. */
const controllersOwn = (...columns) => ({
  web: { select: true },
  controller: { select: true, insert: true, update: columns.length > 0 ? columns : true },
})
const audit = {
  select: true,
  insert: ['actor', 'actorName', 'action', 'outcome', 'objectKind', 'objectId', 'detail', 'ipAddress'],
}
const ordered = ['id', 'kind', 'input', 'instanceId', 'actor', 'actorName', 'idempotencyKey', 'retryOf']

/** @type {Record<string, TableGrants>} */
export const tables = {
  user: people,
  session: people,
  account: people,
  verification: people,
  organization: people,
  member: people,
  invitation: people,
  // tokens of the command line and set-up links are made by the launcher, as the owner; limited tokens by a function
  api_token: { web: { select: true, update: ['lastUsedAt'] } },
  setup_link: { web: { select: true, update: ['usedAt'] } },

  host: {
    web: { select: true, update: ['revokedAt', 'revokedBy', 'removedAt', 'powerSupply'] },
    // a host that is enrolled again is not revoked any more
    controller: {
      select: true,
      insert: ['id', 'name', 'agentUrl', 'enrolledAt'],
      update: [
        'name',
        'agentUrl',
        'enrolledAt',
        'revokedAt',
        'revokedBy',
        'observedAt',
        'agentVersion',
        'contractVersion',
        'capabilities',
        'facts',
        'fault',
      ],
    },
  },
  host_enrolment: {
    web: {
      select: true,
      insert: ['id', 'hostId', 'name', 'tokenHash', 'actor', 'actorName', 'expiresAt'],
      update: ['withdrawnAt', 'requestedAt', 'request', 'agentUrl', 'ipAddress'],
    },
    // signs requests and need not know the token
    controller: {
      select: [
        'id',
        'hostId',
        'name',
        'requestedAt',
        'request',
        'agentUrl',
        'signedAt',
        'withdrawnAt',
        'fault',
      ],
      update: ['signedAt', 'certificate', 'fault'],
    },
  },
  host_certificate: {
    web: { select: true, update: ['revokedAt'] },
    controller: {
      select: true,
      insert: ['fingerprint', 'hostId', 'notBefore', 'notAfter'],
      update: ['revokedAt'],
    },
  },

  // a cluster of one is made with its instance, by trigger
  cluster: {
    web: { select: true, update: ['deletionProtected'] },
    controller: {
      select: true,
      insert: ['id', 'name', 'primaryInstanceId'],
      update: [
        'primaryInstanceId',
        'synchronous',
        'commitMode',
        'pageRepair',
        'holdings',
        'automatic',
        'automaticWord',
      ],
    },
  },
  // web: a standby whose creation was cancelled in the queue, and instances of a removed host, are deleted by no operation
  instance: {
    web: {
      select: true,
      insert: ['id', 'name', 'hostId', 'intent', 'clusterId', 'memberRole'],
      update: ['intent', 'deletedAt'],
    },
    controller: {
      select: true,
      update: [
        'clusterId',
        'memberRole',
        'fenceOrderedAt',
        'fenceTimeline',
        'deletedAt',
        'observedAt',
        'state',
        'because',
        'role',
        'engineVersion',
        'systemIdentifier',
        'port',
        'observed',
        'limits',
      ],
    },
  },
  // the controller orders what nobody asked for itself: fences, starts, failovers, upgrades of members
  operation: {
    web: {
      select: true,
      insert: ordered,
      update: ['cancelAskedAt'],
    },
    controller: {
      select: true,
      insert: ordered,
      update: [
        'state',
        'startedAt',
        'endedAt',
        'progress',
        'message',
        'result',
        'fault',
        'leaseOwner',
        'leaseExpiresAt',
        'leaseToken',
      ],
    },
  },
  operation_step: controllersOwn(),
  operation_log: { web: { select: true }, controller: { select: true, insert: true } },
  limit_change: { web: { select: true }, controller: { select: true, insert: true } },
  setting_change: { web: { select: true }, controller: { select: true, insert: true } },
  setting_revision: { web: { select: true }, controller: { select: true, insert: true } },
  // asked by web, answered by the controller, which also drops what is old
  setting_check: {
    web: { select: true, insert: ['id', 'targets', 'digest', 'actor', 'actorName'] },
    controller: { select: true, update: ['takenUntil', 'endedAt', 'answers'], delete: true },
  },
  // asked by web, and by the controller once a day; ended by the controller, which also drops what that replaces
  host_check: {
    web: { select: true, insert: ['id', 'hostId', 'actor', 'actorName'] },
    controller: {
      select: true,
      insert: ['id', 'hostId', 'actor', 'actorName'],
      update: ['takenUntil', 'endedAt', 'result', 'fault'],
      delete: true,
    },
  },
  // asked by web, which may also have it end; carried out by the controller
  host_upgrade: {
    web: {
      select: true,
      insert: [
        'id',
        'hostId',
        'build',
        'switchBack',
        'except',
        'packages',
        'downgrade',
        'actor',
        'actorName',
      ],
      update: ['cancelAskedAt'],
    },
    controller: {
      select: true,
      update: ['takenUntil', 'endedAt', 'installed', 'ordered', 'message', 'left', 'fault'],
    },
  },
  // stored by web as an admin gives them, sent and dropped by the controller
  package_piece: {
    web: { select: true, insert: ['digest', 'number', 'bytes'], delete: true },
    controller: { select: true, delete: true },
  },
  // checkpoints and stalls go with the coarsest samples
  checkpoint_record: { web: { select: true }, controller: { select: true, insert: true, delete: true } },
  stall_record: { web: { select: true }, controller: { select: true, insert: true, delete: true } },
  recovery_record: controllersOwn(),
  incident: {
    web: { select: true, update: ['acknowledgedAt', 'acknowledgedBy', 'acknowledgedByName'] },
    controller: {
      select: true,
      insert: ['id', 'key', 'severity', 'title', 'detail', 'hint', 'hostId', 'instanceId', 'operationId'],
      update: ['severity', 'title', 'detail', 'hint', 'closedAt', 'closedBecause'],
    },
  },
  lease: { controller: { select: true, insert: true, update: ['owner', 'token', 'expiresAt'] } },

  webhook: {
    web: { select: true, insert: ['id', 'url', 'actor', 'actorName'], delete: true },
    controller: { select: true },
  },
  // found by the controller, decided by a person, carried out by the controller; "./floe console restore" writes one as the owner
  restored_record: {
    web: { select: true, update: ['acceptedAs', 'acceptedAt', 'acceptedBy', 'acceptedByName'] },
    controller: {
      select: true,
      insert: ['id', 'clusterId', 'evidence'],
      update: ['evidence', 'settledAt', 'outcome'],
    },
  },
  // queued by the trigger of incidents and by queue_webhook_test()
  webhook_delivery: {
    web: { select: true },
    controller: {
      select: true,
      update: ['attempts', 'nextAttemptAt', 'deliveredAt', 'givenUpAt', 'error'],
      delete: true,
    },
  },

  // id, time and hashes are the trigger's
  audit_event: { web: audit, controller: audit },
  audit_chain: { web: { select: true } },
  record_retention: { web: { select: true, update: ['keepSeconds'] } },

  // partitions have no privileges of their own: they are reached by their table
  'telemetry.sample': { web: { select: true }, controller: { select: true, insert: true } },
  'telemetry.sample_10s': controllersOwn('covered_ms', 'average', 'maximum'),
  'telemetry.sample_1m': controllersOwn('covered_ms', 'average', 'maximum'),
  'telemetry.sample_cursor': controllersOwn('newest_seq', 'newest_at', 'rolled_10s', 'rolled_1m'),
  'telemetry.retention': { web: { select: true, update: ['keep_seconds'] }, controller: { select: true } },

  // whose database this is: the launcher's, as the owner
  installation: {},
  // bookkeeping of migrations
  _prisma_migrations: {},
}

/** Sequences behind the columns that a role may insert into. */
export const sequences = {
  limit_change_id_seq: ['controller'],
  operation_log_id_seq: ['controller'],
  setting_change_id_seq: ['controller'],
  setting_revision_id_seq: ['controller'],
}

/** Functions that act as the owner, and who may call them; triggers need no privilege. */
export const functions = {
  'make_api_token(uuid,text,text,text,text,interval,text)': ['web'],
  'revoke_api_token(uuid)': ['web'],
  'hasten_operation(uuid)': ['web'],
  'give_up_own_operation(uuid)': ['controller'],
  'queue_webhook_test(uuid)': ['web'],
  'prune_operations(integer)': ['controller'],
  'prune_incidents(integer)': ['controller'],
  'prune_sessions(integer)': ['controller'],
  'prune_audit_events(integer)': ['controller'],
  'audit_event_hash(audit_event)': ['web'],
  'telemetry.make_partition(integer,timestamptz,timestamptz)': ['controller'],
  'telemetry.drop_partition(text)': ['controller'],
}

/** Schemas with objects of ours. */
export const schemas = ['public', 'telemetry']
