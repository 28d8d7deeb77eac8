/** In the address of a replication page: the member whose rejoin is asked about when the page opens. */
export const REJOIN = 'rejoin'

/** Where a fenced member is rejoined. */
export const rejoinAddress = (instanceName: string) =>
  `/instances/${instanceName}/replication?${REJOIN}=${instanceName}`
