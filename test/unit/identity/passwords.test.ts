import { describe, expect, test } from 'bun:test'
import { hashPassword, isPassword, passwordLengthMax, unknownUserHash } from '../../../src/identity/passwords.ts'
import { findByPassword } from '../../../src/identity/users.ts'
import { NoSlot } from '../../../src/lib/slots.ts'
import { errorOf } from '../../support/basics/outcomes.ts'
import { MemoryUsers, user } from '../../support/identity/memory-users.ts'

const password = 'a password of ann'
const tooLong = 'x'.repeat(passwordLengthMax + 1)

describe('a password', () => {
  test('is compared to its last letter, and is not compared if it is longer than any can be', async () => {
    const longest = 'x'.repeat(passwordLengthMax - 1)
    const hash = await hashPassword(`${longest}y`)

    expect(await isPassword(`${longest}y`, hash)).toBe(true)
    expect(await isPassword(`${longest}z`, hash)).toBe(false)
    expect(await isPassword(longest, hash)).toBe(false)
    expect(await isPassword(tooLong, await hashPassword(tooLong))).toBe(false)
    expect(await isPassword('x'.repeat(10_000_000), hash)).toBe(false)
  })

  test('has another hash each time, which does not contain it', async () => {
    expect(await hashPassword(password)).not.toBe(await hashPassword(password))
    expect(await hashPassword(password)).not.toContain(password)
  })
})

/** The part of a hash that says how much work it is, and how long the rest is. */
function workOf(hash: string) {
  const [, algorithm, version, cost, salt = '', sum = ''] = hash.split('$')
  return { algorithm, version, cost, saltLength: salt.length, sumLength: sum.length }
}

describe('the cost of a login', () => {
  test('is the same for an unknown user as for a known one, and is really paid', async () => {
    process.env['PASSWORD_COST'] = 'full'
    const hash = await hashPassword(password).finally(() => delete process.env['PASSWORD_COST'])

    expect(workOf(unknownUserHash)).toEqual(workOf(hash))
    expect(workOf(unknownUserHash)).toMatchObject({ algorithm: 'argon2id', cost: 'm=19456,t=2,p=1' })
    expect(await Bun.password.verify('anything', unknownUserHash)).toBe(false)
    // The control: a text that is not a hash is an error.
    expect(await errorOf(Bun.password.verify('anything', `no ${unknownUserHash}`))).toBeInstanceOf(Error)
  })

  test('is one comparison, whatever is wrong with the login; 2 run at once, 64 wait, and others are refused', async () => {
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
    // A cheap hash: what the 66 compare is not the subject. No comparison ends before the event loop goes on.
    const cheap = await Bun.password.hash('y', { algorithm: 'argon2id', memoryCost: 8, timeCost: 1 })
    const places = Promise.all(Array.from({ length: 66 }, () => isPassword('x', cheap)))

    for (const [name, given] of [
      ['ann', password],
      ['ann', 'a wrong password'],
      ['nobody', password],
      ['disabled', password],
      ['disabled', 'a wrong password'],
      ['keys-only', password],
    ] as const) {
      const login = findByPassword({ users }, name, given)
      expect([name, given, await errorOf(login)]).toEqual([name, given, expect.any(NoSlot)])
    }
    // What cannot be a password costs no comparison, and needs no place.
    expect([await isPassword('', undefined), await isPassword(tooLong, undefined)]).toEqual([false, false])
    expect(new Set(await places)).toEqual(new Set([false]))
    expect(await isPassword(password, passwordHash)).toBe(true)
  })
})
