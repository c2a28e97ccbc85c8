import { type Refusal, RegistryRefusal, Spoiled } from '../oci/errors.ts'

/**
 * The states in which a turn can end. `docs/design/uploads.md` explains them and shows the table below. A generated
 * test provokes every cell.
 *
 * - `opening`: the turn is claimed, and the object is opened for writing.
 * - `appending`: the body of a PATCH arrives.
 * - `recording`: the received bytes are made durable, and the new size is recorded.
 * - `closing`: the body of a closing PUT arrives, the object is completed, and its digest is verified.
 * - `committing`: one transaction turns the session into a blob.
 * - `single`: a POST with `?digest=` does all of this. No other request knows its session.
 */
export type TurnState = 'opening' | 'appending' | 'recording' | 'closing' | 'committing' | 'single'

/**
 * - `done`: the step succeeded.
 * - `cut`: the body ended early or was too slow, or the disk has no room for the next bytes. The earlier bytes are
 *   sound.
 * - `refused`: the request is refused for another reason.
 * - `store failed`: a store failed, and may succeed later.
 * - `spoiled`: the blob store says that the object can never become complete.
 * - `digest differs`: the bytes do not have the digest that the request names.
 * - `turn lost`: another writer has the turn, or the session is gone.
 */
export type TurnEvent = 'done' | 'cut' | 'refused' | 'store failed' | 'spoiled' | 'digest differs' | 'turn lost'

export interface Ending {
  /**
   * `grown`: open with the new size. `blob`: committed. `as before`: open with the size before the turn. `removed`:
   * gone. `untouched`: this writer must not change it.
   */
  readonly session: 'grown' | 'blob' | 'as before' | 'removed' | 'untouched'
  /** The bytes of this turn. `removed`: they go to the trash with all other bytes of the session. */
  readonly bytes: 'kept' | 'dropped' | 'removed' | 'untouched'
  /** The response: success, the first fault of the request, or another error in place of that fault. */
  readonly answer: 'success' | 'fault' | 'upload-unknown' | 'unavailable'
}

const grown: Ending = { session: 'grown', bytes: 'kept', answer: 'success' }
const grownWithFault: Ending = { session: 'grown', bytes: 'kept', answer: 'fault' }
const committed: Ending = { session: 'blob', bytes: 'kept', answer: 'success' }
const asBefore: Ending = { session: 'as before', bytes: 'dropped', answer: 'fault' }
const removed: Ending = { session: 'removed', bytes: 'removed', answer: 'fault' }
const gone: Ending = { session: 'removed', bytes: 'removed', answer: 'upload-unknown' }
const lost: Ending = { session: 'untouched', bytes: 'untouched', answer: 'upload-unknown' }

/** From (state, event) to (session, bytes, answer). A fault that is not here is treated as `store failed`. */
export const endings: Readonly<Record<TurnState, Readonly<Partial<Record<TurnEvent, Ending>>>>> = {
  opening: { refused: asBefore, 'store failed': asBefore, spoiled: gone },
  appending: {
    cut: grownWithFault,
    refused: asBefore,
    'store failed': asBefore,
    spoiled: gone,
    'turn lost': lost,
  },
  recording: { done: grown, 'store failed': asBefore, spoiled: gone, 'turn lost': lost },
  closing: {
    cut: asBefore,
    refused: asBefore,
    'store failed': asBefore,
    spoiled: gone,
    'digest differs': removed,
    'turn lost': lost,
  },
  committing: { done: committed, refused: asBefore, 'store failed': asBefore, 'turn lost': lost },
  single: {
    done: committed,
    cut: removed,
    refused: removed,
    'store failed': removed,
    spoiled: { ...removed, answer: 'unavailable' },
    'digest differs': removed,
    'turn lost': lost,
  },
}

export function endingOf(state: TurnState, event: TurnEvent): Ending {
  return endings[state][event] ?? endings[state]['store failed'] ?? asBefore
}

const eventsOfRefusals: Readonly<Partial<Record<Refusal, TurnEvent>>> = {
  'body-incomplete': 'cut',
  'body-too-slow': 'cut',
  'disk-low': 'cut',
  'digest-mismatch': 'digest differs',
  'upload-unknown': 'turn lost',
}

export function eventOf(fault: unknown): TurnEvent {
  if (fault instanceof RegistryRefusal) return eventsOfRefusals[fault.refusal] ?? 'refused'
  return fault instanceof Spoiled ? 'spoiled' : 'store failed'
}
