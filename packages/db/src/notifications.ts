import pg from 'pg'

/** Channels of the control database. The payload is the id of the row that moved. */
export const notificationChannels = [
  'operation',
  'operation_queued',
  'instance',
  'host',
  'incident',
  'webhook_delivery',
  'setting_check',
  'setting_check_answered',
  'host_check',
  'host_check_answered',
] as const
export type NotificationChannel = (typeof notificationChannels)[number]

export type NotificationOptions = {
  connectionString: string
  channels: readonly NotificationChannel[]
  onNotification: (channel: NotificationChannel, id: string) => void
  /** Called at every successful connection, also the first: what was missed before has to be read from the tables. */
  onConnected?: () => void
  /** Called when the connection is lost or could not be made. */
  onLost?: (error: Error) => void
}

/**
 * Listens for notifications over one connection and reconnects (0.25 s to 5 s apart) until `close()`. Notifications are
 * a hint to look at once, never the only reason to: those sent while disconnected are lost.
 */
export function listenForNotifications(options: NotificationOptions) {
  let client: pg.Client | undefined
  let retry: NodeJS.Timeout | undefined
  let closed = false
  let delayMs = 250

  const lost = (from: pg.Client, error: Error) => {
    if (closed || client !== from) return
    client = undefined
    from.removeAllListeners()
    from.on('error', () => {})
    void from.end().catch(() => {})
    options.onLost?.(error)
    retry = setTimeout(connect, delayMs)
    delayMs = Math.min(delayMs * 2, 5_000)
  }

  function connect() {
    const c = new pg.Client({
      connectionString: options.connectionString,
      application_name: 'floe notifications',
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
    })
    client = c
    c.on('error', (error) => lost(c, error))
    c.on('end', () => lost(c, new Error('connection ended')))
    c.on('notification', (n) => options.onNotification(n.channel as NotificationChannel, n.payload ?? ''))
    c.connect()
      .then(() =>
        c.query(options.channels.map((channel) => `LISTEN ${c.escapeIdentifier(channel)}`).join(';')),
      )
      .then(() => {
        delayMs = 250
        options.onConnected?.()
      })
      .catch((error: Error) => lost(c, error))
  }
  connect()

  return {
    async close() {
      closed = true
      clearTimeout(retry)
      const c = client
      client = undefined
      await c?.end().catch(() => {})
    },
  }
}
