/** Calls that one request to a console or to an agent may hold; their clients ask for more in several. */
export const CALLS_AT_ONCE_MAX = 20
