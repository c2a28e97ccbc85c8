// Transfers big bodies with curl, which uses little CPU time and runs outside the measured server.
type Headers = Readonly<Record<string, string>>

/** Downloads and discards the body. */
async function download(url: string, headers: Headers, sizeBytes: number): Promise<void> {
  const report = await run([...headerArguments(headers), '-w', '%{http_code} %{size_download}', url])
  if (report !== `200 ${sizeBytes}`) throw new Error(`GET ${url}: "${report}" instead of "200 ${sizeBytes}"`)
}

/** Sends the file as the body of the request. Returns the `Location` of the response, or an empty string. */
async function upload(method: 'PUT' | 'PATCH', url: string, headers: Headers, path: string): Promise<string> {
  // Without `Expect:`, curl would wait for 100-continue, which only some of the contestants send.
  const sent = { ...headers, 'Content-Type': 'application/octet-stream', Expect: '' }
  const report = await run([
    ...headerArguments(sent),
    '-X',
    method,
    '-T',
    path,
    '-w',
    '%{http_code} %header{location}',
    url,
  ])
  const [status = '', location = ''] = report.split(' ')
  if (status !== (method === 'PUT' ? '201' : '202')) throw new Error(`${method} ${url}: status ${status}`)
  return location
}

export const curl = { download, upload }

async function run(args: readonly string[]): Promise<string> {
  const child = Bun.spawn(['curl', '--silent', '--show-error', '--http1.1', '-o', '/dev/null', ...args], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [printed, complaint, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (code !== 0) throw new Error(`curl ended with ${code}: ${complaint}`)
  return printed
}

function headerArguments(headers: Headers): string[] {
  // For curl, a name with nothing after the colon means that this header is not sent.
  return Object.entries(headers).flatMap(([name, value]) => ['-H', value === '' ? `${name}:` : `${name}: ${value}`])
}
