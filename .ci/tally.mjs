// Reads the log of a suite and prints `passed failed skipped`, summed over every `bun test` in it. A suite that is no
// `bun test` closes with a line `N pass, N fail`.
import { readFileSync } from 'node:fs'

const totals = { pass: 0, fail: 0, skip: 0 }
/** Bun's words for a count -> what it adds to. A test that is only planned is a test that was left out. */
const words = { pass: 'pass', fail: 'fail', skip: 'skip', todo: 'skip' }

// A closing block is ` N pass`, ` N fail` ... without a gap, up to `Ran N tests across M files.`; what a test prints
// that only looks like a count is not followed by that line.
let block = []
let blocks = 0
const escapeCodes = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, 'g')
for (const line of readFileSync(process.argv[2], 'utf8').replace(escapeCodes, '').split(/\r?\n/)) {
  const count = /^ *(\d+) (pass|fail|errors?|skip|todo|filtered out|expect\(\) calls|snapshots?.*)$/.exec(line)
  const closing = /^(\d+) pass, (\d+) fail$/.exec(line)
  const end = /^Ran (\d+) tests? across \d+ files?\./.exec(line)
  if (closing) {
    blocks += 1
    totals.pass += Number(closing[1])
    totals.fail += Number(closing[2])
  } else if (count) {
    block.push([count[2], Number(count[1])])
  } else if (end && block.some(([word]) => word === 'pass')) {
    blocks += 1
    addBlock(Number(end[1]))
    block = []
  } else {
    block = []
  }
}

function addBlock(ran) {
  const before = totals.pass + totals.fail + totals.skip
  for (const [word, count] of block) if (words[word]) totals[words[word]] += count
  const counted = totals.pass + totals.fail + totals.skip - before
  if (counted !== ran) {
    console.error(`tally: 'Ran ${ran} tests', but the counts before it make ${counted}`)
    process.exitCode = 1
  }
}

if (blocks === 0) {
  console.error('tally: no closing lines in this log')
  process.exitCode = 1
}
console.log(totals.pass, totals.fail, totals.skip)
