import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { Glob } from 'bun'
import { referencePages } from '../../scripts/reference-pages.ts'

const root = join(import.meta.dir, '..', '..')

describe('the reference pages', () => {
  for (const [path, text] of referencePages()) {
    test(`${path} says what the code says (npm run docs writes it)`, async () => {
      expect(await Bun.file(join(root, path)).text()).toBe(text)
    })
  }
})

describe('links between pages', () => {
  const pages = ['*.md', 'docs/**/*.md', 'bench/*.md'].flatMap((pattern) => [...new Glob(pattern).scanSync(root)])

  test('there are pages to look at', () => expect(pages.length).toBeGreaterThan(15))

  for (const page of pages) {
    test(`${page} leads nowhere that is not there`, async () => {
      const text = await Bun.file(join(root, page)).text()
      const targets = [...text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map((match) => match[1] ?? '')
      const missing = targets.filter(
        (target) => !/^https?:/.test(target) && !existsSync(join(root, dirname(page), target)),
      )
      expect(missing).toEqual([])
    })
  }

  test('the tests that the README names are there', async () => {
    const readme = await Bun.file(join(root, 'README.md')).text()
    const named = [...readme.matchAll(/`(test\/[\w./-]+)`/g)].map((match) => match[1] ?? '')
    expect(named.length).toBeGreaterThan(5)
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })
})

test('each page of docs/decisions has a number of its own', () => {
  const numbers = [...new Glob('docs/decisions/*.md').scanSync(root)].map((page) => basename(page).slice(0, 4))
  expect(numbers.length).toBeGreaterThan(20)
  expect(numbers.filter((number, index) => numbers.indexOf(number) !== index)).toEqual([])
})
