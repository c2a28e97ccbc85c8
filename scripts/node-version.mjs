// Imported first by every script. Nothing in `scripts/` may use syntax that Node 12 cannot parse: an old Node would tell of a
// syntax error instead of its age.
const wanted = 20
const have = Number.parseInt(process.versions.node, 10)

if (have < wanted) {
  console.error(
    `Berth needs Node ${wanted} or newer; this is Node ${process.versions.node}. Install a newer one from https://nodejs.org`,
  )
  process.exit(1)
}
