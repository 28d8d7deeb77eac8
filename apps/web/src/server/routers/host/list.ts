import { listEnrolments, listHosts } from '@floe/db'
import { viewerProcedure } from '../../procedures'
import { HostList } from './host.types'
import { enrolmentSummary, hostSummary } from './host.views'

/** All hosts by name, as last observed, and the tokens that were given out. */
export const list = viewerProcedure.output(HostList).query(async ({ ctx }) => {
  const { database, files } = ctx.ports
  const [hosts, enrolments] = await Promise.all([listHosts(database.pool), listEnrolments(database.pool)])
  return {
    hosts: hosts.map((host) => hostSummary(host, files.installation.hostId)),
    enrolments: enrolments.map(enrolmentSummary),
    now: Date.now(),
  }
})
