/** A digest of what was built, filled in by build.mjs; nothing is built where tests run the sources. */
declare const FLOE_AGENT_BUILD: string | undefined

const release = '0.1.0'

/** Version of the agent, different for any two builds that differ. A package's version names its whole content: `installed-packages.ts`. */
export const agentVersion = `${release}+${typeof FLOE_AGENT_BUILD === 'undefined' ? 'unbuilt' : FLOE_AGENT_BUILD}`
