// What both sides need. The caller's part has doors of its own (client, agent-pool), so that no agent carries an HTTP client.
export * from './enrolment'
export * from './identity-file'
export * from './router'
export * from './schemas'
export * from './tasks'
export * from './version'
