import { type Refusal, RegistryRefusal, Spoiled } from '../oci/errors.ts'

/**
 * Where a turn at an upload can end. `docs/design/uploads.md` describes the states and shows this table; a generated test
 * walks every cell of it.
 *
 * - `opening`: the turn is taken, and nothing is written yet.
 * - `appending`: the body of a PATCH arrives.
 * - `recording`: what the PATCH brought is made durable and recorded.
 * - `closing`: the body of a closing PUT arrives, the object is completed, and its digest is checked.
 * - `committing`: one transaction turns the session into a blob.
 * - `single`: a POST with `?digest=` does all of it in one request; nobody else knows its session.
 */
export type TurnState = 'opening' | 'appending' | 'recording' | 'closing' | 'committing' | 'single'

/**
 * - `done`: the step succeeded.
 * - `cut`: the body ended early or was too slow, or the disk has no room for the next chunk. What came before is sound.
 * - `refused`: the request is refused for any other reason, such as its order, its length or a read-only registry.
 * - `store failed`: a store or the metadata failed, and may succeed later.
 * - `spoiled`: the blob store says that the object can never become whole.
 * - `digest differs`: the bytes do not have the digest that the request names.
 * - `turn lost`: another writer has the turn, or the session is gone.
 */
export type TurnEvent = 'done' | 'cut' | 'refused' | 'store failed' | 'spoiled' | 'digest differs' | 'turn lost'

export interface Ending {
  /**
   * `grown`: open with the new size; `blob`: finished; `as before`: open with the size before the turn; `removed`: gone;
   * `untouched`: this writer may not change it.
   */
  readonly session: 'grown' | 'blob' | 'as before' | 'removed' | 'untouched'
  /** What happens to the bytes of this turn. `removed`: with all other bytes of the session, through the trash. */
  readonly bytes: 'kept' | 'dropped' | 'removed' | 'untouched'
  /** What the caller hears: success, the first fault of the request, or another error in its place. */
  readonly answer: 'success' | 'fault' | 'upload-unknown' | 'unavailable'
}

const grown: Ending = { session: 'grown', bytes: 'kept', answer: 'success' }
const grownAndTold: Ending = { session: 'grown', bytes: 'kept', answer: 'fault' }
const becomesBlob: Ending = { session: 'blob', bytes: 'kept', answer: 'success' }
const asBefore: Ending = { session: 'as before', bytes: 'dropped', answer: 'fault' }
const removed: Ending = { session: 'removed', bytes: 'removed', answer: 'fault' }
const over: Ending = { session: 'removed', bytes: 'removed', answer: 'upload-unknown' }
const lost: Ending = { session: 'untouched', bytes: 'untouched', answer: 'upload-unknown' }

/** From (state, event) to (session, bytes, answer). A cell that is not here cannot happen. */
export const endings: Readonly<Record<TurnState, Readonly<Partial<Record<TurnEvent, Ending>>>>> = {
  opening: { refused: asBefore, 'store failed': asBefore, spoiled: over },
  appending: {
    cut: grownAndTold,
    refused: asBefore,
    'store failed': asBefore,
    spoiled: over,
    'turn lost': lost,
  },
  recording: { done: grown, 'store failed': asBefore, spoiled: over, 'turn lost': lost },
  closing: {
    cut: asBefore,
    refused: asBefore,
    'store failed': asBefore,
    spoiled: over,
    'digest differs': removed,
    'turn lost': lost,
  },
  committing: { done: becomesBlob, refused: asBefore, 'store failed': asBefore, 'turn lost': lost },
  single: {
    done: becomesBlob,
    cut: removed,
    refused: removed,
    'store failed': removed,
    spoiled: { ...removed, answer: 'unavailable' },
    'digest differs': removed,
    'turn lost': lost,
  },
}

/** A fault that the table does not expect in this state is treated as trouble of a store. */
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
