/** The content of the start page. Clients other than browsers get it as JSON. */
export interface ServerDescription {
  readonly name: string
  readonly version: string
  /** The prefix of image names, and the argument of `docker login`. */
  readonly registry: string
  /** Absent if the registry is not at `/v2/`, where Docker and similar clients look for it. */
  readonly commands?: { readonly login: string; readonly tag: string; readonly push: string; readonly pull: string }
  readonly openapi: string
  readonly documentation?: string
}

/** The script only copies commands. The page works without it. */
export const pageScript = `
for (const button of document.querySelectorAll('button')) {
  button.hidden = false
  button.addEventListener('click', async () => {
    const line = button.parentElement.querySelector('code')
    const status = document.getElementById('status')
    try {
      await navigator.clipboard.writeText(line.textContent)
    } catch {
      // Pages loaded over plain HTTP cannot use the clipboard.
      getSelection().selectAllChildren(line)
      if (!document.execCommand('copy')) return
      getSelection().removeAllRanges()
    }
    button.textContent = 'Copied'
    status.textContent = 'Copied: ' + line.textContent
    setTimeout(() => { button.textContent = 'Copy' }, 2000)
  })
}
`

export const pageStyle = `
:root {
  color-scheme: light dark;
  --back: #f4f6f8; --card: #fff; --ink: #17212b; --soft: #52606d; --line: #d9e0e7; --accent: #0b63b5; --code: #eef2f6;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #0e141a; --card: #161e27; --ink: #e7edf3; --soft: #9fb0c0; --line: #2a3642; --accent: #6cb4f5; --code: #0f161d;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; padding: 3rem 1rem; background: var(--back); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
main { max-width: 44rem; margin: 0 auto; }
header { display: flex; align-items: center; gap: .9rem; margin-bottom: 1.75rem; }
header svg { width: 3rem; height: 3rem; flex: none; color: var(--accent); }
h1 { margin: 0; font-size: 1.6rem; line-height: 1.2; }
header p { margin: .15rem 0 0; color: var(--soft); }
section {
  background: var(--card); border: 1px solid var(--line); border-radius: .75rem; padding: 1.25rem 1.25rem 1.4rem;
  margin-bottom: 1rem;
}
h2 { margin: 0 0 .35rem; font-size: 1.05rem; }
section p { margin: 0 0 .8rem; color: var(--soft); }
.line {
  display: flex; align-items: stretch; background: var(--code); border: 1px solid var(--line); border-radius: .5rem;
  margin-top: .55rem; overflow: hidden;
}
pre { flex: 1; min-width: 0; margin: 0; padding: .7rem .9rem; overflow-x: auto; }
code { font: .875rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; user-select: all; }
p code { user-select: auto; color: var(--ink); }
button {
  border: 0; border-left: 1px solid var(--line); background: none; color: var(--accent); font: inherit; font-size: .875rem;
  min-width: 5.2rem; padding: 0 .9rem; cursor: pointer;
}
button:hover { background: var(--line); }
a { color: var(--accent); text-underline-offset: .15em; }
ul { margin: .4rem 0 0; padding-left: 1.2rem; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; border-radius: .3rem; }
a:focus-visible { outline-offset: 2px; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@media (max-width: 30rem) {
  body { padding: 1.5rem .75rem; }
  section { padding: 1rem; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
}
`

export function writePage(server: ServerDescription, needsTls: boolean): string {
  const name = escapeHtml(server.name)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${name}: container registry at ${escapeHtml(server.registry)}</title>
<link rel="icon" href="data:,">
<style>${pageStyle}</style>
</head>
<body>
<main>
<header>
<svg viewBox="0 0 48 48" fill="none" stroke="currentColor" stroke-width="3" stroke-linejoin="round" aria-hidden="true">
<path d="M14 8h9v8h-9zM25 8h9v8h-9zM8.500 18h9v8h-9zM19.500 18h9v8h-9zM30.500 18h9v8h-9z"/>
<path d="M4 31h40l-5 9H9z"/>
</svg>
<div>
<h1>${name}</h1>
<p>A container registry. Version ${escapeHtml(server.version)}.</p>
</div>
</header>
${server.commands === undefined ? writeNoCommands() : writeCommands(server.commands, needsTls)}
<section>
<h2>Read on</h2>
<ul>
${server.documentation === undefined ? '' : `<li><a href="${escapeHtml(server.documentation)}">Documentation</a></li>\n`}<li><a href="${escapeHtml(server.openapi)}">OpenAPI document of the interface</a> (JSON)</li>
<li>The folder <code>docs</code> of the source: <code>docs/start.md</code> shows the first push and pull,
<code>docs/how-to/sign-in.md</code> how podman, helm, Kubernetes and CI sign in.</li>
</ul>
</section>
<p id="status" class="unseen" role="status"></p>
</main>
<script>${pageScript}</script>
</body>
</html>
`
}

function writeCommands(
  { login, tag, push, pull }: NonNullable<ServerDescription['commands']>,
  needsTls: boolean,
): string {
  const warning = needsTls
    ? `<p>This address has no TLS. Docker uses it only if <code>insecure-registries</code> in its configuration names it.</p>\n`
    : ''
  return `<section>
<h2>Sign in</h2>
<p>Docker asks for a password: enter an API key.</p>
${warning}${writeLine('the login command', login)}
</section>
<section>
<h2>Push an image</h2>
<p>Tag an image that you have, here <code>alpine</code>, with a name that begins with this address. Then push it.</p>
${writeLine('the tag command', tag)}
${writeLine('the push command', push)}
</section>
<section>
<h2>Pull it</h2>
${writeLine('the pull command', pull)}
</section>`
}

function writeNoCommands(): string {
  return `<section>
<h2>No address for docker</h2>
<p>The setting <code>registry.root_mount</code> is off. Docker and similar clients cannot use this server, because they look
for a registry at <code>/v2/</code> only.</p>
</section>`
}

/** A command that can be copied. `what` is its name for screen readers. */
function writeLine(what: string, command: string): string {
  return `<div class="line"><pre tabindex="0" aria-label="${what}"><code>${escapeHtml(command)}</code></pre><button type="button" aria-label="Copy ${what}" hidden>Copy</button></div>`
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => entities[sign] ?? '')
}
