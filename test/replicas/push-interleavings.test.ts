// Manifests, tags and accounts that are changed on two replicas at the same moment, forced by holding one of them.
import { describe, expect } from 'bun:test'
import { digestOf } from '../support/basics/generated-bytes.ts'
import {
  ask,
  checkBlob,
  expectStatus,
  finish,
  jsonOf,
  manifestOfBlobs,
  openSession,
  pushBlob,
  putManifest,
} from '../support/clients/registry-client.ts'
import { type GatedReplica, type Step, useGatedPair } from '../support/replicas/gated-replica.ts'
import { growBlob } from '../support/replicas/shared-stores.ts'

const encode = (text: string) => new TextEncoder().encode(text)
const config = encode('{}')
const imageType = 'application/vnd.oci.image.manifest.v1+json'
const [points, removesTag, removesTags] = ['after tags.point', 'after tags.remove', 'after tags.removeAllOf'] as const
let serial = 0
const { pair, race } = useGatedPair()

async function freshRepository(): Promise<string> {
  serial += 1
  await pushBlob(pair.a, `pushes/${serial}`, config)
  return `pushes/${serial}`
}

const image = (note: string) => manifestOfBlobs(config, [], note)

function referrerTo(subject: Uint8Array): Uint8Array {
  const manifest = JSON.parse(new TextDecoder().decode(image('a referrer')))
  const descriptor = { mediaType: imageType, digest: digestOf(subject), size: subject.length }
  return encode(JSON.stringify({ ...manifest, subject: descriptor }))
}

const remove = (replica: GatedReplica, repository: string, reference: string) =>
  ask(replica, 'DELETE', `/v2/${repository}/manifests/${reference}`)

async function atBoth<T>(look: (replica: GatedReplica) => Promise<T>): Promise<T> {
  const [atA, atB] = [await look(pair.a), await look(pair.b)]
  expect(atA).toEqual(atB)
  return atB
}

/** The digest of what is served, or the status. */
function at(repository: string, reference: string): Promise<string> {
  return atBoth(async (replica) => {
    const answer = await ask(replica, 'GET', `/v2/${repository}/manifests/${reference}`)
    const bytes = await answer.bytes()
    return answer.status === 200 ? digestOf(bytes) : String(answer.status)
  })
}

function tagsOf(repository: string): Promise<string[]> {
  return atBoth(async (replica) => {
    const { tags } = await jsonOf<{ tags: string[] }>(ask(replica, 'GET', `/v2/${repository}/tags/list`))
    return tags
  })
}

function referrersOf(repository: string, subject: Uint8Array): Promise<string[]> {
  return atBoth(async (replica) => {
    const asked = ask(replica, 'GET', `/v2/${repository}/referrers/${digestOf(subject)}`)
    return (await jsonOf<{ manifests: { digest: string }[] }>(asked)).manifests.map(({ digest }) => digest)
  })
}

describe('I13: one manifest is deleted while another is pushed that shares its layer', () => {
  const orders = ['the deletion is under way', 'the push is under way'] as const
  for (const order of orders) {
    race(`${order}: the other waits for its end, and the one that stays is complete`, async () => {
      const repository = await freshRepository()
      const layer = encode(`shared ${serial}`)
      const digest = await pushBlob(pair.a, repository, layer)
      const [first, second] = ['first', 'second'].map((note) => manifestOfBlobs(config, [layer], note))
      if (first === undefined || second === undefined) throw new Error('no manifests')
      await expectStatus(201, putManifest(pair.a, repository, 'first', first))
      const deletion = () => remove(pair.a, repository, digestOf(first))
      const push = () => putManifest(pair.b, repository, 'second', second)
      if (order === orders[0]) {
        const goOn = await pair.a.holdDuring('after manifests.remove', deletion)
        const pushed = push()
        expect((await goOn()).status).toBe(202)
        expect((await pushed).status).toBe(201)
      } else {
        const goOn = await pair.b.holdDuring('after manifests.saveEntries', push)
        const deleted = deletion()
        expect((await goOn()).status).toBe(201)
        expect((await deleted).status).toBe(202)
      }

      await growBlob(pair.stores, digest)
      await pair.b.collect()

      expect([await at(repository, 'first'), await at(repository, 'second')]).toEqual(['404', digestOf(second)])
      expect(await checkBlob(pair.a, repository, digest)).toBe('whole')
    })
  }
})

