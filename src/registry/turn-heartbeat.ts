import { RegistryRefusal } from '../oci/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { Upload } from '../ports/uploads.ts'

interface Needs {
  readonly metadata: Pick<MetadataStore, 'uploads'>
  readonly clock: Pick<Clock, 'every'>
}

/** How long a turn lasts, by the clock of the metadata store. The heartbeat renews it every ten seconds. */
export const turnMs = 30_000

/** Renews a turn at an upload until it is stopped, and finds out if another writer has the turn. */
export class TurnHeartbeat {
  readonly #needs: Needs
  readonly #upload: Upload
  readonly #onLoss: (loss: RegistryRefusal) => void
  readonly #timer: Disposable
  #renewal: Promise<void> | undefined
  #isLost = false

  /** `onLoss` is called when the turn is found lost, to end the request early. */
  constructor(needs: Needs, upload: Upload, onLoss: (loss: RegistryRefusal) => void) {
    this.#needs = needs
    this.#upload = upload
    this.#onLoss = onLoss
    this.#timer = needs.clock.every(turnMs / 3, () => this.#beat())
  }

  checkNotLost(): void {
    if (!this.#isLost) return
    const reason = 'another request goes on with the upload'
    throw new RegistryRefusal('upload-unknown', { id: this.#upload.id, reason })
  }

  /** Waits for a renewal that runs, because it must not renew the turn after its release. */
  async stop(): Promise<void> {
    this.#timer[Symbol.dispose]()
    await this.#renewal
  }

  #beat(): void {
    this.#renewal ??= this.#renew().finally(() => {
      this.#renewal = undefined
    })
  }

  /** If the metadata store fails, the next beat tries again. */
  async #renew(): Promise<void> {
    const isRenewed = await this.#needs.metadata.uploads.renewTurn(this.#upload, turnMs).catch(() => true)
    if (isRenewed) return
    this.#isLost = true
    this.#onLoss(new RegistryRefusal('upload-unknown', { id: this.#upload.id }))
  }
}
