import packageJson from '../../package.json' with { type: 'json' }

/** The version of Berth. */
export const { version } = packageJson
