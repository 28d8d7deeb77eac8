// Addresses of pages that other rooms link to, where they carry a parameter.

/** In the address of a replication page: the member whose rejoin dialog opens with the page. */
export const REJOIN = 'rejoin'

/** Where a fenced member is rejoined. */
export const rejoinAddress = (instanceName: string) =>
  `/instances/${instanceName}/replication?${REJOIN}=${instanceName}`

/** The form for a new instance, filled with the input of a creation that failed. */
export const editAndTryAgain = (operationId: string) => `/instances/new?from=${operationId}`
