/** For clients that come from another host, which instances let in over TLS only; nobody vouches for the certificate. */
export const clientTls = { ssl: { rejectUnauthorized: false } }
