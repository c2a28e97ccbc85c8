import { describe, expect, test } from 'bun:test'
import { hashPassword, isPassword, passwordLengthMax, unknownUserHash } from '../../../src/identity/passwords.ts'
import { findByPassword } from '../../../src/identity/users.ts'
import { NoSlot } from '../../../src/lib/slots.ts'
import { errorOf } from '../../support/basics/outcomes.ts'
import { MemoryUsers, user } from '../../support/identity/memory-users.ts'

const password = 'a password of ann'

/** One user each who can, cannot, and may not log in. */
async function openUsers(): Promise<MemoryUsers> {
  const users = new MemoryUsers()
  const passwordHash = await hashPassword(password)
  for (const [name, rest] of [
    ['ann', { passwordHash }],
    ['disabled', { passwordHash, isDisabled: true }],
    ['keys-only', {}],
  ] as const) {
    const { id: _id, tokenEpoch: _epoch, ...given } = user({ name, ...rest })
    await users.add(given)
  }
  return users
}

const refusedLogins = [
  ['a wrong password', 'ann', 'a wrong password'],
  ['an unknown user', 'nobody', password],
  ['a disabled user', 'disabled', password],
  ['a disabled user with a wrong password', 'disabled', 'a wrong password'],
  ['a user without a password', 'keys-only', password],
] as const

describe('a password', () => {
  test('is read to its last letter, however long it is', async () => {
    const longest = 'x'.repeat(passwordLengthMax - 1)
    const hash = await hashPassword(`${longest}y`)

    expect(await isPassword(`${longest}y`, hash)).toBe(true)
    expect(await isPassword(`${longest}z`, hash)).toBe(false)
    expect(await isPassword(longest, hash)).toBe(false)
  })

  test('that is longer than any can be is not even compared', async () => {
    const hash = await hashPassword('x'.repeat(passwordLengthMax + 1))

    expect(await isPassword('x'.repeat(passwordLengthMax + 1), hash)).toBe(false)
    expect(await isPassword('x'.repeat(10_000_000), hash)).toBe(false)
  })

  test('is kept with chance, so that the same one twice looks like two', async () => {
    expect(await hashPassword(password)).not.toBe(await hashPassword(password))
    expect(await hashPassword(password)).not.toContain(password)
  })
})

/** The part of a hash that says how much work it is, and how long the rest is. */
function workOf(hash: string) {
  const [, algorithm, version, cost, salt = '', sum = ''] = hash.split('$')
  return { algorithm, version, cost, saltLength: salt.length, sumLength: sum.length }
}

describe('the cost of a comparison', () => {
  test('with an unknown user is that with a known user', async () => {
    expect(workOf(unknownUserHash)).toEqual(workOf(await hashPassword(password)))
    expect(workOf(unknownUserHash)).toMatchObject({ algorithm: 'argon2id', cost: 'm=19456,t=2,p=1' })
  })

  test('with an unknown user is really paid: the hash is one that can be compared with', async () => {
    expect(await Bun.password.verify('anything', unknownUserHash)).toBe(false)
    // The control: what is no hash is not compared with.
    expect(await errorOf(Bun.password.verify('anything', `no ${unknownUserHash}`))).toBeInstanceOf(Error)
  })

  test('is one comparison for every login, whatever is wrong with it: none finds a place when all are taken', async () => {
    const users = await openUsers()
    const places = Array.from({ length: 66 }, () => isPassword('x', undefined))
    const outcomes = refusedLogins.map(([, name, given]) => findByPassword({ users }, name, given))
    const right = findByPassword({ users }, 'ann', password)

    for (const outcome of [...outcomes, right])
      expect(await outcome.catch((error: unknown) => error)).toBeInstanceOf(NoSlot)
    expect(new Set(await Promise.all(places))).toEqual(new Set([false]))
  })

  test('is paid by 2 at once and 64 that wait, and by no more', async () => {
    const all = await Promise.allSettled(Array.from({ length: 70 }, () => isPassword('x', undefined)))

    expect(all.map(({ status }) => status)).toEqual([
      ...Array.from({ length: 66 }, () => 'fulfilled' as const),
      ...Array.from({ length: 4 }, () => 'rejected' as const),
    ])
    expect(await isPassword('x', undefined)).toBe(false)
  })

  test('is zero for a text that cannot be a password', async () => {
    const places = Array.from({ length: 66 }, () => isPassword('x', undefined))

    expect(await isPassword('', undefined)).toBe(false)
    expect(await isPassword('x'.repeat(passwordLengthMax + 1), undefined)).toBe(false)
    await Promise.all(places)
  })
})
