import type { CredentialSource } from './request-sender.ts'
import type { S3Credentials } from './signature-v4.ts'

/** The settings about credentials. */
export interface CredentialSettings {
  readonly s3Region: string
  readonly s3AccessKey: string | undefined
  readonly s3SecretKey: string | undefined
  readonly s3SessionToken: string | undefined
  readonly s3RoleArn: string | undefined
  readonly s3TokenFile: string | undefined
  readonly s3StsEndpoint: string | undefined
  readonly s3CredentialsPath: string | undefined
  readonly s3CredentialsUri: string | undefined
  readonly s3CredentialsToken: string | undefined
  readonly s3CredentialsTokenFile: string | undefined
}

/** The first source that is configured: a fixed key, a web identity, a container, or else the instance. */
export function chooseCredentials(settings: CredentialSettings): CredentialSource {
  const { s3AccessKey: id, s3SecretKey: secret, s3RoleArn: roleArn, s3TokenFile: tokenFile } = settings
  if (id !== undefined && secret !== undefined) return new FixedCredentials(id, secret, settings.s3SessionToken)
  if (id !== undefined || secret !== undefined) throw new Error('an S3 access key needs its id and its secret')
  if (roleArn !== undefined && tokenFile !== undefined) {
    return new RenewedCredentials(() => fetchForWebIdentity(settings, roleArn, tokenFile))
  }
  const { s3CredentialsPath: path, s3CredentialsUri: uri } = settings
  const hasContainer = path !== undefined || uri !== undefined
  return new RenewedCredentials(hasContainer ? () => fetchForContainer(settings) : fetchForInstance)
}

// The providers of AWS are loaded when the first credentials are fetched: most installations use a fixed key, and need
// neither their memory nor the time to load them.

const attemptMs = 5_000
const attemptsMax = 3
const fetchMaxMs = 30_000

/** What the providers of AWS resolve with. */
interface ProvidedCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  readonly expiration?: Date
}

function fetchForWebIdentity(
  { s3Region: region, s3StsEndpoint: endpoint }: CredentialSettings,
  roleArn: string,
  tokenFile: string,
): Promise<S3Credentials> {
  return fetchFrom('the token service (STS)', async () => {
    const webIdentityToken = await readToken(tokenFile)
    const { fromWebToken } = await import('@aws-sdk/credential-provider-web-identity')
    const timeouts = { connectionTimeout: attemptMs, requestTimeout: attemptMs, throwOnRequestTimeout: true }
    const clientConfig = { region, maxAttempts: attemptsMax, requestHandler: timeouts, ...(endpoint && { endpoint }) }
    return fromWebToken({ webIdentityToken, roleArn, roleSessionName: 'berth', clientConfig })()
  })
}

function fetchForContainer(settings: CredentialSettings): Promise<S3Credentials> {
  return fetchFrom('the credential endpoint of the container', async () => {
    const { s3CredentialsPath: path, s3CredentialsUri: uri, s3CredentialsTokenFile: tokenFile } = settings
    const token = tokenFile === undefined ? settings.s3CredentialsToken : await readToken(tokenFile)
    const { fromHttp } = await import('@aws-sdk/credential-provider-http')
    // An empty option is no value, but keeps the provider from reading the environment: settings have precedence.
    return fromHttp({
      awsContainerCredentialsRelativeUri: path ?? '',
      awsContainerCredentialsFullUri: path === undefined ? (uri ?? '') : '',
      awsContainerAuthorizationToken: token === undefined ? '' : checkToken(token),
      awsContainerAuthorizationTokenFile: '',
      timeout: attemptMs,
      maxRetries: attemptsMax - 1,
    })()
  })
}

function fetchForInstance(): Promise<S3Credentials> {
  return fetchFrom('the metadata service of the instance', async () => {
    const { fromInstanceMetadata } = await import('@smithy/credential-provider-imds')
    // Version 1 has no token, so any open proxy on the machine could be made to hand out the credentials.
    return fromInstanceMetadata({ timeout: attemptMs, maxRetries: attemptsMax - 1, ec2MetadataV1Disabled: true })()
  })
}

/** Messages of the providers are dropped: a response of these services, and so a message, may hold a secret. */
async function fetchFrom(service: string, fetch: () => Promise<ProvidedCredentials>): Promise<S3Credentials> {
  const timeout = Promise.withResolvers<never>()
  const timer = setTimeout(() => timeout.reject(new FetchError('timeout')), fetchMaxMs)
  try {
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = await Promise.race([fetch(), timeout.promise])
    if (!accessKeyId || !secretAccessKey) throw new FetchError('the response has no credentials')
    return { accessKeyId, secretAccessKey, sessionToken, expiresAt: expiration?.getTime() }
  } catch (error) {
    const reason = error instanceof FetchError ? error.message : reasonOf(error)
    throw new Error(`fetching S3 credentials from ${service} failed: ${reason}`)
  } finally {
    clearTimeout(timer)
  }
}

