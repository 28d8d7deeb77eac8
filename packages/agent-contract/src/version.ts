/**
 * Version of the agent's contract, `major.minor`. Minor grows with every release that adds something; major would
 * mean that something was taken away, which a console must refuse. The golden file beside the test holds every schema.
 */
export const contractVersion = '1.29'
