// The first line that a contestant prints tells the benchmark its address.
export function announce(server: { readonly port: number | undefined }): void {
  console.log(JSON.stringify({ port: server.port }))
}
