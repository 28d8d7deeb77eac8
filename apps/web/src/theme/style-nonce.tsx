'use client'
import { setNonce } from 'get-nonce'

/** Dialogs lock the page's scrolling with a style element of their own; it needs the page's nonce to be let in. */
export function StyleNonce({ nonce }: { nonce: string | undefined }) {
  if (nonce && typeof window !== 'undefined') setNonce(nonce)
  return null
}
