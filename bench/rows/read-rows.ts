// Small reads: manifests, blobs of up to 1 MiB, and a list of tags.

import { randomBytes } from '../blob-source.ts'
import { type Contestant, startConstant } from '../contestants.ts'
import type { Figure } from '../figures.ts'
import type { LoadGenerator } from '../load-generator.ts'
import * as client from '../registry-client.ts'
import type { Slice } from '../rounds.ts'
import type { ConstantAnswer } from '../servers/constant.ts'
import { constantName, type Field, type Row, type RowGroup } from './row.ts'

const mebibyte = 2 ** 20
const tagCount = 120
const cpuOnly: readonly Figure[] = ['CPU ms']

/** Headers that Bun sets by itself, and those that belong to the connection. */
const ownHeaders = new Set(['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding'])

export function readRows(load: LoadGenerator): RowGroup {
  return { name: 'reads', isQuick: true, withSyncingPeers: false, prepare: (field) => prepareReads(field, load) }
}

async function prepareReads(field: Field, load: LoadGenerator): Promise<readonly Row[]> {
  const { plan, registries } = field
  const content = await pushContent(registries, plan.name === 'full')
  const constant = await startSameAnswer(field)
  const row = (
    title: string,
    urlOf: (contestant: Contestant) => string,
    { method = 'GET', others = [] }: { method?: 'GET' | 'HEAD'; others?: readonly Contestant[] } = {},
  ): Row => ({
    title,
    figures: cpuOnly,
    detail: `${plan.connections} keep-alive connections, slices of ${plan.readSliceSeconds} s, ${load.nameOf(method)}`,
    cores: 'apart',
    rounds: plan.readRounds,
    slices: [...registries, ...others].map(
      (contestant): Slice => ({
        name: contestant.name,
        pid: contestant.pid,
        run: () =>
          load.run({
            method,
            url: urlOf(contestant),
            headers: { ...contestant.headers, Accept: client.manifestType },
            seconds: plan.readSliceSeconds,
            connections: plan.connections,
          }),
      }),
    ),
  })
  const byTag = (contestant: Contestant) => client.manifestUrl(contestant, client.tag)
  const blob = (digest: string) => (contestant: Contestant) => client.blobUrl(contestant, digest)
  const quick = [
    row('manifest GET by tag', byTag, { others: [constant] }),
    row('manifest GET by digest', (contestant) => client.manifestUrl(contestant, content.manifest), {
      others: [constant],
    }),
    row('blob HEAD', blob(content.kibibyte), { method: 'HEAD' }),
    row('blob GET of 1 KiB', blob(content.kibibyte)),
  ]
  if (content.mebibyte === undefined) return quick
  return [
    ...quick,
    row('manifest HEAD', byTag, { method: 'HEAD' }),
    row('blob GET of 1 MiB', blob(content.mebibyte)),
    row('tag list, n=100', (contestant) => `${contestant.url}/v2/${client.repository}/tags/list?n=100`),
  ]
}

interface Content {
  readonly manifest: string
  readonly kibibyte: string
  readonly mebibyte: string | undefined
}

/** All registries get the same content. */
async function pushContent(registries: readonly Contestant[], isFull: boolean): Promise<Content> {
  const small = randomBytes(1024)
  const large = isFull ? randomBytes(mebibyte) : undefined
  let content: Content | undefined
  for (const registry of registries) {
    const { digest } = await client.pushImage(registry)
    content = {
      manifest: digest,
      kibibyte: (await client.pushBlob(registry, small)).digest,
      mebibyte: large && (await client.pushBlob(registry, large)).digest,
    }
    if (isFull) await client.pushTags(registry, tagCount)
  }
  if (content === undefined) throw new Error('no registry takes part')
  return content
}

async function startSameAnswer({ folder, berth, enter }: Field): Promise<Contestant> {
  const answer = await readAnswer(berth)
  const constant = await enter(startConstant(folder, constantName, answer))
  const actual = await readAnswer(constant)
  if (!Bun.deepEquals(actual, answer)) throw new Error('the constant does not answer what Berth answers')
  // All contestants get the same request. The constant ignores the credentials.
  return { ...constant, headers: berth.headers }
}

async function readAnswer(contestant: Contestant): Promise<ConstantAnswer> {
  const url = client.manifestUrl(contestant, client.tag)
  const answer = await fetch(url, { headers: { ...contestant.headers, Accept: client.manifestType } })
  if (answer.status !== 200) throw new Error(`${url}: ${answer.status}: ${await answer.text()}`)
  const headers = [...answer.headers].filter(([name]) => !ownHeaders.has(name))
  return { headers: Object.fromEntries(headers), body: await answer.text() }
}
