/** Values as the files of systemd's units want them: what systemd would replace, or end a value at, is only a character. */

const quoted = (text: string) => `"${text.replace(/[\\"]/g, '\\$&').replaceAll('%', '%%')}"`

/** A word of a command, as of ExecStart=. */
export const unitWord = (text: string): string => quoted(text).replaceAll('$', '$$$$')

/** One of a list, as of RequiresMountsFor= and Environment=, where systemd replaces no variables. */
export const unitItem = (text: string): string => quoted(text)

/** A value that is all of its line, as of WorkingDirectory= and Description=. Refuses what no line can hold. */
export function unitLine(text: string): string {
  if (/[\n\r\0]|\\$|^\s|\s$/.test(text)) throw new Error(`no line of a unit can hold ${JSON.stringify(text)}`)
  return text.replaceAll('%', '%%')
}