/** An error whose message is our own text. */
class FetchError extends Error {}

/** The name of an error, and where there is one the status of the response. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  const code: unknown = 'code' in error ? error.code : undefined
  const metadata: unknown = '$metadata' in error ? error.$metadata : error
  const status: unknown =
    typeof metadata === 'object' && metadata !== null
      ? (Reflect.get(metadata, 'httpStatusCode') ?? Reflect.get(metadata, 'statusCode'))
      : undefined
  const words = [error.name, code, status].filter((word) => word !== undefined && /^[\w.-]{1,64}$/.test(String(word)))
  return words.join(' ')
}

/** The platform replaces the file from time to time, so it is read for each request. */
async function readToken(path: string): Promise<string> {
  const text = await Bun.file(path)
    .text()
    .catch(() => {
      throw new FetchError('the token file cannot be read')
    })
  return checkToken(text)
}

function checkToken(text: string): string {
  const token = text.trim()
  if (!/^[\x20-\x7e]+$/.test(token)) throw new FetchError('the token is not one line of text')
  return token
}

/** A key that is written in the settings. */
export class FixedCredentials implements CredentialSource {
  readonly #credentials: S3Credentials

  constructor(accessKeyId: string, secretAccessKey: string, sessionToken: string | undefined) {
    this.#credentials = { accessKeyId, secretAccessKey, sessionToken, expiresAt: undefined }
  }

  current(): S3Credentials {
    return this.#credentials
  }

  async get(): Promise<S3Credentials> {
    return this.#credentials
  }

  async renew(): Promise<boolean> {
    return false
  }
}

const minuteMs = 60_000
/** Credentials are renewed this long before they expire, or in the last quarter of a shorter lifetime. */
const renewAheadMs = 10 * minuteMs
/** Credentials that seem to be expired when they arrive are used all the same: our clock may be wrong. */
const lifetimeMinMs = 5 * minuteMs
/** Between two fetches while the known credentials are valid, or after S3 rejected new ones. */
const renewPauseMs = 10_000
/** Between two fetches while there are no valid credentials. */
const failurePauseMs = 1_000

/**
 * Credentials that expire. They are renewed in the background before they expire, so that no request waits for them. While
 * their service is down, valid ones stay in use. There is one fetch at a time. The memoization of the AWS packages does
 * none of this: with it, a request waits for the renewal, and fails if that fails.
 */
export class RenewedCredentials implements CredentialSource {
  readonly #fetch: () => Promise<S3Credentials>
  readonly #now: () => number
  #known: { readonly credentials: S3Credentials; readonly renewAt: number; readonly endsAt: number } | undefined
  #fetching: Promise<S3Credentials> | undefined
  #fetchedAt = Number.NEGATIVE_INFINITY
  #error: unknown

  constructor(fetch: () => Promise<S3Credentials>, now: () => number = Date.now) {
    this.#fetch = fetch
    this.#now = now
  }

  current(): S3Credentials | undefined {
    const now = this.#now()
    const known = this.#known
    const isValid = known !== undefined && now < known.endsAt
    if ((!isValid || now >= known.renewAt) && this.#mayFetch(isValid ? renewPauseMs : failurePauseMs)) {
      // A caller that needs credentials waits in `get`, and gets the error there.
      this.#startFetch().catch(() => undefined)
    }
    return isValid ? known.credentials : undefined
  }

  async get(): Promise<S3Credentials> {
    const known = this.current()
    if (known !== undefined) return known
    if (this.#fetching !== undefined) return this.#fetching
    throw this.#error
  }

  async renew(rejected: S3Credentials): Promise<boolean> {
    if (this.#known?.credentials === rejected && this.#mayFetch(renewPauseMs)) await this.#startFetch()
    else await this.#fetching
    return this.#known !== undefined && !isSame(this.#known.credentials, rejected)
  }

  #mayFetch(pauseMs: number): boolean {
    // The absolute difference: if the clock is set back, fetching must not stop.
    return this.#fetching === undefined && Math.abs(this.#now() - this.#fetchedAt) >= pauseMs
  }

  #startFetch(): Promise<S3Credentials> {
    this.#fetchedAt = this.#now()
    this.#fetching = this.#fetchAndKeep().finally(() => {
      this.#fetching = undefined
    })
    return this.#fetching
  }

  async #fetchAndKeep(): Promise<S3Credentials> {
    try {
      const credentials = await this.#fetch()
      const now = this.#now()
      const endsAt = Math.max(credentials.expiresAt ?? Number.POSITIVE_INFINITY, now + lifetimeMinMs)
      this.#known = { credentials, endsAt, renewAt: endsAt - Math.min(renewAheadMs, (endsAt - now) / 4) }
      return credentials
    } catch (error) {
      this.#error = error
      throw error
    }
  }
}

function isSame(a: S3Credentials, b: S3Credentials): boolean {
  return a.accessKeyId === b.accessKeyId && a.sessionToken === b.sessionToken
}
