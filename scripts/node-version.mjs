// Every script imports this first. Scripts may only use syntax that Node 12 can parse. Otherwise an old Node would report a syntax
// error instead of this message.
const wanted = 20
const have = Number.parseInt(process.versions.node, 10)

if (have < wanted) {
  console.error(
    `Berth needs Node ${wanted} or newer; this is Node ${process.versions.node}. Install a newer one from https://nodejs.org`,
  )
  process.exit(1)
}
