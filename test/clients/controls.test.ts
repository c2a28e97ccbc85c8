// The tests of real clients are worth something only if they can fail: here they must.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { Workspace } from '../support/basics/command.ts'
import { compareContent, layoutSource, readContent } from '../support/clients/image-content.ts'
import { makeImage, OciLayout } from '../support/clients/oci-layout.ts'
import { startBerth } from '../support/server/berth-process.ts'
import { hasTools } from './client-suite.ts'

describe('control runs', () => {
  let workspace: Workspace
  beforeAll(() => {
    workspace = new Workspace('controls')
  })
  afterAll(() => workspace.remove())

  const makeLayout = (name: string) => {
    const layout = new OciLayout(workspace.path(name))
    const image = makeImage(2)
    layout.addImage('1', image)
    const source = layoutSource(layout.folder)
    return { layout, image, read: () => readContent(source, '1') }
  }

  test('the comparison finds one altered byte in a layer', async () => {
    const { layout, read } = makeLayout('altered')
    const expected = await read()
    const [layer] = [...expected.parts].flatMap(([digest, part]) => (part.kind === 'layer' ? [digest] : []))
    const path = layout.blobPath(layer ?? 'none')
    const bytes = readFileSync(path)
    bytes[1_000] = (bytes[1_000] ?? 0) ^ 1
    writeFileSync(path, bytes)
    const actual = await read()
    expect(() => compareContent(expected, actual)).toThrow(`the layer ${layer} has bytes that hash to`)
  })

  test('the comparison finds a missing layer, a foreign layer and another root', async () => {
    const expected = await makeLayout('one').read()
    const other = await makeLayout('other').read()
    expect(() => compareContent(expected, other)).toThrow('the tag points to')
    expect(() => compareContent(expected, { ...other, root: expected.root })).toThrow('is missing')
    expect(() => compareContent(expected, { ...other, root: expected.root })).toThrow('was not expected')
    expect(() => compareContent(expected, expected)).not.toThrow()
  })

  test('an empty image is never taken for the same', () => {
    const nothing = { root: 'sha256:none', parts: new Map() }
    expect(() => compareContent(nothing, nothing)).toThrow('no content')
  })

  if (!hasTools({ client: 'the control run', tools: ['skopeo'] })) return
  test('a push to a server that has been stopped fails', async () => {
    const { layout } = makeLayout('unsent')
    const berth = await startBerth()
    const creds = ['--dest-tls-verify=false', '--dest-creds', `apikey:${berth.apiKey}`]
    const copy = ['copy', ...creds, `oci:${layout.folder}:1`, `docker://${berth.host}/controls/unsent:1`]
    await workspace.run(['skopeo', '--insecure-policy', ...copy])
    await berth.stop()
    const { code, output } = await workspace.run(['skopeo', '--insecure-policy', ...copy], { mayFail: true })
    expect(code).not.toBe(0)
    expect(output).toContain('connection refused')
  }, 60_000)
})