describe('the tag `it` shows `one`, a request is under way on one replica, and a request on the other waits for it', () => {
  type Change = (replica: GatedReplica, repository: string) => Promise<Response>
  const put =
    (tag: string, note: string): Change =>
    (replica, repository) =>
      putManifest(replica, repository, tag, image(note))
  const drop =
    (reference: string): Change =>
    (replica, repository) =>
      remove(replica, repository, reference)
  const notes = ['one', 'two', 'three']
  const noteOf = (digest: string) => notes.find((note) => digestOf(image(note)) === digest) ?? digest
  /** The tags with what they show, and all manifests: `it=one; one two`. */
  async function stateOf(repository: string): Promise<string> {
    const tags: string[] = []
    const manifests: string[] = []
    for (const tag of await tagsOf(repository)) tags.push(`${tag}=${noteOf(await at(repository, tag))}`)
    for (const note of notes) if ((await at(repository, digestOf(image(note)))) !== '404') manifests.push(note)
    return `${tags.join(' ')}; ${manifests.join(' ')}`
  }

  const one = digestOf(image('one'))
  const rows: readonly (readonly [string, Step, first: Change, second: Change, statuses: string, state: string])[] = [
    [
      'I14: a put stores a deleted manifest again',
      removesTags,
      drop(one),
      put('new', 'one'),
      '202 201',
      'new=one; one',
    ],
    ['I14: a deletion by digest takes the new tag too', points, put('new', 'one'), drop(one), '201 202', '; '],
    ['I15: the second put wins', points, put('it', 'two'), put('it', 'three'), '201 201', 'it=three; one two three'],
    [
      'I16: a put follows the deletion of the tag',
      removesTag,
      drop('it'),
      put('it', 'two'),
      '202 201',
      'it=two; one two',
    ],
    ['I16: the deletion of the tag follows a put', points, put('it', 'two'), drop('it'), '201 202', '; one two'],
  ]
  for (const [title, step, first, second, statuses, state] of rows) {
    race(title, async () => {
      const repository = await freshRepository()
      await expectStatus(201, putManifest(pair.a, repository, 'it', image('one')))
      const goOn = await pair.a.holdDuring(step, () => first(pair.a, repository))

      const waiting = second(pair.b, repository)
      await pair.somebodyWaits()
      // Readers do not wait, and see what was there before.
      expect(await stateOf(repository)).toBe('it=one; one')

      expect(`${(await goOn()).status} ${(await waiting).status}`).toBe(statuses)
      expect(await stateOf(repository)).toBe(state)
    })
  }
})

describe('I19: the list of referrers names what can be pulled', () => {
  race('while a referrer comes and while it goes', async () => {
    const repository = await freshRepository()
    const subject = image('subject')
    const referrer = referrerTo(subject)
    const digest = digestOf(referrer)
    const coming = await pair.a.holdDuring('after manifests.save', () =>
      putManifest(pair.a, repository, digest, referrer),
    )
    expect([await referrersOf(repository, subject), await at(repository, digest)]).toEqual([[], '404'])
    expect((await coming()).status).toBe(201)
    expect([await referrersOf(repository, subject), await at(repository, digest)]).toEqual([[digest], digest])

    const going = await pair.b.holdDuring('after manifests.remove', () => remove(pair.b, repository, digest))
    expect([await referrersOf(repository, subject), await at(repository, digest)]).toEqual([[digest], digest])
    expect((await going()).status).toBe(202)
    expect([await referrersOf(repository, subject), await at(repository, digest)]).toEqual([[], '404'])
  })

  race('while the subject comes and goes behind it', async () => {
    const repository = await freshRepository()
    const subject = image('subject')
    const digest = digestOf(referrerTo(subject))
    await expectStatus(201, putManifest(pair.a, repository, digest, referrerTo(subject)))
    const coming = await pair.b.holdDuring('after manifests.save', () => putManifest(pair.b, repository, 'it', subject))
    expect(await referrersOf(repository, subject)).toEqual([digest])
    expect((await coming()).status).toBe(201)
    const going = await pair.a.holdDuring('after manifests.remove', () => remove(pair.a, repository, digestOf(subject)))
    expect(await referrersOf(repository, subject)).toEqual([digest])
    expect((await going()).status).toBe(202)
    expect(await referrersOf(repository, subject)).toEqual([digest])
  })
})

describe('I31: an account is disabled on one replica while a push is under way on the other', () => {
  const turn = (verb: 'enable' | 'disable') => ask(pair.a, 'POST', `/api/2023-12-28/${verb}`)

  race('a manifest whose transaction has seen it enabled: disable waits for it', async () => {
    const repository = await freshRepository()
    const goOn = await pair.b.holdDuring('after accounts.findLocked', () =>
      putManifest(pair.b, repository, 'it', image('in')),
    )

    const disabling = turn('disable')
    await pair.somebodyWaits()

    expect([(await goOn()).status, (await disabling).status]).toEqual([201, 200])
    expect(await at(repository, 'it')).toBe('403')
    await expectStatus(200, turn('enable'))
    expect(await at(repository, 'it')).toBe(digestOf(image('in')))
  })

  race('a manifest whose transaction has not begun: it is refused, and never appears', async () => {
    const repository = await freshRepository()
    const goOn = await pair.b.holdDuring('before transaction', () =>
      putManifest(pair.b, repository, 'it', image('out')),
    )

    await expectStatus(200, turn('disable'))

    expect((await goOn()).status).toBe(403)
    await expectStatus(200, turn('enable'))
    expect(await at(repository, 'it')).toBe('404')
  })

  race('a blob that is being uploaded: it is stored, cannot be pulled, and can be after enable', async () => {
    const repository = await freshRepository()
    const bytes = encode(`on its way ${serial}`)
    const session = await openSession(pair.b, repository)
    const goOn = await pair.b.holdDuring('before transaction', () => finish(pair.b, session, digestOf(bytes), bytes))

    await expectStatus(200, turn('disable'))

    expect((await goOn()).status).toBe(201)
    expect(await checkBlob(pair.a, repository, digestOf(bytes))).toBe('status 403')
    await expectStatus(200, turn('enable'))
    expect(await checkBlob(pair.a, repository, digestOf(bytes))).toBe('whole')
  })
})
