/** A listener that has browsers keep to https, where the console is reached by it. */
export function keepingToHttps(webUrl, answer) {
  if (!webUrl.startsWith('https:')) return answer
  return (request, response) => {
    response.setHeader('strict-transport-security', 'max-age=31536000')
    return answer(request, response)
  }
}
