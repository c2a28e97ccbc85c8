import type { S3Credentials } from './credential-source.ts'
import { codeIn, S3Fault, timeOf } from './s3-fault.ts'
import { childrenOf, parseXml, textOf } from './s3-xml.ts'

const timeoutMs = 5_000
const triesMax = 3
const pauseMs = 200
const bytesMax = 64 * 1024
const tokenBytesMax = 64 * 1024

/** The machine's own role: instance metadata, version 2 (a token first, so that no open proxy can be made to ask). */
export async function askInstance(endpoint = 'http://169.254.169.254'): Promise<S3Credentials> {
  const base = endpoint.replace(/\/+$/, '')
  const token = await ask(`${base}/latest/api/token`, {
    method: 'PUT',
    headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '300' },
    proxy: false,
  })
  const headers = { 'x-aws-ec2-metadata-token': oneLine(token) }
  const roles = `${base}/latest/meta-data/iam/security-credentials/`
  const role = (await ask(roles, { headers, proxy: false })).split('\n')[0]?.trim() ?? ''
  if (!/^[\w+=,.@-]{1,128}$/.test(role)) throw fault('the instance has no role')
  return readJson(await ask(roles + role, { headers, proxy: false }))
}

/** What a container shows when it asks, if anything: a token, or better the file of one, which is read each time. */
interface ContainerToken {
  readonly token?: string | undefined
  readonly tokenFile?: string | undefined
}

/** The role of a container: its platform tells where to ask, and what to show there. */
export async function askContainer(uri: string, { token, tokenFile }: ContainerToken): Promise<S3Credentials> {
  if (!isCredentialsAddress(uri)) {
    throw fault('the address for a container must be https, the loopback or the platform itself')
  }
  const text = tokenFile === undefined ? token : await readToken(tokenFile)
  // It is the whole header: it may name its scheme.
  const headers: Record<string, string> = text === undefined ? {} : { authorization: oneLine(text, /^[\x20-\x7e]+$/) }
  return readJson(await ask(uri, { headers, proxy: false }))
}

interface WebIdentity {
  readonly stsEndpoint: string
  readonly roleArn: string
  /** Read again each time: the platform replaces it. */
  readonly tokenFile: string
}

/** A role for a token that the platform signed: AssumeRoleWithWebIdentity, which needs no other credentials. */
export async function askForWebIdentity({ stsEndpoint, roleArn, tokenFile }: WebIdentity): Promise<S3Credentials> {
  const body = new URLSearchParams({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: roleArn,
    RoleSessionName: 'berth',
    WebIdentityToken: oneLine(await readToken(tokenFile)),
  })
  const text = await ask(`${stsEndpoint.replace(/\/+$/, '')}/`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/xml' },
    body: body.toString(),
  })
  return readXml(text)
}

/** A token must not travel in the clear to anywhere but this machine and the fixed addresses of the platforms. */
export function isCredentialsAddress(uri: string): boolean {
  const url = URL.parse(uri)
  if (url?.username !== '' || url.password !== '' || uri.includes('#')) return false
  if (url.protocol === 'https:') return true
  const near = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\]|169\.254\.170\.(?:2|23)|\[fd00:ec2::23\])$/
  return url.protocol === 'http:' && near.test(url.hostname)
}

async function readToken(path: string): Promise<string> {
  try {
    return await Bun.file(path).slice(0, tokenBytesMax).text()
  } catch (cause) {
    throw fault('the token file cannot be read', cause)
  }
}

function oneLine(text: string, allowed = /^[\x21-\x7e]+$/): string {
  const line = text.trim()
  if (!allowed.test(line)) throw fault('the token is not one line of text')
  return line
}

function fault(words: string, cause?: unknown): S3Fault {
  return new S3Fault('asking for credentials', { code: 'no-credentials', words, cause })
}

/** Words of ours alone in what it throws: these answers are secrets, and so are some of the questions. */
async function ask(url: string, init: BunFetchRequestInit): Promise<string> {
  for (let tries = 1; ; tries += 1) {
    const answer = await askOnce(url, init)
    if (answer.text !== undefined) return answer.text
    if (!answer.isTransient || tries === triesMax) throw fault(answer.words)
    await Bun.sleep(pauseMs * tries)
  }
}

interface Asked {
  readonly text: string | undefined
  readonly words: string
  readonly isTransient: boolean
}

async function askOnce(url: string, init: BunFetchRequestInit): Promise<Asked> {
  const signal = AbortSignal.timeout(timeoutMs)
  try {
    const response = await fetch(url, { ...init, redirect: 'manual', signal })
    const text = await readBounded(response)
    const code = response.status === 200 ? undefined : codeIn(text)
    const words = `the service answered ${response.status}${code === undefined ? '' : ` ${code}`}`
    const isTransient = response.status >= 500 || response.status === 429
    return { text: response.status === 200 ? text : undefined, words, isTransient }
  } catch (error) {
    if (error instanceof S3Fault) throw error
    return { text: undefined, words: `no answer (${nameOf(error)})`, isTransient: true }
  }
}

async function readBounded({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.length
    if (length > bytesMax) throw fault(`an answer of more than ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

function readJson(text: string): S3Credentials {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw fault('an answer that is not JSON')
  }
  const field = (name: string): string | undefined => {
    const found: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
    return typeof found === 'string' ? found : undefined
  }
  return complete(field('AccessKeyId'), field('SecretAccessKey'), field('Token'), field('Expiration'))
}

function readXml(text: string): S3Credentials {
  try {
    const [result] = childrenOf(parseXml(text), 'AssumeRoleWithWebIdentityResult')
    const [found] = result === undefined ? [] : childrenOf(result, 'Credentials')
    const field = (name: string) => found && textOf(found, name)
    return complete(field('AccessKeyId'), field('SecretAccessKey'), field('SessionToken'), field('Expiration'))
  } catch (error) {
    throw error instanceof S3Fault ? error : fault('an answer that is not XML')
  }
}

function complete(id?: string, secret?: string, token?: string, end?: string): S3Credentials {
  if (id === undefined || id === '' || secret === undefined || secret === '') {
    throw fault('an answer without credentials')
  }
  return { accessKeyId: id, secretAccessKey: secret, sessionToken: token, expiresAt: timeOf(end) }
}
