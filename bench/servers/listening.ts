// The first line a contestant prints is how the harness finds it.
export function announce(server: { readonly port: number | undefined }): void {
  console.log(JSON.stringify({ port: server.port }))
}
