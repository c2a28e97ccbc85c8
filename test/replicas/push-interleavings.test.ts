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
import { type GatedReplica, useGatedPair } from '../support/replicas/gated-replica.ts'
import { growBlob } from '../support/replicas/shared-stores.ts'

const encode = (text: string) => new TextEncoder().encode(text)
const config = encode('{}')
const imageType = 'application/vnd.oci.image.manifest.v1+json'
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
    race(`${order}: neither waits for the other, and the one that stays is complete`, async () => {
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
        expect((await push()).status).toBe(201)
        expect((await goOn()).status).toBe(202)
      } else {
        const goOn = await pair.b.holdDuring('after manifests.saveEntries', push)
        expect((await deletion()).status).toBe(202)
        expect((await goOn()).status).toBe(201)
      }

      await growBlob(pair.stores, digest)
      await pair.b.collect()

      expect([await at(repository, 'first'), await at(repository, 'second')]).toEqual(['404', digestOf(second)])
      expect(await checkBlob(pair.a, repository, digest)).toBe('whole')
    })
  }
})

describe('I14: a manifest is deleted by its digest while a tag is put to it', () => {
  race('the deletion is under way: the push waits, and stores the manifest again', async () => {
    const repository = await freshRepository()
    await expectStatus(201, putManifest(pair.a, repository, 'old', image('one')))
    const goOn = await pair.a.holdDuring('after tags.removeAllOf', () =>
      remove(pair.a, repository, digestOf(image('one'))),
    )

    const pushing = putManifest(pair.b, repository, 'new', image('one'))
    await pair.somebodyWaits()

    expect([(await goOn()).status, (await pushing).status]).toEqual([202, 201])
    expect([await at(repository, 'new'), await tagsOf(repository)]).toEqual([digestOf(image('one')), ['new']])
  })

  race('the push is under way: the deletion waits, and takes the new tag too', async () => {
    const repository = await freshRepository()
    await expectStatus(201, putManifest(pair.a, repository, 'old', image('one')))
    const goOn = await pair.b.holdDuring('after tags.point', () => putManifest(pair.b, repository, 'new', image('one')))

    const deleting = remove(pair.a, repository, digestOf(image('one')))
    await pair.somebodyWaits()

    expect([(await goOn()).status, (await deleting).status]).toEqual([201, 202])
    expect([await at(repository, 'new'), await at(repository, digestOf(image('one')))]).toEqual(['404', '404'])
    expect(await tagsOf(repository)).toEqual([])
  })
})

race(
  'I15: a tag is put to two manifests: readers see the old one until the first is there, and then the second',
  async () => {
    const repository = await freshRepository()
    await expectStatus(201, putManifest(pair.a, repository, 'latest', image('old')))
    const goOn = await pair.a.holdDuring('after tags.point', () =>
      putManifest(pair.a, repository, 'latest', image('one')),
    )

    const second = putManifest(pair.b, repository, 'latest', image('two'))
    await pair.somebodyWaits()
    expect(await at(repository, 'latest')).toBe(digestOf(image('old')))

    expect([(await goOn()).status, (await second).status]).toEqual([201, 201])
    expect(await at(repository, 'latest')).toBe(digestOf(image('two')))
  },
)

describe('I16: a tag is deleted and put while others list', () => {
  race('the deletion is under way: the tag is listed until it is done, and there again behind the push', async () => {
    const repository = await freshRepository()
    await expectStatus(201, putManifest(pair.a, repository, 'moving', image('one')))
    const goOn = await pair.a.holdDuring('after tags.remove', () => remove(pair.a, repository, 'moving'))

    const pushing = putManifest(pair.b, repository, 'moving', image('two'))
    await pair.somebodyWaits()
    expect([await tagsOf(repository), await at(repository, 'moving')]).toEqual([['moving'], digestOf(image('one'))])

    expect([(await goOn()).status, (await pushing).status]).toEqual([202, 201])
    expect([await tagsOf(repository), await at(repository, 'moving')]).toEqual([['moving'], digestOf(image('two'))])
  })

  race('the push is under way: the deletion waits, and the tag is gone', async () => {
    const repository = await freshRepository()
    await expectStatus(201, putManifest(pair.a, repository, 'moving', image('one')))
    const goOn = await pair.b.holdDuring('after tags.point', () =>
      putManifest(pair.b, repository, 'moving', image('two')),
    )

    const deleting = remove(pair.a, repository, 'moving')
    await pair.somebodyWaits()
    expect(await at(repository, 'moving')).toBe(digestOf(image('one')))

    expect([(await goOn()).status, (await deleting).status]).toEqual([201, 202])
    expect([await tagsOf(repository), await at(repository, digestOf(image('two')))]).toEqual([
      [],
      digestOf(image('two')),
    ])
  })
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
