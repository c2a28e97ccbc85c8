export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string | undefined
  /** Undefined: they do not end. */
  readonly expiresAt: number | undefined
}

/** Where the client has its credentials from. */
export interface CredentialSource {
  /** Those that are good now; where there are none yet, they are fetched behind the caller's back. */
  current(): S3Credentials | undefined
  /** Those that are good now, waited for where that is needed. */
  get(): Promise<S3Credentials>
  /** S3 takes these no more. Tells whether there are others now. */
  renew(refused: S3Credentials): Promise<boolean>
}

/** A key that stands in the settings. */
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
/** New ones are fetched so long before the end, or in the last quarter of a shorter life. */
const aheadMs = 10 * minuteMs
/** What comes with its end behind it is used all the same: the service that gives it knows better than our clock. */
const lifeMinMs = 5 * minuteMs
/** Between two questions while what we have is still good, or after S3 refused what it had just been given. */
const pauseMs = 10_000
/** Between two questions while we have nothing. */
const failurePauseMs = 1_000

/**
 * Credentials that end. They are renewed ahead of their end and while they are used, so that nobody waits; what is good
 * stays in use while the service that gives them is down; and however many ask, one question is under way.
 */
export class RenewedCredentials implements CredentialSource {
  readonly #fetch: () => Promise<S3Credentials>
  readonly #now: () => number
  #known: { readonly credentials: S3Credentials; readonly renewAt: number; readonly endsAt: number } | undefined
  #running: Promise<S3Credentials> | undefined
  #askedAt = Number.NEGATIVE_INFINITY
  #failure: unknown

  constructor(fetch: () => Promise<S3Credentials>, now: () => number = Date.now) {
    this.#fetch = fetch
    this.#now = now
  }

  current(): S3Credentials | undefined {
    const now = this.#now()
    const known = this.#known
    const isGood = known !== undefined && now < known.endsAt
    if ((!isGood || now >= known.renewAt) && this.#mayAsk(isGood ? pauseMs : failurePauseMs)) {
      // Whoever needs them waits in `get`, and learns there why there are none.
      this.#ask().catch(() => undefined)
    }
    return isGood ? known.credentials : undefined
  }

  async get(): Promise<S3Credentials> {
    const known = this.current()
    if (known !== undefined) return known
    if (this.#running !== undefined) return this.#running
    throw this.#failure
  }

  async renew(refused: S3Credentials): Promise<boolean> {
    if (this.#known?.credentials === refused && this.#mayAsk(pauseMs)) await this.#ask()
    else await this.#running
    return this.#known !== undefined && !isSame(this.#known.credentials, refused)
  }

  #mayAsk(pause: number): boolean {
    // By its distance: a clock that was set back must not silence us.
    return this.#running === undefined && Math.abs(this.#now() - this.#askedAt) >= pause
  }

  #ask(): Promise<S3Credentials> {
    this.#askedAt = this.#now()
    this.#running = this.#fetchAndKeep().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #fetchAndKeep(): Promise<S3Credentials> {
    try {
      const credentials = await this.#fetch()
      const now = this.#now()
      const endsAt = Math.max(credentials.expiresAt ?? Number.POSITIVE_INFINITY, now + lifeMinMs)
      this.#known = { credentials, endsAt, renewAt: endsAt - Math.min(aheadMs, (endsAt - now) / 4) }
      return credentials
    } catch (error) {
      this.#failure = error
      throw error
    }
  }
}

function isSame(a: S3Credentials, b: S3Credentials): boolean {
  return a.accessKeyId === b.accessKeyId && a.sessionToken === b.sessionToken
}
