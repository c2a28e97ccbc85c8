/** One request to a webhook. */
export interface WebhookMessage {
  readonly url: string
  /** The same for every attempt, so that the receiver can recognise a repetition. */
  readonly id: string
  readonly contentType: string
  readonly body: string
  readonly secret: string
}

export type SendResult =
  | { readonly status: number; readonly retryAfterMs: number | undefined }
  /** The receiver gave no valid answer. The text tells what failed, for the owner of the webhook. */
  | { readonly failure: string }

/** Sends messages to addresses that callers have chosen. */
export interface WebhookSender {
  /**
   * Why no message can ever be sent to the URL. Undefined if it may be possible. It looks up no name, so `send` may still refuse
   * the address.
   */
  findFault(url: string): string | undefined

  /**
   * Sends a signed POST and returns what was answered. Never rejects. Takes a limited time. Connects to public addresses only,
   * except for networks that the operator has allowed, and follows no redirect.
   */
  send(message: WebhookMessage, signal: AbortSignal): Promise<SendResult>
}
