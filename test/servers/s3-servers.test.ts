// The S3 servers of the tests, asked the same questions. What Ceph answers is what a server says that many run; where the
// stub says something else, the registry would be tested against a fiction. The differences that there are stand in a list.
import { afterAll, beforeAll, describe, expect } from 'bun:test'
import { type Need, testNeeding } from '../support/basics/needs.ts'
import { canStartCeph, startCeph } from '../support/s3/ceph-server.ts'
import { canStartMoto, startMoto } from '../support/s3/moto-server.ts'
import type { S3Server } from '../support/s3/s3-server.ts'
import { startS3Stub } from '../support/s3/s3-stub.ts'
import { askerOf, probes } from './s3-probes.ts'

interface Rival {
  readonly need: Need
  readonly start: () => Promise<S3Server>
  /** What it says otherwise than the stub. */
  readonly differs: Readonly<Record<string, unknown>>
}

const rivals: Readonly<Record<string, Rival>> = {
  // Less strict than the stub, which follows the documentation of AWS. A client that passes with the stub passes here.
  ceph: {
    need: canStartCeph(),
    start: startCeph,
    differs: {
      'an upload that is completed cannot be listed': '404 NoSuchKey',
      'an upload that is completed cannot be completed': ['200', '200'],
      'parts in disorder are refused': '200',
      'a part has a number from 1 to 10000': ['"9dd4e461268c8034f5c8564e155c67a6"', 34],
    },
  },
  // It looks at no signature and at no sum of a body, falls over what is gone, and knows no pages of uploads.
  moto: {
    need: canStartMoto(),
    start: startMoto,
    differs: {
      'an upload that is completed is gone': [0, '500'],
      'an upload that is completed cannot be completed': ['200', '200'],
      'an upload that is aborted is gone': [204, 0, '500'],
      'parts in disorder are refused': '400 EntityTooSmall',
      'uploads are listed below their prefix, page by page': [['u1', 'u2', 'u3']],
      'a signature of another secret is refused': '200',
      'an unknown key is refused': '200',
      'a clock that is an hour late is refused': '404 NoSuchKey',
      'a body of another hash is refused': ['200', 200],
      'a body of another MD5 is refused': ['200', 200],
      'a signed address that is bent is refused': '200',
    },
  },
}

for (const [name, { need, start, differs }] of Object.entries(rivals)) {
  describe(`the stub and ${name} say the same`, () => {
    const stub = startS3Stub()
    let rival: S3Server | undefined
    beforeAll(async () => {
      if (need.isMet) rival = await start()
    }, 60_000)
    afterAll(async () => {
      await rival?.stop()
      await stub.stop()
    })

    for (const [sentence, probe] of Object.entries(probes))
      testNeeding(need, sentence, async () => {
        if (rival === undefined) throw new Error('the server did not start')
        const [ours, theirs] = [await probe(askerOf(stub)), await probe(askerOf(rival))]
        if (!(sentence in differs)) return expect(theirs).toEqual(ours)
        expect(theirs).toEqual(differs[sentence])
        // One that has come round is a difference no more.
        expect(theirs).not.toEqual(ours)
      })
  })
}
